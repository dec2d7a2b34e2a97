"""PTX opcodes that exchange values between the 32 threads of a warp, tensor cores among them.

Each function returns the values of its target registers, (programs * warps, 32) each, and their
type. Which thread holds which element of a matrix is documented in NVIDIA's "PTX ISA".
"""

from functools import partial

import numpy as np

from tests.ops.ptx.opcodes import UNSIGNED, Array, bits_of, decode
from tests.ops.ptx.syntax import PTXError
from tests.ops.tensor_cores import multiply

WARP = 32
LANE = np.arange(WARP)
# rows and columns of the numbers of a matrix, by (register, thread, half of the register)
ROW, PAIR = LANE[:, None] // 4, LANE[:, None] % 4 * 2
HALF, REGISTER = np.arange(2), np.arange(4)[:, None, None]
A = ROW + 8 * (REGISTER % 2), PAIR + 8 * (REGISTER // 2) + HALF
B = PAIR + 8 * REGISTER[:2] + HALF, ROW
TOTAL = ROW + 8 * (REGISTER // 2), PAIR + REGISTER % 2


def _lanes(machine, operand: str, kind: str) -> Array:
    return machine.everywhere(machine.read(operand, kind)).reshape(-1, WARP)


def _check_all(machine, threads: str, clamp: str = "0") -> None:
    if (machine.read(threads, "s32") != -1).any() or (machine.read(clamp, "s32") % 31).any():
        raise PTXError("exchanges values in a part of the warp")


def _shuffle(source_of):
    """Return the opcode that gives each thread the value of another one."""

    def shuffle(machine, source, by, clamp, threads):
        _check_all(machine, threads, clamp)
        lane = source_of(LANE, _lanes(machine, by, "s32"))
        # a thread whose source lies outside of the warp keeps its own value
        lane = np.where((lane >= 0) & (lane < WARP), lane, LANE)
        return [np.take_along_axis(_lanes(machine, source, "b32"), lane, axis=1)], "b32"

    return shuffle


def _largest(machine, source, threads):
    _check_all(machine, threads)
    values = _lanes(machine, source, "s32")
    return [np.broadcast_to(values.max(1, keepdims=True), values.shape)], "s32"


def _load_matrices(machine, source, count=4, is_transposed=False):
    """Load matrices of 8 x 8 halves; each thread has the address of a row."""
    runs = machine.active & (np.arange(machine.shape[1]) % WARP < 8 * count)
    memory, address, user = machine.place(source, "shared", 16, runs)
    matrices = np.zeros((*machine.shape, 8), np.uint16)
    for k in range(8):
        matrices[runs, k] = memory.load(address + 2 * k, 16, user)
    matrices = matrices.reshape(-1, 4, 8, 8)  # (programs * warps, matrices, rows, columns)
    if is_transposed:
        matrices = matrices.swapaxes(-1, -2)
    pairs = np.ascontiguousarray(matrices[..., ROW, PAIR + HALF]).view(np.uint32)[..., 0]
    return [pairs[:, k] for k in range(count)], "b32"


def _matrix(machine, operands, kind: str, places) -> Array:
    """Collect a matrix from registers of all threads of a warp: (programs * warps, 16, columns)."""
    bits = np.stack([_lanes(machine, operand, "b32") for operand in operands], axis=1)
    matrix = np.zeros((len(bits), 16, places[1].max() + 1), np.float32)
    matrix[(slice(None), *places)] = decode(bits[..., None].view(UNSIGNED[bits_of(kind)]), kind)
    return matrix


def _multiply(machine, a, b, total, kind):
    """Return total + a @ b, (16, 8) + (16, 16) @ (16, 8), as tensor cores compute it."""
    a, b = _matrix(machine, a, kind, A), _matrix(machine, b, kind, B)
    result = multiply(a, b, _matrix(machine, total, "f32", TOTAL))
    return [result[:, TOTAL[0][k, :, 0], TOTAL[1][k, :, 0]] for k in range(4)], "f32"


WARP_OPCODES = {
    "shfl.sync.bfly.b32": _shuffle(np.bitwise_xor),
    "shfl.sync.up.b32": _shuffle(np.subtract),
    "shfl.sync.idx.b32": _shuffle(lambda lane, by: by),
    "redux.sync.max.s32": _largest,
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16": partial(_load_matrices, count=1),
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16": _load_matrices,
    "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16": partial(_load_matrices, is_transposed=True),
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": partial(_multiply, kind="bf16"),
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": partial(_multiply, kind="f16"),
}
