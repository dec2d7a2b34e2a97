"""Reads the machine code of NVIDIA GPUs: its instructions, its loops, the bytes that it moves."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    """One instruction of a warp, such as `@P0 LDG.E.128 R4, [R2.64]`."""

    text: str

    @property
    def name(self) -> str:
        """Return the name without its predicate and its modifiers, such as LDG."""
        return self.full_name.split(".")[0]

    @property
    def full_name(self) -> str:
        """Return the name with its modifiers, such as LDG.E.128."""
        return re.sub(r"^@!?U?P\d+\s+", "", self.text).split()[0]


@dataclass(frozen=True)
class Loop:
    """A range of instructions that ends with a branch back to its first one."""

    first: int
    last: int

    def holds(self, index: int) -> bool:
        return self.first <= index <= self.last


@dataclass(frozen=True)
class Code:
    """The instructions of one kernel, and its loops in the order in which they begin."""

    instructions: list[Instruction]
    loops: list[Loop]

    def inside(self, loop: Loop) -> list[Instruction]:
        return self.instructions[loop.first : loop.last + 1]


def read_code(listing: str) -> Code:
    """Parse the listing that `nvdisasm -c` prints for one kernel.

    >>> code = read_code('''
    ... .L_x_0:
    ...   /*0000*/  LDG.E.128 R4, [R2.64] ;
    ...   /*0010*/  @P0 BRA `(.L_x_0) ;
    ...   /*0020*/  EXIT ;
    ... ''')
    >>> [instruction.name for instruction in code.inside(code.loops[0])]
    ['LDG', 'BRA']
    """
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in listing.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label.group(1)] = len(instructions)
        elif found := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;", line):
            instructions.append(Instruction(found.group(1)))
    loops = []
    for index, instruction in enumerate(instructions):
        target = re.search(r"BRA.*`\((\.L_x_\d+)\)", instruction.text)
        # a branch to itself pads the end of every kernel and is never reached
        if target and labels[target.group(1)] < index:
            loops.append(Loop(labels[target.group(1)], index))
    return Code(instructions, sorted(loops, key=lambda loop: loop.first))
