"""Tests of every mixer: padding, packing and streaming change no result."""

import pytest
import torch

from talkconv.layers import MIXERS
from tests.layers.cases import DIM, assert_same, no_onednn, random_mixer, random_tokens

both_sides = pytest.mark.parametrize("r_max", [0, 4], ids=["causal", "two-sided"])
every_mixer = pytest.mark.parametrize("kind", MIXERS)


@pytest.fixture(params=[True, False], ids=["grad", "no_grad"])
def either_way(request):
    """Run a test with and without gradients. Only without them a cache is written in place."""
    with torch.set_grad_enabled(request.param):
        yield


@every_mixer
@both_sides
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_as_if_it_were_not_there(kind, r_max, side):
    mixer = random_mixer(kind, r_max=r_max)
    sentence, padded = random_tokens(1, 7), random_tokens(2, 10, seed=2)
    at = slice(3, 10) if side == "left" else slice(0, 7)
    padded[0, at] = sentence[0]
    mask = torch.zeros(2, 10, dtype=torch.bool)
    mask[0] = True
    mask[0, at] = False
    out = mixer(padded, padding_mask=mask)
    assert_same(out[:1, at], mixer(sentence))
    assert_same(out[1:], mixer(padded[1:]))
    assert out.isfinite().all()


@every_mixer
@both_sides
def test_lengths_equal_the_mask(kind, r_max):
    mixer = random_mixer(kind, r_max=r_max)
    x, lengths = random_tokens(4, 9), torch.tensor([9, 1, 5, 0])
    mask = torch.arange(9) >= lengths[:, None]
    by_lengths, by_mask = mixer(x, lengths=lengths), mixer(x, padding_mask=mask)
    assert_same(by_lengths[~mask], by_mask[~mask])
    assert by_lengths.isfinite().all()


@every_mixer
@both_sides
def test_packed_equals_one_by_one(kind, r_max):
    mixer = random_mixer(kind, r_max=r_max)
    x = random_tokens(13)
    parts = [x[:6], x[6:7], x[7:7], x[7:]]
    out = mixer(x, cu_seqlens=torch.tensor([0, 6, 7, 7, 13]))
    assert_same(out, torch.cat([mixer(part[None])[0] for part in parts if len(part)]))


@every_mixer
@pytest.mark.parametrize("T", [1, 3, 67])
def test_nothing_is_seen_ahead(kind, T):
    mixer = random_mixer(kind)
    x = random_tokens(1, T)
    changed = torch.cat((x, random_tokens(1, 2, seed=3)), dim=1)
    assert_same(mixer(changed)[:, :T], mixer(x))


@every_mixer
@pytest.mark.parametrize("chunks", [[1] * 11, [11], [3, 1, 1, 5, 1]], ids=str)
def test_step_by_step_equals_all_at_once(either_way, kind, chunks):
    mixer = random_mixer(kind)
    x = random_tokens(2, 11)
    assert_same(_stream(mixer, x, chunks), mixer(x))


@every_mixer
@pytest.mark.parametrize("chunks", [[5, 1, 1, 3], [2, 4, 1, 3], [1] * 10], ids=str)
def test_streams_may_be_padded_on_the_left(either_way, kind, chunks):
    mixer = random_mixer(kind)
    x = random_tokens(3, 10)
    mask = torch.arange(10) < torch.tensor([0, 3, 1])[:, None]
    out = _stream(mixer, x, chunks, mask)
    assert out.isfinite().all()
    for row, padded in enumerate([0, 3, 1]):
        assert_same(out[row : row + 1, padded:], mixer(x[row : row + 1, padded:]))


@every_mixer
def test_left_padding_of_the_prompt_alone(either_way, kind):
    """As in generation, the prompt has a mask and later steps have none."""
    mixer = random_mixer(kind)
    x = random_tokens(2, 8)
    mask = torch.arange(5) < torch.tensor([2, 0])[:, None]
    prompt, state = mixer(x[:, :5], padding_mask=mask, state=mixer.empty_state(2))
    outs = [prompt]
    for i in range(5, 8):
        out, state = mixer(x[:, i : i + 1], state=state)
        outs.append(out)
    out = torch.cat(outs, dim=1)
    assert_same(out[:1, 2:], mixer(x[:1, 2:]))
    assert_same(out[1:], mixer(x[1:]))


