"""The types of PTX, and the table of opcodes that compute in each thread alone."""

import numpy as np

Array = np.ndarray
UNSIGNED = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_NAMES = {"b": "u1 u2 u4 u8", "u": "u1 u2 u4 u8", "s": "i1 i2 i4 i8", "f": "f2 f4 f8"}
_DTYPES = [(kind, np.dtype(name)) for kind, names in _NAMES.items() for name in names.split()]
DTYPES = {f"{kind}{8 * dtype.itemsize}": dtype for kind, dtype in _DTYPES}
# numpy has no bfloat16: its values are computed in float32, which holds them all
DTYPES |= {"pred": np.dtype(bool), "bf16": np.dtype(np.float32)}


def bits_of(kind: str) -> int:
    return {"pred": 1, "bf16": 16}.get(kind) or 8 * DTYPES[kind].itemsize


def decode(bits: Array, kind: str) -> Array:
    """Return bits as numbers of a type; a narrow type takes the low bits."""
    if kind == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if bits.itemsize != DTYPES[kind].itemsize:
        bits = bits.astype(UNSIGNED[bits_of(kind)])
    return bits.view(DTYPES[kind])


def encode(values: Array, kind: str, width: int) -> Array:
    """Return numbers as bits; in a wider register, signed numbers keep their sign."""
    values = values.astype(DTYPES[kind], copy=False)
    if kind == "bf16":
        # round to nearest, ties to even
        bits = values.view(np.uint32)
        bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        return np.where(np.isnan(values), 0x7FFF, bits).astype(np.uint16)
    if kind != "pred" and bits_of(kind) != width:
        values = values.astype(f"{'int' if values.dtype.kind == 'i' else 'uint'}{width}")
    return values.view(UNSIGNED[width])


def _divide(a, b):
    """Divide integers toward zero; numpy rounds down."""
    quotient = np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64))
    return np.where((a < 0) != (b < 0), -quotient, quotient)


def _bit_field(a, first, count):
    """Return `count` bits of a number, of which the highest is the sign if the type has one."""
    top = (a.view(np.uint32) << (32 - first - count)).view(a.dtype)
    return top >> (32 - count).astype(a.dtype)


def _wide(function):
    """Return a function of integers that computes with 64 bits."""
    return lambda *values: function(*(value.astype(f"{value.dtype.kind}8") for value in values))


def _pack(high, low):
    """Round two float32 to bfloat16 and join them, the high half first."""
    high, low = (encode(half, "bf16", 16).astype(np.uint32) for half in (high, low))
    return high << 16 | low


# Operands -> result, name, the ends that the name can have, function. T stands for the last type
# of an opcode, C for the one before it, W for the one with 64 bits.
_ROWS = [
    ("T T -> T", "add", "s32 s64 rn.f32 rn.f64", np.add),
    ("T T -> T", "sub", "s32 s64 rn.f32 rn.f64", np.subtract),
    ("T T -> T", "mul", "lo.s32 lo.s64 rn.f32 rn.f64", np.multiply),
    ("T T T -> T", "mad", "lo.s32 lo.s64", lambda a, b, c: a * b + c),
    # rounds twice where a GPU rounds once: in float64 that is far below our tolerances
    ("T T T -> T", "fma", "rn.f64", lambda a, b, c: a * b + c),
    ("T T -> W", "mul.wide", "s32 u32", _wide(np.multiply)),
    ("T T W -> W", "mad.wide", "s32 u32", _wide(lambda a, b, c: a * b + c)),
    ("T T -> T", "div", "s32", _divide),
    ("T T -> T", "rem", "s32", lambda a, b: a - _divide(a, b) * b),
    ("T -> T", "neg", "s32 f64", np.negative),
    ("T -> T", "abs", "f32 bf16 f16", np.abs),
    ("T T -> T", "copysign", "f64", lambda sign, size: np.copysign(size, sign)),
    ("T T -> T", "min", "s32 s64 u32", np.minimum),
    ("T T -> T", "max", "s32 s64 u32 NaN.f32 NaN.bf16 NaN.f16", np.maximum),
    ("T T -> T", "min", "f64", np.fmin),
    ("T T -> T", "and", "b16 b32 b64 pred", np.bitwise_and),
    ("T T -> T", "or", "b16 b32 b64 pred", np.bitwise_or),
    ("T T -> T", "xor", "b16 b32 b64 pred", np.bitwise_xor),
    ("T -> T", "not", "b16 b32 b64 pred", np.invert),
    ("T T -> T", "shl", "b16 b32 b64", np.left_shift),
    ("T T -> T", "shr", "s32 s64 u32 u64", np.right_shift),
    ("T u32 u32 -> T", "bfe", "s32 u32", _bit_field),
    ("T T pred -> T", "selp", "b16 b32 b64 f32 f64", lambda a, b, p: np.where(p, a, b)),
    ("T -> T", "mov", "b16 b32 b64 u16 u32 u64 pred", np.asarray),
    # decode() and encode() convert
    ("T -> C", "cvt", "s64.s32 s32.s8 u64.u32 u32.u64 u32.u16 u16.u32", np.asarray),
    ("T -> C", "cvt", "f64.f32 f64.f16 f32.bf16 f32.f16", np.asarray),
    ("T -> C", "cvt.rn", "f64.s32 f32.f64 bf16.f32 f16.f32", np.asarray),
    # what does not fit becomes the nearest integer, NaN becomes 0
    ("T -> C", "cvt.rzi", "s32.f64", lambda a: np.clip(np.nan_to_num(a), -(2**31), 2**31 - 1)),
    ("T T -> b32", "cvt.rn", "bf16x2.f32", _pack),
    ("T T -> pred", "setp", "eq.b32 eq.b64 eq.f32 eq.f64", np.equal),
    ("T T -> pred", "setp", "ne.b16 ne.b32 ne.b64 neu.f32 neu.f64", np.not_equal),
    ("T T -> pred", "setp.lt", "s32 s64 u32 u64 f32 f64", np.less),
    ("T T -> pred", "setp.le", "s32 s64 u32 u64 f32 f64", np.less_equal),
    ("T T -> pred", "setp.gt", "s32 s64 u32 u64 f16 f32 f64", np.greater),
    ("T T -> pred", "setp.ge", "s32 s64 u32 u64 f32 f64", np.greater_equal),
    ("T T -> pred", "setp.geu", "f32 f64", lambda a, b: ~(a < b)),
    ("T T -> pred", "setp.nan", "f16 f32 f64", lambda a, b: np.isnan(a) | np.isnan(b)),
    ("T T -> pred", "setp.num", "f16 f32 f64", lambda a, b: ~(np.isnan(a) | np.isnan(b))),
]

# opcode: the types of its operands, the type of its result, its function
OPCODES = {}
for _types, _name, _ends, _function in _ROWS:
    for _opcode in (f"{_name}.{end}" for end in _ends.split()):
        _other, _last = _opcode.split(".")[-2:]
        _found = _types.replace("T", _last).replace("C", _other).replace("W", f"{_last[0]}64")
        OPCODES[_opcode] = (*_found.split(" -> "), _function)
