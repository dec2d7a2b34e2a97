"""Reads the text of PTX."""

import functools
import re
from dataclasses import dataclass


class PTXError(Exception):
    """A kernel does what a GPU forbids, or what this interpreter does not know."""


@dataclass(frozen=True)
class Instruction:
    """An instruction, which runs where the register `guard` is `runs_if`. Braces are a tuple."""

    text: str
    opcode: str
    guard: str | None
    runs_if: bool
    operands: list[str | tuple[str, ...]]


class Kernel:
    """The one entry point of a PTX file: the bits of its parameters, its code and its labels."""

    def __init__(self, text: str) -> None:
        pattern = r"\.entry (\w+)\((.*?)\)\s*\.reqntid (\d+)[^{]*\{(.*?)\n\}"
        name, parameters, threads, body = re.search(pattern, text, re.DOTALL).groups()
        found = re.findall(r"\.param \.[a-z](\d+).*?(\w+)\s*(?:,|$)", parameters)
        self.name, self.threads = name, int(threads)
        self.parameters = {name: int(bits) for bits, name in found}
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        for line in (line.split("//")[0].strip() for line in body.splitlines()):
            if line.endswith(":"):
                self.labels[line[:-1]] = len(self.instructions)
            # directives declare registers, or name lines of the source
            elif line and not line.startswith("."):
                self.instructions.append(_instruction(line))


def _instruction(line: str) -> Instruction:
    parts = re.fullmatch(r"(?:@(!?)(%\w+)\s+)?(\S+?)(?:\s+(.*?))?\s*;", line)
    negated, guard, opcode, rest = parts.groups()
    found = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", rest or "")
    operands = [tuple(re.findall(r"[^{,\s}]+", each)) if each[0] == "{" else each for each in found]
    return Instruction(line, opcode, guard, not negated, operands)


@functools.cache
def width_of(register: str) -> int:
    """Return the bits of a register, which LLVM tells by its name: 1 for a predicate."""
    return {"%p": 1, "%rs": 16, "%r": 32, "%rd": 64}[register.rstrip("0123456789")]


@functools.cache
def constant_of(text: str) -> int:
    """Return the bits of a constant, such as -1, 0x7FC0 or 0f3F800000."""
    if not re.fullmatch(r"-?\d\w*", text):
        raise PTXError(f"reads {text}, which has no value yet")
    return int(text[2:], 16) if text[:2] in ("0f", "0d") else int(text, 0)
