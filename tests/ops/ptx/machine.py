"""Runs all threads of a launch in lock step. A register is an array of (programs, threads).

Programs may go different ways through the code, the threads of one program may not: Triton's code
chooses between threads by predicates. Opcodes that our kernels do not use on sm_80 are refused.
"""

import numpy as np

from tests.ops.ptx.opcodes import DTYPES, OPCODES, UNSIGNED, Array, bits_of, decode, encode
from tests.ops.ptx.syntax import Instruction, Kernel, PTXError, constant_of, width_of
from tests.ops.ptx.warps import WARP, WARP_OPCODES

# from one block of memory to the next one: no wrong index is as large
APART = 2**36


class Memory:
    """Blocks of bytes that are far apart, with nothing between them.

    Its users are programs, or the warps of one program. No user may touch what another one stored,
    until a barrier makes the memory forget who stored it.
    """

    def __init__(self, sizes: list[int], first_address: int = 0) -> None:
        self.addresses, self._first = first_address + APART * np.arange(len(sizes)), first_address
        self._sizes = np.array(sizes)
        self._begins = np.cumsum([0, *(-(-size // 16) * 16 for size in sizes)])
        self._bytes = np.zeros(self._begins[-1], np.uint8)
        self._user = np.full(self._begins[-1], -1, np.int32)
        spans = [slice(at, at + size) for at, size in zip(self._begins, sizes, strict=False)]
        self.blocks, self.users = ([a[span] for span in spans] for a in (self._bytes, self._user))

    def load(self, address: Array, width: int, user: Array) -> Array:
        return self._bytes.view(UNSIGNED[width])[self._places(address, width, user)]

    def store(self, address: Array, values: Array, user: Array) -> None:
        place = self._places(address, 8 * values.itemsize, user)
        users, cells = self._user.reshape(-1, values.itemsize), self._bytes.view(values.dtype)
        users[place], cells[place] = user[:, None], values
        shared = users[place, 0] != user
        # two warps may store the same value, which is then of both; two programs may not
        if (cells[place] != values).any() or (self._first and shared.any()):
            raise PTXError("stores different values, or for two users, at one address")
        users[place[shared]] = -1

    def _places(self, address: Array, width: int, user: Array) -> Array:
        """Return which numbers of this width stand at the addresses, which are multiples of it."""
        block, offset = np.divmod(address - self._first, APART)
        known = np.clip(block, 0, len(self._sizes) - 1)
        if ((block != known) | (offset + width // 8 > self._sizes[known])).any():
            raise PTXError("leaves the memory that exists")
        place = (self._begins[known] + offset) // (width // 8)
        before = self._user.reshape(-1, width // 8)[place]
        if ((before != -1) & (before != user[:, None])).any():
            raise PTXError("touches what another one stored, without a barrier in between")
        return place


def _constant(bits: int, width: int) -> Array:
    return np.array([[bits % 2**width]], UNSIGNED[width])


def _parts(operand) -> tuple[str, ...]:
    return operand if isinstance(operand, tuple) else (operand,)


class Machine:
    """The state of a launch. `memory` has the tensors, `arguments` pointers into it and numbers."""

    def __init__(self, kernel: Kernel, programs: int, arguments, memory: Memory, shared: int):
        self.kernel, self.shape = kernel, (programs, kernel.threads)
        self.memory, self.shared = memory, Memory([shared] * programs)
        self.program = self.everywhere(np.arange(programs)[:, None])
        self.warp = self.everywhere(np.arange(kernel.threads) // WARP)
        # the programs at the present instruction, and the threads for which it runs
        self.active = self.runs = np.ones((programs, 1), bool)
        # copies to shared memory that are under way, and how many groups of them were closed
        self.copies: list[tuple[Array, ...]] = []
        self.groups = np.zeros((programs, 1), int)
        # the last two parameters are for memory of Triton's own, which our kernels do not use
        given = zip(kernel.parameters.items(), [*arguments, 0, 0], strict=True)
        self.registers = {name: _constant(value, bits) for (name, bits), value in given}
        self.registers["%tid.x"] = np.arange(kernel.threads, dtype=np.uint32)[None, :]
        self.registers["%ctaid.x"] = np.arange(programs, dtype=np.uint32)[:, None]
        self.registers["global_smem"] = _constant(0, 32)

    def run(self) -> None:
        """Execute the kernel. Programs that are behind go first, so that they meet the others."""
        waiting = {0: self.active}
        while waiting:
            at = min(waiting)
            self.active = waiting.pop(at)
            instruction = self.kernel.instructions[at]
            try:
                with np.errstate(all="ignore"):
                    following = self._execute(instruction, at)
            except PTXError as error:
                raise PTXError(f"{self.kernel.name}: {instruction.text} {error}") from error
            for place, programs in following:
                if programs.any():
                    waiting[place] = waiting.get(place, False) | programs

    def _execute(self, instruction: Instruction, at: int) -> list[tuple[int, Array]]:
        """Execute an instruction; return where programs go on."""
        name, operands = instruction.opcode, instruction.operands
        self.runs = self.active
        if instruction.guard is not None:
            self.runs = self.active & (self.registers[instruction.guard] == instruction.runs_if)
        if name in ("bra", "bra.uni", "ret"):
            gone = self.runs[:, :1]
            if (self.runs != gone).any():
                raise PTXError("lets the threads of a program go different ways")
            label = [] if name == "ret" else [(self.kernel.labels[operands[0]], gone)]
            return [(at + 1, self.active & ~gone), *label]
        if name in OPCODES and not any(isinstance(operand, tuple) for operand in operands):
            takes, gives, function = OPCODES[name]
            values = (self.read(*each) for each in zip(operands[1:], takes.split(), strict=True))
            self.write(operands[0], function(*values), gives)
        elif name in WARP_OPCODES:
            results, kind = WARP_OPCODES[name](self, *operands[1:])
            for target, values in zip(_parts(operands[0]), results, strict=True):
                self.write(target, values.reshape(self.shape), kind)
        elif name in MEMORY_OPCODES:
            MEMORY_OPCODES[name](self, name, *operands)
        else:
            raise PTXError(f"has the unknown opcode {name}")
        return [(at + 1, self.active)]

    def read(self, operand: str, kind: str) -> Array:
        """Return the numbers of a register or a constant."""
        if operand in self.registers:
            return decode(self.registers[operand], kind)
        return decode(_constant(constant_of(operand), bits_of(kind)), kind)

    def write(self, register: str, values: Array, kind: str) -> None:
        """Set a register of the threads for which the instruction runs."""
        if register != "_":
            bits = encode(values, kind, width_of(register))
            if not self.runs.all():
                # as a float, a register without a value is NaN
                undefined = _constant(-1, width_of(register))
                bits = np.where(self.runs, bits, self.registers.get(register, undefined))
            self.registers[register] = bits

    def everywhere(self, values: Array) -> Array:
        """Return an array with a value for every thread."""
        return np.broadcast_to(values, self.shape)

    def place(self, operand: str, space: str, size: int, runs: Array):
        """Return a memory, and the addresses in brackets and users of the threads that run."""
        name, _, offset = operand[1:-1].partition("+")
        base = self.everywhere(self.read(name.strip(), "s64" if space == "global" else "u32"))
        address = base[runs].astype(np.int64) + int(offset or 0)
        if (address % size).any():
            raise PTXError(f"uses an address that is not a multiple of {size}")
        if space == "global":
            return self.memory, address, self.program[runs]
        return self.shared, address + self.shared.addresses[self.program[runs]], self.warp[runs]

    def _access(self, opcode: str, *operands) -> None:
        """Load or store the numbers of one or more registers."""
        name, space, *_, kind = opcode.replace("::cta", "").split(".")
        numbers, place = operands if name == "ld" else reversed(operands)
        if space == "param":
            return self.write(numbers, self.read(place[1:-1], kind), kind)
        runs, size = self.everywhere(self.runs), bits_of(kind) // 8
        memory, address, user = self.place(place, space, size * len(_parts(numbers)), runs)
        for k, number in enumerate(_parts(numbers)):
            if name == "ld":
                found = np.zeros(self.shape, UNSIGNED[8 * size])
                found[runs] = memory.load(address + k * size, 8 * size, user)
                self.write(number, found, kind)
            else:
                values = self.everywhere(self.read(number, kind))[runs]
                memory.store(address + k * size, values, user)

    def _split_or_join(self, opcode: str, target, source) -> None:
        """Move the halves of a register to two others, or two to the halves; low bits first."""
        whole, half = opcode[-3:], f"b{int(opcode[-2:]) // 2}"
        if isinstance(target, tuple):
            halves = self.read(source, whole)[..., None].view(DTYPES[half])
            for k, register in enumerate(target):
                self.write(register, halves[..., k], half)
        else:
            halves = np.broadcast_arrays(*(self.read(each, half) for each in source))
            self.write(target, np.stack(halves, axis=-1).view(DTYPES[whole])[..., 0], whole)

    def _begin_copy(self, opcode: str, place, source, size, count) -> None:
        """Read what is to be copied to shared memory; bytes behind the source are zeros."""
        size, count, runs = constant_of(size), self.read(count, "u32"), self.everywhere(self.runs)
        to, words = np.zeros(self.shape, int), np.zeros((size // 4, *self.shape), np.uint32)
        to[runs] = self.place(place, "shared", size, runs)[1]
        for k, word in enumerate(words):
            reads = runs & (4 * k < count)
            memory, address, user = self.place(source, "global", size, reads)
            word[reads] = memory.load(address + 4 * k, 32, user)
        self.copies.append((self.groups, runs.copy(), to, words))

    def _close_group(self, opcode: str) -> None:
        self.groups = self.groups + self.active

    def _wait_for_copies(self, opcode: str, open_groups) -> None:
        """Finish all groups but the newest, and no sooner, as a slow memory would do it."""
        for group, waits, to, words in self.copies:
            done = waits & self.active & (group < self.groups - constant_of(open_groups))
            for k, word in enumerate(words):
                self.shared.store(to[done] + 4 * k, word[done], self.warp[done])
            waits &= ~done
        self.copies = [copy for copy in self.copies if copy[1].any()]

    def _barrier(self, opcode: str, number) -> None:
        for program in np.flatnonzero(self.active):
            self.shared.users[program][:] = -1


MEMORY_OPCODES = {
    f"{name}.{vector}{kind}": Machine._access
    for name in ("ld.param", "ld.global", "ld.shared", "st.global", "st.shared", "st.shared::cta")
    for vector in ("", "v2.", "v4.")
    for kind in ("b8", "b16", "b32", "b64", "s32", "u32")
} | {
    "mov.b32": Machine._split_or_join,
    "mov.b64": Machine._split_or_join,
    "cp.async.ca.shared.global": Machine._begin_copy,
    "cp.async.cg.shared.global": Machine._begin_copy,
    "cp.async.commit_group": Machine._close_group,
    "cp.async.wait_group": Machine._wait_for_copies,
    "bar.sync": Machine._barrier,
    # the other threads of a warp are always there already
    "bar.warp.sync": lambda machine, opcode, threads: None,
}