@every_mixer
@pytest.mark.parametrize("padded", [False, True])
def test_beams(either_way, kind, padded):
    """Beams that are started and selected twice give the same as separate sentences."""
    mixer = random_mixer(kind)
    prompt, then, last = random_tokens(2, 6), random_tokens(6, 1, seed=2), random_tokens(4, 2)
    mask = torch.arange(6) < torch.tensor([2, 0])[:, None] if padded else None
    _, state = mixer(prompt, padding_mask=mask, state=mixer.empty_state(2))
    state = state.repeat(3)
    _, state = mixer(then, state=state.reorder(torch.arange(6)))
    picks = torch.tensor([5, 0, 0, 3])
    out, state = mixer(last, state=state.reorder(picks))
    assert state.seen == 9
    for row, pick in enumerate(picks.tolist()):
        skip = 2 if padded and pick < 3 else 0
        whole = torch.cat((prompt[pick // 3, skip:], then[pick], last[row]))
        assert_same(out[row], mixer(whole[None])[0, -2:])


@every_mixer
def test_states_fork(either_way, kind):
    """A state does not change when several streams continue from it."""
    mixer = random_mixer(kind)
    x, one, other = random_tokens(2, 5), random_tokens(2, 3, seed=2), random_tokens(2, 3, seed=3)
    _, state = mixer(x, state=mixer.empty_state(2))
    first, after_one = mixer(one, state=state)
    again, _ = mixer(other, state=state)
    more, _ = mixer(other, state=after_one)
    assert_same(first, mixer(torch.cat((x, one), dim=1))[:, 5:])
    assert_same(again, mixer(torch.cat((x, other), dim=1))[:, 5:])
    assert_same(more, mixer(torch.cat((x, one, other), dim=1))[:, 8:])


@every_mixer
def test_crop_takes_tokens_back(either_way, kind):
    mixer = random_mixer(kind)
    x, wrong = random_tokens(2, 6), random_tokens(2, 3, seed=2)
    _, state = mixer(x[:, :4], state=mixer.empty_state(2, rollback=3))
    _, ahead = mixer(wrong, state=state)
    out, _ = mixer(x[:, 4:], state=ahead.crop(3))
    assert ahead.crop(3).seen == 4
    assert_same(out, mixer(x)[:, 4:])
    assert ahead.crop(0).seen == 7
    for wrong in (8, -1):
        with pytest.raises(ValueError, match=f"crop can take back .* got {wrong}"):
            ahead.crop(wrong)


@every_mixer
def test_states_have_the_precision_of_the_layer(kind):
    mixer = random_mixer(kind).double()
    x = random_tokens(2, 6).double()
    assert_same(_stream(mixer, x, [3, 1, 2]), mixer(x), 1e-12)


@every_mixer
def test_gradients_flow_through_steps(kind):
    mixer = random_mixer(kind)
    at_once = random_tokens(2, 7).requires_grad_()
    stepped = at_once.detach().clone().requires_grad_()
    weights = random_tokens(2, 7, seed=4)
    (mixer(at_once) * weights).sum().backward()
    expected = [parameter.grad.clone() for parameter in mixer.parameters()]
    mixer.zero_grad()
    (_stream(mixer, stepped, [3, 1, 1, 2]) * weights).sum().backward()
    assert_same(stepped.grad, at_once.grad, 1e-5)
    for parameter, grad in zip(mixer.parameters(), expected, strict=True):
        assert grad.abs().sum() > 0
        assert_same(parameter.grad, grad, 3e-5)


@pytest.mark.parametrize("kind", ["talk", "light", "dynamic"])
def test_states_of_convolutions_do_not_grow(kind):
    mixer = random_mixer(kind)
    state = mixer.empty_state(1)
    for tokens in (1, 50, 1, 3):
        _, state = mixer(random_tokens(1, tokens), state=state)
        assert state.tokens.shape == (1, 4, DIM)
        assert state.tokens.untyped_storage().nbytes() <= 4 * 60 * DIM


@every_mixer
@both_sides
@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions(kind, r_max, dtype):
    mixer = random_mixer(kind, r_max=r_max)
    x = random_tokens(2, 9)
    expected = mixer(x)
    with no_onednn():
        out = mixer.to(dtype)(x.to(dtype))
    assert out.dtype == dtype
    assert_same(out.float(), expected, 1e-1 if dtype.itemsize == 2 else 1e-5)


@every_mixer
@both_sides
@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_autocast(kind, r_max):
    mixer = random_mixer(kind, r_max=r_max)
    x = random_tokens(2, 9)
    with no_onednn(), torch.autocast("cpu", torch.bfloat16):
        out = mixer(x)
    assert_same(out.float(), mixer(x), 1e-1)


@every_mixer
@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_a_stream_under_autocast(kind):
    mixer = random_mixer(kind)
    x = random_tokens(2, 9)
    state, parts = mixer.empty_state(2), []
    with no_onednn(), torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for tokens in x.bfloat16().split([4, 1, 4], dim=1):
            out, state = mixer(tokens, state=state)
            parts.append(out.float())
    assert_same(torch.cat(parts, dim=1), mixer(x), 1e-1)


@every_mixer
@both_sides
def test_compiles_without_a_break(kind, r_max):
    mixer = random_mixer(kind, r_max=r_max)
    torch.compiler.reset()  # mixers share their code, and it is compiled for so many at most
    compiled = torch.compile(mixer, backend="aot_eager", fullgraph=True)
    x, mask = random_tokens(2, 9), torch.zeros(2, 9, dtype=torch.bool)
    mask[1, 6:] = True
    assert_same(compiled(x), mixer(x))
    assert_same(compiled(x, padding_mask=mask)[~mask], mixer(x, padding_mask=mask)[~mask])


@every_mixer
def test_compiles_steps(kind):
    mixer = random_mixer(kind)
    torch.compiler.reset()  # mixers share their code, and it is compiled for so many at most
    compiled = torch.compile(mixer, backend="aot_eager", fullgraph=True)
    x = random_tokens(2, 6)
    with torch.no_grad():
        assert_same(_stream(compiled, x, [3, 1, 1, 1]), mixer(x))


@every_mixer
def test_empty_batches(kind):
    mixer = random_mixer(kind)
    assert mixer(random_tokens(0, 5)).shape == (0, 5, DIM)


@every_mixer
def test_bad_calls(kind):
    causal, two_sided = random_mixer(kind), random_mixer(kind, r_max=4)
    x, lengths = random_tokens(2, 5), torch.tensor([5, 3])
    mask = torch.zeros(2, 5, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"x must be \(B, T, dim\) with dim = 12, got \(2, 5, 6\)"):
        causal(x[..., :6])
    with pytest.raises(ValueError, match=r"x must be \(N, dim\)"):
        causal(x, cu_seqlens=torch.tensor([0, 5]))
    with pytest.raises(ValueError, match=r"padding_mask must be bool \(B, T\) = \(2, 5\)"):
        causal(x, padding_mask=mask[:, :4])
    with pytest.raises(ValueError, match=r"True at padding, got torch.float32 \(2, 5\)"):
        causal(x, padding_mask=mask.float())
    with pytest.raises(ValueError, match=r"lengths must be \(B,\) with B = 2, got \(1,\)"):
        causal(x, lengths=lengths[:1])
    with pytest.raises(ValueError, match="pass one of lengths"):
        causal(x, padding_mask=mask, lengths=lengths)
    with pytest.raises(ValueError, match="needs a causal mixer"):
        two_sided(x, state=causal.empty_state(2))
    with pytest.raises(ValueError, match="Pad prompts on the left"):
        causal(x, lengths=lengths, state=causal.empty_state(2))
    with pytest.raises(ValueError, match="Pad prompts on the left"):
        causal(x[0], cu_seqlens=torch.tensor([0, 5]), state=causal.empty_state(1))
    with pytest.raises(ValueError, match="opens beams"):
        causal(x, state=causal.empty_state(1))
    with pytest.raises(ValueError, match="n must be at least 1"):
        causal.empty_state(1).repeat(0)


def _stream(mixer, x, chunks, mask=None):
    state = getattr(mixer, "_orig_mod", mixer).empty_state(x.shape[0])
    outs = []
    for part, part_mask in zip(
        x.split(chunks, dim=1),
        [None] * len(chunks) if mask is None else mask.split(chunks, dim=1),
        strict=True,
    ):
        out, state = mixer(part, padding_mask=part_mask, state=state)
        outs.append(out)
    return torch.cat(outs, dim=1)
