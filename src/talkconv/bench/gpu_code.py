"""Reads the machine code of NVIDIA GPUs: its instructions, its loops and the bytes it moves."""

import re
from collections.abc import Sequence
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

    @property
    def bytes(self) -> int:
        """Return the bytes that a thread loads from memory or stores there.

        >>> Instruction("@P0 LDG.E.128 R4, [R2.64]").bytes
        16
        """
        if self.name not in ("LDG", "STG", "LDGSTS"):
            return 0
        for modifier in reversed(self.full_name.split(".")):
            if bits := re.fullmatch(r"[US]?(8|16|64|128|256)", modifier):
                return int(bits.group(1)) // 8
        return 4

    @property
    def is_float64(self) -> bool:
        """Return whether the units for float64 compute this. There are fewer of them."""
        return self.name in ("DADD", "DFMA", "DMUL", "DSETP")


@dataclass(frozen=True)
class Loop:
    """A range of instructions that ends with a branch back to its first one."""

    first: int
    last: int

    def holds(self, index: int) -> bool:
        return self.first <= index <= self.last


@dataclass(frozen=True)
class Work:
    """The work of one thread: its instructions, those for float64, and its bytes of memory."""

    instructions: float
    float64: float
    bytes: float


@dataclass(frozen=True)
class Code:
    """The instructions of one kernel, and its loops in the order in which they begin."""

    instructions: list[Instruction]
    loops: list[Loop]
    first_exit: int

    def inside(self, loop: Loop) -> list[Instruction]:
        return self.instructions[loop.first : loop.last + 1]

    def work(self, trips: Sequence[tuple[Loop, float]], until_first_exit: bool = False) -> Work:
        """Count the work of a thread if each loop runs as often as `trips` says, others never."""
        often = dict(trips)
        total = Work(0, 0, 0)
        stop = self.first_exit + 1 if until_first_exit else len(self.instructions)
        for k, each in enumerate(self.instructions[:stop]):
            times = 1.0
            for loop in self.loops:
                if loop.holds(k):
                    times *= often.get(loop, 0)
            total = Work(
                total.instructions + times,
                total.float64 + times * each.is_float64,
                total.bytes + times * each.bytes,
            )
        return total


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
    exits = [k for k, each in enumerate(instructions) if each.name == "EXIT"]
    # After the last unconditional exit there are blocks that run rarely and branch back.
    certain = [k for k in exits if not instructions[k].text.startswith("@")]
    instructions = instructions[: certain[-1] + 1] if certain else instructions
    loops = []
    for index, instruction in enumerate(instructions):
        target = re.search(r"BRA.*`\((\.L_x_\d+)\)", instruction.text)
        # A branch to itself is only padding at the end of a kernel.
        if target and labels[target.group(1)] < index:
            loops.append(Loop(labels[target.group(1)], index))
    return Code(instructions, sorted(loops, key=lambda loop: loop.first), exits[0])
