"""The GPU kernels, run by Triton's interpreter on CPU tensors.

The interpreter rounds as a GPU does, tensor cores included (tests/ops/interpreter.py), and fresh
memory is full of NaN, so that an element which no program writes shows.
"""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from talkconv import TaLKState, reference, talk_conv, talk_conv_step
from talkconv.ops import gpu, implementations
from tests.cases import Case, assert_exact, exact, exact_grads, make_case

pytest.importorskip("triton", reason="the GPU kernels need Triton: pip install 'talkconv[gpu]'")

# NaN and infinity are meant; numpy, which does the interpreter's sums, warns about them
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]

# blocks have 16 tokens here and slices of a head 16 channels (see the fixture)
SHAPES = [
    dict(B=1, T=1, C=1, H=1, l_max=0, r_max=0),
    dict(B=2, T=5, C=6, H=3, l_max=31, r_max=17),
    dict(B=1, T=17, C=6, H=2, l_max=7, r_max=0),
    dict(B=1, T=19, C=18, H=1, l_max=0, r_max=5),
    # bfloat16 offsets would often reach exactly an integer here
    dict(B=1, T=51, C=5, H=1, l_max=30, r_max=15, offset_dtype=torch.float32),
    dict(B=1, T=20, C=4, H=2, l_max=1000, r_max=2**31 - 1),
]


@pytest.fixture(autouse=True)
def _as_on_a_gpu(monkeypatch, request):
    from tests.ops.interpreter import act_as_a_gpu

    act_as_a_gpu()
    if "slow" not in request.keywords:
        # small blocks: many of them in few tokens, which the interpreter has time for
        sizes = dict(BLOCK=16, TILE=16, CHANNELS=16)
        monkeypatch.setattr(gpu, "block_sizes", lambda *args: sizes)
    new_empty = torch.Tensor.new_empty

    def full_of_nan(*args, **kwargs):
        fresh = new_empty(*args, **kwargs)
        return fresh.fill_(torch.nan) if fresh.is_floating_point() else fresh

    monkeypatch.setattr(torch.Tensor, "new_empty", full_of_nan)


def arguments(case):
    settings = dict(max_offset=1.0, normalize=True, lengths=None, cu_seqlens=None) | case.settings
    names = ("l_max", "r_max", "max_offset", "normalize", "lengths", "cu_seqlens")
    return case.x, case.left, case.right, *(settings[name] for name in names)


def run(case):
    return gpu.talk_conv(*arguments(case))


def run_with_grads(case, grad_out=None):
    """Return the output, its gradient, and the three gradients."""
    out = run(case)
    if grad_out is None:
        grad_out = torch.randn(out.shape).to(out.dtype)
    return out, grad_out, gpu.talk_conv_backward(grad_out, *arguments(case))


