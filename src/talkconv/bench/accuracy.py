"""Accuracy over length: the operation against other ways to compute the same windows.

"One running sum" is a single prefix sum over the whole sequence in float32, as the paper describes
it. "The authors' float16" is what their code does in half precision: the prefix sums are stored in
float16, and the edges of the windows are computed in float16 as well.
"""

import functools
from collections.abc import Callable

import torch
from torch import Tensor

import talkconv
from talkconv.bench.correctness import TOLERANCE, Finding, relative_error
from talkconv.bench.exactness import REACH, largest_errors
from talkconv.bench.inputs import offsets_between_tokens
from talkconv.bench.part import Part, Row, Rows
from talkconv.bench.side_by_side import RowResult

LENGTHS = [64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_000_000]
GRADIENTS_AT = {64, 1024, 16_384, 1_000_000}
OURS, RUNNING_SUM, AUTHORS = "talk_conv, float32", "one running sum, float32", "authors' float16"
SCALE = 1 / (2 * REACH + 1)


def running_sum(
    x: Tensor, left: Tensor, right: Tensor, *, table: torch.dtype, edges: torch.dtype | None
) -> Tensor:
    """Compute the windows from one prefix sum that is stored in `table`: (n, C), (n, 1).

    The edges of the windows are computed exactly, or in the dtype `edges`.
    """
    n = len(x)
    sums = torch.cat((x.new_zeros(1, x.shape[1]).to(table), (x * SCALE).to(table).cumsum(0)))
    place = torch.arange(n)[:, None]

    def sum_before(side: Tensor, sign: int) -> Tensor:
        """Return the sum of all tokens before a real place, interpolated between two entries."""
        if edges is None:
            reach = sign * side.double() * REACH
            whole = reach.floor()
            share, entry = reach - whole, place + (sign > 0) + whole.long()
            is_inside = (entry >= 0) & (entry < n)
        else:
            real = place.to(edges) + sign * side.to(edges) * REACH
            # float16 has no numbers from 65 520 on. The last token then stands for them, which
            # is in favour of this scheme.
            real = real.float().clamp(0, n - 1)
            share, entry = real - real.floor(), real.floor().long() + (sign > 0)
            is_inside = entry < n
        share = torch.where(is_inside, share, 0).to(table)
        entry = entry.clamp(0, n)
        after = (entry + 1).clamp(max=n)
        return sums[entry[:, 0]] * (1 - share) + sums[after[:, 0]] * share

    return sum_before(right, +1) - sum_before(left, -1)


def exact(x: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Compute the windows in float64, where one prefix sum is exact to ten digits."""
    return running_sum(x.double(), left, right, table=torch.float64, edges=None)


def _ours(dtype: torch.dtype) -> Callable[..., Tensor]:
    def compute(x: Tensor, left: Tensor, right: Tensor) -> Tensor:
        batch = (x.to(dtype)[None], left[None], right[None])
        return talkconv.talk_conv(*batch, l_max=REACH, r_max=REACH)[0]

    return compute


SCHEMES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    OURS: _ours(torch.float32),
    RUNNING_SUM: lambda *t: running_sum(*t, table=torch.float32, edges=None),
    "talk_conv, bfloat16": _ours(torch.bfloat16),
    "talk_conv, float16": _ours(torch.float16),
    AUTHORS: lambda *t: running_sum(*t, table=torch.float16, edges=torch.float16),
}


def inputs(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return x of mean 1 and deviation 1, and offsets, for one sequence and head."""
    generator = torch.Generator().manual_seed(n)
    # All schemes get the same values, and float16 holds each of them.
    x = (1 + torch.randn(n, 4, generator=generator)).half().float()
    left, right = offsets_between_tokens((2, n, 1), REACH, generator).half().float()
    return x, left, right


def measure_length(n: int) -> RowResult:
    """Return the largest error of each scheme as a share of the largest output.

    At some lengths the row also has the largest errors of the operation and its gradients in
    float32, compared with the dense definition.
    """
    tensors = inputs(n)
    expected = exact(*tensors)
    errors = {name: relative_error(scheme(*tensors), expected) for name, scheme in SCHEMES.items()}
    row: RowResult = {"errors": errors}
    if n in GRADIENTS_AT:
        row["absolute"], _ = largest_errors(n, torch.float32)
    return row


def row_key(n: int) -> str:
    """Return the key of a row."""
    return f"n = {n}"


def accuracy_part(quick: bool) -> Part:
    """Return the errors over length as a part."""
    rows = [
        # The dense definition of the gradients takes most of the time.
        Row(row_key(n), functools.partial(_measure, n=n), 1 + (n in GRADIENTS_AT) * n / 20_000)
        for n in LENGTHS
        if n <= 4096 or not quick
    ]
    return Part("accuracy", rows, check_schemes)


def _measure(rows: Rows, n: int) -> RowResult:
    return measure_length(n)


def check_schemes() -> list[Finding]:
    """Compare the exact values, and each scheme on a short input, with the dense definition."""
    x, left, right = inputs(100)
    batch = tuple(tensor.double()[None] for tensor in (x, left, right))
    dense = talkconv.reference.talk_conv(*batch, l_max=REACH, r_max=REACH)[0]
    found = []
    for name, scheme, limit in (
        ("exact", exact, 1e-12),
        (OURS, SCHEMES[OURS], TOLERANCE[torch.float32]),
        (RUNNING_SUM, SCHEMES[RUNNING_SUM], TOLERANCE[torch.float32]),
        # The scheme itself is off by half a percent after 100 tokens.
        (AUTHORS, SCHEMES[AUTHORS], 2e-2),
    ):
        error = relative_error(scheme(x, left, right), dense)
        why = f"it is off by {error:.1e} of the largest value, allowed {limit:.0e}"
        found.append(Finding(name, error <= limit, why=why))
    return found
