"""Tests that the GPU kernels compute the definition, with the tolerances of the other kernels.

The normal suite runs every kernel with every dtype and every layout of sequences, but not with all
combinations of them: the other combinations are slow tests.
"""

import dataclasses
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from talkconv import TaLKState, talk_conv, talk_conv_step
from talkconv.ops import gpu, implementations
from tests.cases import Case, assert_exact, exact, exact_grads, make_case
from tests.ops.gpu_runs import (
    DEVICE,
    DTYPES,
    WAYS,
    as_on_a_gpu,
    assert_right,
    combinations,
    on_device,
    random_grad,
    real_sizes,
    run,
    run_all,
    run_backward,
    way,
)

__all__ = ["as_on_a_gpu", "real_sizes", "way"]

pytestmark = [
    pytest.mark.usefixtures("as_on_a_gpu"),
    # NaN and infinity are meant; numpy, which does the interpreter's sums, warns about them
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
HALVES = [torch.bfloat16, torch.float16]

SHAPES = [
    dict(B=1, T=1, C=1, H=1, l_max=0, r_max=0),
    dict(B=2, T=5, C=6, H=3, l_max=31, r_max=17),
    dict(B=1, T=17, C=6, H=2, l_max=7, r_max=0),
    dict(B=1, T=19, C=18, H=1, l_max=0, r_max=5),
    # half-precision offsets would often reach exactly an integer here
    dict(B=1, T=51, C=3, H=1, l_max=30, r_max=15, offset_dtype=torch.float32),
    dict(B=1, T=20, C=4, H=2, l_max=1000, r_max=2**31 - 1),
]
SOME = [SHAPES[1], SHAPES[3]]

# with two heads a kernel runs in twice as many programs
ONE_HEAD = [1, pytest.param(2, marks=pytest.mark.slow)]

# one way of the backward is enough where the other one shares the code that is tested
BY_EVENTS = ["events", pytest.param("products", marks=pytest.mark.slow)]


@pytest.mark.parametrize(
    ("shape", "way"),
    combinations(
        [
            (SHAPES[0], "products"),
            (SHAPES[1], "events"),
            (SHAPES[2], "products"),
            (SHAPES[3], "events"),
            (SHAPES[4], "products"),
            (SHAPES[5], "events"),
        ],
        SHAPES,
        WAYS,
    ),
    indirect=["way"],
    ids=str,
)
def test_equals_the_definition(shape, way):
    assert_right(make_case(**shape))


@pytest.mark.parametrize(
    ("shape", "dtype", "way"),
    combinations(
        [
            (SOME[0], torch.bfloat16, "products"),
            (SOME[1], torch.float16, "events"),
        ],
        SOME,
        HALVES,
        WAYS,
    ),
    indirect=["way"],
    ids=str,
)
def test_halves(shape, dtype, way):
    assert_right(make_case(**shape, dtype=dtype))


@pytest.mark.parametrize(
    "shape",
    [
        dict(B=1, T=7, C=3, H=1, l_max=0, r_max=5),
        dict(B=1, T=12, C=3, H=1, l_max=7, r_max=3),
        *(pytest.param(shape, marks=pytest.mark.slow) for shape in SOME),
    ],
    ids=str,
)
def test_float64(shape):
    assert_right(make_case(**shape, dtype=torch.float64))


@pytest.mark.slow
@pytest.mark.usefixtures("real_sizes")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("windows", [(3, 3), (15, 31), (64, 64), (200, 0)], ids=str)
def test_equals_the_definition_over_many_blocks(windows, dtype, way):
    l_max, r_max = windows
    # half-precision offsets would often reach exactly an integer
    kinds = dict(dtype=dtype, offset_dtype=torch.float32)
    assert_right(make_case(B=1, T=389, C=70, H=1, l_max=l_max, r_max=r_max, **kinds))


OTHERS = [torch.float64, torch.bfloat16, torch.float16]


@pytest.mark.parametrize(
    ("offset_dtype", "way"),
    combinations(
        [(OTHERS[0], "products"), (OTHERS[1], "events"), (OTHERS[2], "products")], OTHERS, WAYS
    ),
    indirect=["way"],
)
def test_offsets_of_another_dtype(offset_dtype, way):
    assert_right(make_case(B=1, T=9, C=4, H=2, offset_dtype=offset_dtype))


SETTINGS = [dict(normalize=False), dict(max_offset=1.25)]


@pytest.mark.parametrize(
    ("settings", "way"),
    combinations([(SETTINGS[0], "products"), (SETTINGS[1], "events")], SETTINGS, WAYS),
    indirect=["way"],
    ids=str,
)
def test_settings(settings, way):
    assert_right(make_case(B=1, T=20, C=3, H=1, **settings))


INTEGERS = [torch.int32, torch.int64]


@pytest.mark.parametrize(
    ("dtype", "way"),
    combinations([(torch.int32, "products"), (torch.int64, "events")], INTEGERS, WAYS),
    indirect=["way"],
)
def test_padding_never_counts(dtype, way):
    lengths = torch.tensor([18, 0, 16], dtype=dtype)
    case = make_case(B=3, T=18, C=2, H=1, l_max=9, r_max=9, lengths=lengths)
    grad_out = random_grad(case)
    clean = run_all(case, grad_out)
    for found, expected in zip(clean, (exact(case), *exact_grads(case, grad_out)), strict=True):
        assert_exact(found, expected)
    padding = torch.arange(18) >= lengths[:, None]
    for tensor in (case.x, case.left, case.right, grad_out):
        tensor[padding] = torch.nan
    for one, other in zip(run_all(case, grad_out), clean, strict=True):
        assert torch.equal(one, other)
        assert not other[padding].any()


@pytest.mark.parametrize(
    ("dtype", "way"),
    combinations([(torch.int32, "events"), (torch.int64, "products")], INTEGERS, WAYS),
    indirect=["way"],
)
def test_packed(dtype, way):
    cu_seqlens = torch.tensor([0, 0, 16, 17, 17, 34], dtype=dtype)
    assert_right(make_case(T=34, C=2, H=2, l_max=9, r_max=4, cu_seqlens=cu_seqlens))


@pytest.mark.parametrize(
    ("dtype", "way"),
    # float64 has one way
    [
        (torch.float32, "events"),
        *(
            pytest.param(dtype, way, marks=pytest.mark.slow)
            for dtype, way in [
                (torch.float32, "products"),
                (torch.bfloat16, "products"),
                (torch.bfloat16, "events"),
                (torch.float64, "products"),
            ]
        ),
    ],
    indirect=["way"],
)
@pytest.mark.parametrize("heads", ONE_HEAD)
def test_a_sequence_gives_the_same_bits_everywhere(dtype, way, heads):
    """A sequence alone, in a padded batch, and packed between others."""
    lengths = [5, 18, 16] if dtype != torch.float64 else [2, 9, 3]
    cu_seqlens = torch.tensor([0, *lengths]).cumsum(0)
    T = int(cu_seqlens[-1])
    packed = make_case(T=T, C=4, H=heads, l_max=5, r_max=3, dtype=dtype, cu_seqlens=cu_seqlens)
    grad_out = random_grad(packed)
    results = run_all(packed, grad_out)

    def padded(values):
        batch = values.new_zeros(3, max(lengths) + 3, values.shape[-1])
        for row, begin, length in zip(batch, cu_seqlens, lengths, strict=False):
            row[:length] = values[begin : begin + length]
        return batch

    settings = dict(packed.settings, cu_seqlens=None, lengths=torch.tensor(lengths))
    batch = Case(*map(padded, (packed.x, packed.left, packed.right)), settings)
    for here, there in zip(results, run_all(batch, padded(grad_out)), strict=True):
        assert torch.equal(padded(here), there)
    one = slice(lengths[0], lengths[0] + lengths[1])
    alone = Case(packed.x[None, one], packed.left[None, one], packed.right[None, one], settings)
    alone.settings["lengths"] = None
    for here, there in zip(results, run_all(alone, grad_out[None, one]), strict=True):
        assert torch.equal(here[one], there[0])


@pytest.mark.parametrize("way", BY_EVENTS, indirect=True)
def test_repeats_bit_for_bit(way):
    case = make_case(B=1, T=20, C=2, H=1)
    grad_out = random_grad(case)
    assert all(map(torch.equal, run_all(case, grad_out), run_all(case, grad_out)))


def test_integer_reach_has_no_derivative():
    case = make_case(B=1, T=9, C=2, H=1, l_max=4, r_max=2)
    case.left.fill_(0.5)
    case.right.fill_(0.5)
    grads = run_backward(case, random_grad(case))
    assert not grads[1].any()
    assert not grads[2].any()


@pytest.mark.parametrize("way", BY_EVENTS, indirect=True)
def test_clamped_offsets_have_no_derivative(way):
    case = make_case(B=1, T=9, C=2, H=1, l_max=4, r_max=2, max_offset=1.1)
    case.left[0, :, 0] = torch.tensor([-1, -0.1, 0.3, 1.2, 9, torch.inf, -torch.inf, 1e30, 0.9])
    clamped = torch.tensor([True, True, False, True, True, True, True, True, False])
    assert_exact(run(case), exact(case))
    grad_out = random_grad(case)
    grads = run_backward(case, grad_out)
    assert not grads[1][0, clamped].any()
    for found, expected in zip(grads, exact_grads(case, grad_out), strict=True):
        assert_exact(found, expected)


@pytest.mark.parametrize(
    ("tile", "way"),
    [
        (16, "events"),
        *(pytest.param(tile, "products", marks=pytest.mark.slow) for tile in (0, 8, 16)),
        *(pytest.param(tile, "events", marks=pytest.mark.slow) for tile in (0, 8)),
    ],
    indirect=["way"],
)
def test_the_worst_list_is_right(tile, way):
    """All windows begin or end in one tile of tokens: one program owns all of these events."""
    T, l_max = 40, 100
    case = make_case(B=1, T=T, C=2, H=1, l_max=l_max, r_max=l_max)
    begins = tile + torch.rand(T, generator=torch.Generator().manual_seed(2)) * 7
    distance = torch.arange(T) - begins
    # not exactly 0, where the derivative jumps
    case.left[0, :, 0] = distance.clamp(min=0.3) / l_max
    case.right[0, :, 0] = (-distance).clamp(min=0.3) / l_max
    assert_right(case)


@pytest.mark.parametrize("heads", ONE_HEAD)
def test_any_strides(heads):
    case = make_case(B=2, T=18, C=6, H=heads)
    wanted = run(case)
    offsets = torch.cat((case.left, case.right), dim=-1)
    left, right = offsets.chunk(2, dim=-1)
    by_time = case.x.transpose(0, 1).contiguous().transpose(0, 1)
    by_channel = case.x.mT.contiguous().mT
    for x in (by_time, by_channel):
        assert torch.equal(run(Case(x, left, right, case.settings)), wanted)


@pytest.mark.parametrize("way", BY_EVENTS, indirect=True)
def test_any_strides_of_grad_out(way):
    case = make_case(B=1, T=18, C=6, H=2)
    expanded = torch.ones(()).expand_as(case.x)
    grads = run_backward(case, torch.ones_like(case.x))
    assert all(map(torch.equal, grads, run_backward(case, expanded)))


@pytest.mark.parametrize("shape", [(0, 5, 4), (2, 0, 4)])
def test_empty(shape, way):
    x, offsets = torch.empty(shape), torch.empty(*shape[:2], 2)
    case = Case(x, offsets, offsets, dict(l_max=3, r_max=3))
    out, *grads = run_all(case, x)
    assert out.shape == grads[0].shape == shape
    assert grads[1].shape == grads[2].shape == offsets.shape


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_equal_all_at_once(dtype):
    """The last `context` rows of x in front of the new tokens stand for a stream's state."""
    context = 7
    case = make_case(B=1, T=48, C=4, H=2, l_max=6, r_max=0, max_offset=1.1, dtype=dtype)
    stream = torch.cat((torch.zeros(1, context, 4, dtype=dtype), case.x), dim=1)
    # the longest one has more tokens than are summed directly
    pieces = ((0, 1), (1, 3), (3, 43), (43, 48)) if dtype == torch.float32 else ((0, 2), (2, 3))
    outs = []
    for begin, end in pieces:
        left = case.left[:, begin:end].to(DEVICE)
        window = stream[:, begin : end + context].to(DEVICE)
        outs.append(gpu.talk_conv(window, left, left, 6, 0, 1.1, True, context=context).cpu())
    assert_exact(torch.cat(outs, dim=1), exact(case)[:, : pieces[-1][1]])


@pytest.mark.parametrize("name", ["talk_conv", "talk_conv_backward", "talk_conv_step"])
def test_is_registered_for_gpu_tensors(name):
    assert torch._C._dispatch_has_kernel_for_dispatch_key(f"talkconv::{name}", "CUDA")


@pytest.mark.parametrize("packed", [False, True])
def test_nothing_waits_for_the_gpu(monkeypatch, packed, way):
    """CUDA graphs can hold no copy to the host: kernels see lengths, the plans do not."""

    def refuse(*args):
        raise AssertionError("the plan read a number from the GPU")

    settings = dict(cu_seqlens=torch.tensor([0, 4, 9])) if packed else {}
    case = make_case(B=2, T=9, **settings)
    lengths = None if packed else torch.tensor([9, 3])
    for method in ("item", "tolist", "cpu", "__bool__", "__int__", "__index__"):
        monkeypatch.setattr(torch.Tensor, method, refuse)
    windows = gpu.plans().Windows(case.left, case.right, 4, 3, 1.0, True)
    ends = (lengths, settings.get("cu_seqlens"))
    gpu.plans().forward(case.x, windows, case.x, *ends)
    grads = (case.x, case.left, case.right)
    gpu.plans().backward(case.x, case.x, windows, grads, *ends)


@pytest.mark.parametrize("way", BY_EVENTS, indirect=True)
def test_wrong_lengths_stay_inside_the_tensors(way):
    case = make_case(B=2, T=9, C=2, H=1)
    wrong = Case(case.x, case.left, case.right, dict(case.settings))
    wrong.settings["lengths"] = torch.tensor([2**40, -(2**40)])
    grad_out = random_grad(case)
    for found, expected in zip(run_all(wrong, grad_out), run_all(case, grad_out), strict=True):
        assert torch.equal(found[0], expected[0])
        assert not found[1].any()


ODD_ENDS = [
    ([0, 3], slice(0, 3)),
    ([2, 5], slice(2, 5)),
    ([-(2**40), 2**40], slice(0, 5)),
]
MORE_ODD_ENDS = [
    ([0, 5, 3, 5], slice(0, 5)),
    ([1, 4], slice(1, 4)),
    ([2, 2], slice(0, 0)),
]


@pytest.mark.parametrize(
    ("ends", "way"),
    [
        *combinations(
            [(each, list(WAYS)[k % 2]) for k, each in enumerate(ODD_ENDS)], ODD_ENDS, WAYS
        ),
        *(
            pytest.param(ends, way, marks=pytest.mark.slow)
            for ends in MORE_ODD_ENDS
            for way in WAYS
        ),
    ],
    indirect=["way"],
    ids=str,
)
def test_rows_that_no_sequence_covers_are_zeros(ends, way):
    cu_seqlens, covered = ends
    case = make_case(T=5, C=2, H=1, cu_seqlens=torch.tensor(cu_seqlens))
    grad_out = random_grad(case)
    settings = dict(case.settings, cu_seqlens=torch.tensor([0, len(case.x[covered])]))
    alone = Case(case.x[covered], case.left[covered], case.right[covered], settings)
    expected = run_all(alone, grad_out[covered])
    for found, there in zip(run_all(case, grad_out), expected, strict=True):
        assert torch.equal(found[covered], there)
        found[covered] = 0
        assert not found.any()


def test_no_sequence_for_some_rows_is_an_error():
    """The shape of cu_seqlens tells this without reading a number from the GPU."""
    case = make_case(T=5, cu_seqlens=torch.tensor([0]))
    with pytest.raises(ValueError, match=r"from 0 to N = 5 .* for one sequence pass \[0, N\]"):
        run(case)
    with pytest.raises(ValueError, match="from 0 to N = 5"):
        run_backward(case, case.x)


@pytest.mark.skipif(DEVICE.type != "cpu", reason="only the interpreter refuses it")
@pytest.mark.parametrize(
    ("number", "name", "rest"),
    [
        (0, "x", slice(0, -1)),
        (0, "totals", slice(0, -1)),
        # behind the totals stand the bases, which the kernel may access, but by another pointer
        (1, "totals", slice(1, None)),
    ],
)
def test_a_kernel_that_leaves_a_tensor_is_noticed(number, name, rest):
    """The tests would otherwise read whatever stands behind a tensor, and seldom fail."""
    case = make_case(B=1, T=20, C=2, H=1)
    windows = gpu.plans().Windows(case.left, case.right, 4, 3, 1.0, True)
    launch = gpu.plans().forward(case.x, windows, torch.empty_like(case.x))[number]
    shorter = launch.arguments[name].flatten()[rest]
    launch = dataclasses.replace(launch, arguments={**launch.arguments, name: shorter})
    # Triton wraps the error in one of its own
    with pytest.raises(Exception, match=r"1 of .* accesses leave their tensor"):
        launch.run()


def test_too_many_tokens_are_refused():
    x = torch.empty(1, 2**30, 1, device="meta")
    offsets = torch.empty(1, 2**30, 1, device="meta")
    with pytest.raises(ValueError, match="at most 1073740800 tokens along time, got 1073741824"):
        gpu.talk_conv(x, offsets, offsets, 3, 3, 1.0, True)


def test_without_triton_the_message_tells_the_cure(monkeypatch):
    gpu.plans.cache_clear()
    monkeypatch.delattr("talkconv.ops.gpu_plans", raising=False)
    monkeypatch.setitem(sys.modules, "talkconv.ops.gpu_plans", None)
    with pytest.raises(RuntimeError, match=r'pip install "talkconv\[gpu\]"'):
        run(make_case())


@pytest.fixture
def _old_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    gpu.has_kernels_for.cache_clear()
    yield
    gpu.has_kernels_for.cache_clear()


@pytest.mark.usefixtures("_old_gpu")
def test_an_old_gpu_takes_the_eager_path_and_says_so_once():
    on_a_gpu = SimpleNamespace(is_cpu=False, device=torch.device("cuda", 0))
    with pytest.warns(UserWarning, match=r"capability 8\.0 .* cuda:0 has 7\.5"):
        assert implementations._compiled_for(on_a_gpu) is None
    # a second warning would be an error here
    assert implementations._compiled_for(on_a_gpu) is None


def test_the_public_functions_come_here(monkeypatch):
    monkeypatch.setattr(implementations, "_compiled_for", lambda x: gpu)
    case = make_case(B=1, T=9, C=4, H=2, l_max=4, r_max=0)
    leaves = [on_device(leaf.detach()).requires_grad_() for leaf in case.leaves()]
    out = talk_conv(*leaves, **case.settings)
    grad_out = torch.randn_like(out)
    for grad, expected in zip(
        torch.autograd.grad(out, leaves, grad_out), exact_grads(case, grad_out.cpu()), strict=True
    ):
        assert_exact(grad.cpu(), expected)
    x, left = on_device(case.x[:, :2]), on_device(case.left[:, :2])
    step, _ = talk_conv_step(x, left, TaLKState.empty(1, 4, l_max=4, device=DEVICE))
    assert_exact(step.cpu(), exact(case)[:, :2])


def test_importing_talkconv_leaves_triton_alone():
    code = "import sys, talkconv; sys.exit('triton' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tracing_for_a_gpu_needs_none():
    """torch.compile first sees shapes alone, on tensors that say they are on a GPU."""
    with FakeTensorMode():
        x = torch.empty(2, 9, 4, device="cuda")
        offsets = torch.empty(2, 9, 2, device="cuda")
        out = talk_conv(x, offsets, offsets, l_max=3, r_max=3)
    assert out.device.type == "cuda"
    assert out.shape == x.shape