def assert_right(case):
    out, grad_out, grads = run_with_grads(case)
    assert_exact(out, exact(case), "out")
    names = ("grad_x", "grad_left", "grad_right")
    for name, grad, right_one in zip(names, grads, exact_grads(case, grad_out), strict=True):
        assert_exact(grad, right_one, name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_the_definition(shape, dtype):
    assert_right(make_case(**shape, dtype=dtype))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("windows", [(3, 3), (15, 31), (64, 64), (200, 0)], ids=str)
def test_equals_the_definition_over_many_blocks(windows, dtype):
    l_max, r_max = windows
    # half-precision offsets would often reach exactly an integer
    kinds = dict(dtype=dtype, offset_dtype=torch.float32)
    assert_right(make_case(B=1, T=389, C=40, H=1, l_max=l_max, r_max=r_max, **kinds))


@pytest.mark.parametrize("offset_dtype", DTYPES)
def test_offsets_of_another_dtype(offset_dtype):
    assert_right(make_case(T=9, dtype=torch.float32, offset_dtype=offset_dtype))


@pytest.mark.parametrize("settings", [dict(normalize=False), dict(max_offset=1.25)], ids=str)
def test_settings(settings):
    assert_right(make_case(B=1, T=20, C=6, **settings))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_padding_never_counts(dtype):
    lengths = torch.tensor([20, 0, 16, 3], dtype=dtype)
    case = make_case(B=4, T=20, C=4, H=2, l_max=9, r_max=9, lengths=lengths)
    assert_right(case)
    padding = torch.arange(20) >= lengths[:, None]
    clean, grad_out, clean_grads = run_with_grads(case)
    for tensor in (case.x, case.left, case.right, grad_out):
        tensor[padding] = torch.nan
    out, _, grads = run_with_grads(case, grad_out)
    for one, other in zip((out, *grads), (clean, *clean_grads), strict=True):
        assert torch.equal(one, other)
        assert not other[padding].any()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_packed(dtype):
    cu_seqlens = torch.tensor([0, 0, 16, 17, 17, 34, 37], dtype=dtype)
    assert_right(make_case(T=37, C=4, H=2, l_max=9, r_max=4, cu_seqlens=cu_seqlens))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sequence_gives_the_same_bits_everywhere(dtype):
    """Alone, in a batch, padded, and packed between others."""
    lengths = [5, 18, 16]
    cu_seqlens = torch.tensor([0, 5, 23, 39])
    packed = make_case(T=39, C=4, H=2, l_max=5, r_max=3, dtype=dtype, cu_seqlens=cu_seqlens)
    out, grad_out, grads = run_with_grads(packed)
    padded = make_case(B=3, T=40, C=4, H=2, l_max=5, r_max=3, lengths=torch.tensor(lengths))
    batch = [torch.zeros(3, 40, t.shape[-1], dtype=dtype) for t in (packed.x, packed.left, out)]
    padded.x, padded.left, padded_grad = batch
    padded.right = padded.left.clone()
    for row, one in enumerate(map(slice, cu_seqlens, cu_seqlens[1:])):
        for tensor, values in zip(
            (padded.x, padded.left, padded.right, padded_grad),
            (packed.x, packed.left, packed.right, grad_out),
            strict=True,
        ):
            tensor[row, : lengths[row]] = values[one]
    padded_out, _, padded_grads = run_with_grads(padded, padded_grad)
    for row, one in enumerate(map(slice, cu_seqlens, cu_seqlens[1:])):
        results = zip((out, *grads), (padded_out, *padded_grads), strict=True)
        for here, there in results:
            assert torch.equal(here[one], there[row, : lengths[row]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_repeats_bit_for_bit(dtype):
    case = make_case(B=1, T=20, C=2, H=1, dtype=dtype)
    out, grad_out, grads = run_with_grads(case)
    again, _, grads_again = run_with_grads(case, grad_out)
    for one, other in zip((out, *grads), (again, *grads_again), strict=True):
        assert torch.equal(one, other)


def test_integer_reach_has_no_derivative():
    case = make_case(B=1, T=9, C=2, H=1, l_max=4, r_max=2)
    case.left.fill_(0.5)
    case.right.fill_(0.5)
    _, _, grads = run_with_grads(case)
    assert not grads[1].any()
    assert not grads[2].any()


def test_clamped_offsets_have_no_derivative():
    case = make_case(B=1, T=9, C=2, H=1, l_max=4, r_max=2, max_offset=1.1)
    case.left[0, :, 0] = torch.tensor([-1, -0.1, 0.3, 1.2, 9, torch.inf, -torch.inf, 1e30, 0.9])
    clamped = torch.tensor([True, True, False, True, True, True, True, True, False])
    out, grad_out, grads = run_with_grads(case)
    assert_exact(out, exact(case))
    assert not grads[1][0, clamped].any()
    assert_exact(grads[1], exact_grads(case, grad_out)[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("side", ["left", "right"])
def test_nan_offset_takes_its_own_token_only(side, dtype):
    case = make_case(B=1, T=18, C=4, H=2, dtype=dtype)
    clean, grad_out, clean_grads = run_with_grads(case)
    getattr(case, side)[0, 16, 1] = torch.nan
    out, _, grads = run_with_grads(case, grad_out)
    is_nan = torch.zeros(1, 18, 4, dtype=torch.bool)
    is_nan[0, 16, 2:] = True
    assert torch.equal(out.isnan(), is_nan)
    assert torch.equal(out[~is_nan], clean[~is_nan])
    assert torch.equal(grads[0].isnan(), is_nan)
    for grad, clean_grad in zip(grads[1:], clean_grads[1:], strict=True):
        assert torch.equal(grad.isnan(), is_nan[..., 1::2])
        assert torch.equal(grad[~is_nan[..., 1::2]], clean_grad[~is_nan[..., 1::2]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "specials",
    [[torch.nan], [torch.inf], [-torch.inf], [torch.inf, -torch.inf]],
    ids=["nan", "inf", "-inf", "both"],
)
def test_specials_reach_the_windows_that_hold_them(specials, dtype):
    case = make_case(B=1, T=37, C=3, H=1, dtype=dtype)
    for token, special in enumerate(specials, start=15):
        case.x[0, token, 1] = special
    # 0 * NaN would spoil a product: add up only what has a weight
    weights = window_weights(case)[0]  # (T, T, 1)
    terms = torch.where(weights != 0, weights * case.x.double()[0], 0)  # (T, T, C)
    expected = terms.sum(1)[None] / 8
    finite = expected.isfinite()
    out = run(case)
    assert_exact(torch.where(finite, out, 0), torch.where(finite, expected, 0))
    assert torch.equal(out[~finite].double().nan_to_num(), expected[~finite].nan_to_num())
    assert torch.equal(out.isnan(), expected.isnan())


def window_weights(case):
    wide = case.doubles()
    return reference.window_weights(wide.left, wide.right, wide.x.shape[1], l_max=4, r_max=3)


def test_specials_of_grad_out_reach_the_tokens_of_their_window():
    case = make_case(B=1, T=37, C=3, H=1)
    _, grad_out, clean = run_with_grads(case)
    grad_out[0, 15, 1] = torch.inf
    _, _, grads = run_with_grads(case, grad_out)
    held = (window_weights(case)[0, 15, :, 0] > 0)[:, None] & torch.tensor([False, True, False])
    assert torch.equal(grads[0][0] == torch.inf, held)
    torch.testing.assert_close(grads[0][0][~held], clean[0][0][~held])


def test_any_strides():
    case = make_case(B=2, T=18, C=6, H=2)
    wanted = run(case)
    offsets = torch.cat((case.left, case.right), dim=-1)
    left, right = offsets.chunk(2, dim=-1)
    by_time = case.x.transpose(0, 1).contiguous().transpose(0, 1)
    by_channel = case.x.mT.contiguous().mT
    for x in (by_time, by_channel):
        assert torch.equal(run(Case(x, left, right, case.settings)), wanted)
    expanded = torch.ones(()).expand_as(wanted)
    _, _, grads = run_with_grads(case, torch.ones_like(wanted))
    _, _, same = run_with_grads(case, expanded)
    assert all(map(torch.equal, grads, same))


@pytest.mark.parametrize("shape", [(0, 5, 4), (2, 0, 4)])
def test_empty(shape):
    x, offsets = torch.empty(shape), torch.empty(*shape[:2], 2)
    case = Case(x, offsets, offsets, dict(l_max=3, r_max=3))
    out, _, grads = run_with_grads(case)
    assert out.shape == grads[0].shape == shape
    assert grads[1].shape == grads[2].shape == offsets.shape


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_equal_all_at_once(dtype):
    """The last `context` rows of x in front of the new tokens stand for a stream's state."""
    context = 7
    case = make_case(B=2, T=27, C=4, H=2, l_max=6, r_max=0, max_offset=1.1, dtype=dtype)
    stream = torch.cat((torch.zeros(2, context, 4, dtype=dtype), case.x), dim=1)
    outs = []
    for begin, end in ((0, 1), (1, 3), (3, 25), (25, 27)):
        left = case.left[:, begin:end]
        window = stream[:, begin : end + context]
        outs.append(gpu.talk_conv(window, left, left, 6, 0, 1.1, True, context=context))
    assert_exact(torch.cat(outs, dim=1), exact(case))


@pytest.mark.parametrize("name", ["talk_conv", "talk_conv_backward", "talk_conv_step"])
def test_is_registered_for_gpu_tensors(name):
    assert torch._C._dispatch_has_kernel_for_dispatch_key(f"talkconv::{name}", "CUDA")


def test_nothing_waits_for_the_gpu(monkeypatch):
    """CUDA graphs can hold no copy to the host: kernels see lengths, the launcher does not."""

    def refuse(*args):
        raise AssertionError("the launcher read a number from the GPU")

    lengths = torch.tensor([9, 3])
    case = make_case(T=9, lengths=lengths)
    out = gpu.talk_conv(case.x, case.left, case.right, 4, 3, 1.0, True, lengths, None)
    assert out.shape == case.x.shape
    for method in ("item", "tolist", "cpu", "__bool__", "__int__", "__index__"):
        monkeypatch.setattr(torch.Tensor, method, refuse)
    windows = gpu.Windows(case.left, case.right, 4, 3, 1.0, True)
    gpu.plan_forward(case.x, windows, out, lengths, None)
    gpu.plan_backward(out, case.x, windows, (out, case.left, case.right), lengths, None)


def test_wrong_lengths_stay_inside_the_tensors():
    case = make_case(B=2, T=9)
    settings = (4, 3, 1.0, True)
    lengths = torch.tensor([2**40, -(2**40)])
    out = gpu.talk_conv(case.x, case.left, case.right, *settings, lengths, None)
    assert torch.equal(out[0], run(case)[0])
    assert not out[1].any()


@pytest.mark.parametrize(
    ("cu_seqlens", "covered"),
    [
        ([0, 3], slice(0, 3)),
        ([2, 5], slice(2, 5)),
        ([1, 4], slice(1, 4)),
        ([2, 2], slice(0, 0)),
        ([-(2**40), 2**40], slice(0, 5)),
        ([0, 5, 3, 5], slice(0, 5)),
    ],
    ids=str,
)
def test_rows_that_no_sequence_covers_are_zeros(cu_seqlens, covered):
    case = make_case(T=5, cu_seqlens=torch.tensor(cu_seqlens))
    out, grad_out, grads = run_with_grads(case)
    ends = torch.tensor([0, len(case.x[covered])])
    settings = dict(case.settings, cu_seqlens=ends)
    alone = Case(case.x[covered], case.left[covered], case.right[covered], settings)
    alone_out, _, alone_grads = run_with_grads(alone, grad_out[covered])
    for found, expected in zip((out, *grads), (alone_out, *alone_grads), strict=True):
        assert torch.equal(found[covered], expected)
        found[covered] = 0
        assert not found.any()


def test_no_sequence_for_some_rows_is_an_error():
    """The shape of cu_seqlens tells this without reading a number from the GPU."""
    case = make_case(T=5, cu_seqlens=torch.tensor([0]))
    with pytest.raises(ValueError, match=r"from 0 to N = 5 .* for one sequence pass \[0, N\]"):
        run(case)
    with pytest.raises(ValueError, match="from 0 to N = 5"):
        gpu.talk_conv_backward(case.x, *arguments(case))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_largest_numbers_change_their_own_windows_only(dtype):
    """One bfloat16 piece of the largest float32 is infinite, and 0 * infinity is NaN."""
    case = make_case(B=1, T=34, C=4, H=1, l_max=3, r_max=3, dtype=dtype)
    largest = torch.finfo(dtype).max
    grad_out = torch.randn(case.x.shape).to(dtype)
    for values in (case.x, grad_out):
        values[0, 5, 3] = values[0, 32, 1] = largest
        values[0, 16, 3] = -largest
        # two of them have a mean, but no sum, in their own dtype; float64 has none to compare with
        values[0, 20:22, 0] = largest if dtype != torch.float64 else 1
    assert_exact(run(case), exact(case))
    grads = gpu.talk_conv_backward(grad_out, *arguments(case))
    assert_exact(grads[0], exact_grads(case, grad_out)[0])


def test_without_triton_the_message_tells_the_cure(monkeypatch):
    gpu.kernels.cache_clear()
    monkeypatch.delattr("talkconv.ops.gpu_kernels", raising=False)
    monkeypatch.setitem(sys.modules, "talkconv.ops.gpu_kernels", None)
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
    case = make_case(B=1, T=9, l_max=4, r_max=0)
    leaves = case.leaves()
    out = talk_conv(*leaves, **case.settings)
    grad_out = torch.randn_like(out)
    for grad, expected in zip(
        torch.autograd.grad(out, leaves, grad_out), exact_grads(case, grad_out), strict=True
    ):
        assert_exact(grad, expected)
    step, _ = talk_conv_step(case.x[:, :2], case.left[:, :2], TaLKState.empty(1, 12, l_max=4))
    assert_exact(step, exact(case)[:, :2])


def test_importing_talkconv_leaves_triton_alone():
    code = "import sys, talkconv; sys.exit('triton' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tracing_for_a_gpu_needs_none():
    """What torch.compile does first: shapes alone, on tensors that say they are on a GPU."""
    with FakeTensorMode():
        x = torch.empty(2, 9, 4, device="cuda")
        offsets = torch.empty(2, 9, 2, device="cuda")
        out = talk_conv(x, offsets, offsets, l_max=3, r_max=3)
    assert out.device.type == "cuda"
    assert out.shape == x.shape
