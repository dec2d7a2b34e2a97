from dataclasses import fields

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from talkconv import DecoderBlock, EncoderBlock
from talkconv.layers import MIXERS, AdaptiveInput, BlockSettings, SinusoidalPositions
from talkconv.network_settings import NetworkSettings
from tests.layers.cases import DIM, HEADS, assert_same, random_parameters, random_tokens

every_mixer = pytest.mark.parametrize("mixer", MIXERS)

# fairseq's names of the authors' parameters, by ours
ENCODER = {
    "mixer_unit.in_proj": "linear1",
    "mixer_unit.mixer.to_offsets": "conv.offsets",
    "mixer_unit.out_proj": "linear2",
    "mixer_norm": "layer_norms.0",
    "feed_forward.widen": "fc1",
    "feed_forward.narrow": "fc2",
    "feed_forward_norm": "layer_norms.1",
}
DECODER = ENCODER | {
    "mixer_norm": "conv_layer_norm",
    "feed_forward_norm": "final_layer_norm",
}


def encoder_block(**settings):
    sizes = dict(dim=DIM, heads=HEADS, ff_dim=20, l_max=3, r_max=3)
    return random_parameters(EncoderBlock(**sizes | settings))


def decoder_block(**settings):
    return random_parameters(DecoderBlock(DIM, HEADS, 20, 3, **settings))


def load_authors(block, names, state, prefix):
    block.load_state_dict(
        {
            f"{ours}.{kind}": state[f"{prefix}.{theirs}.{kind}"]
            for ours, theirs in names.items()
            for kind in ("weight", "bias")
        }
    )
    return block.eval()


def test_the_authors_language_model(authors):
    """This is the whole network without its softmax: gate, pre-norm, no encoder, adaptive input."""
    state, io = authors("lm_adaptive.pt")["model"], authors("lm_adaptive.io.pt")
    embedding = AdaptiveInput(120, 32, cutoffs=[40, 80])
    for band in range(3):
        name = f"decoder.embed_tokens.embeddings.{band}"
        embedding.embeddings[band].weight.data = state[f"{name}.0.weight"]
        embedding.projections[band].weight.data = state[f"{name}.1.weight"]
    tokens = io["tokens"]
    x = SinusoidalPositions(32)(embedding(tokens) * 32**0.5)
    for layer, l_max in enumerate([3, 5, 9]):
        block = DecoderBlock(32, 4, 48, l_max, norm_first=True)
        x = load_authors(block, DECODER, state, f"decoder.layers.{layer}")(x)
    assert_same(x, io["hidden"], 1e-5)


def test_the_authors_encoder(authors):
    """It has no gate, post-norm and padding. The rows of padded tokens are not compared."""
    name = "seq2seq_noglu_separate"
    state, io = authors(f"{name}.pt")["model"], authors(f"{name}.io.pt")
    tokens = io["src_tokens"]
    mask = tokens == 1
    x = nn.functional.embedding(tokens, state["encoder.embed_tokens.weight"]) * 32**0.5
    x = SinusoidalPositions(32)(x, padding_mask=mask)
    for layer, reach in enumerate([1, 3, 7]):
        block = EncoderBlock(32, 4, 48, reach, reach, gate=False)
        load_authors(block, ENCODER, state, f"encoder.layers.{layer}")
        x = block(x, src_key_padding_mask=mask)
    assert mask.any()
    assert_same(x[~mask], io["encoder_out"][~mask], 1e-5)


def copy_to_torch(module, block):
    """Copy the parameters of a block with attention into torch's Transformer layer."""
    attention, unit = module.self_attn, block.mixer_unit.mixer
    attention.in_proj_weight.data = unit.to_qkv.weight.data
    attention.in_proj_bias.data = unit.to_qkv.bias.data
    attention.out_proj.load_state_dict(unit.to_out.state_dict())
    module.linear1.load_state_dict(block.feed_forward.widen.state_dict())
    module.linear2.load_state_dict(block.feed_forward.narrow.state_dict())
    module.norm1.load_state_dict(block.mixer_norm.state_dict())
    return module.eval()


@pytest.mark.parametrize("norm_first", [False, True])
def test_attention_makes_the_ordinary_transformer_encoder(norm_first):
    block = encoder_block(mixer="attention", activation="relu", norm_first=norm_first)
    layer = nn.TransformerEncoderLayer(DIM, HEADS, 20, batch_first=True, norm_first=norm_first)
    copy_to_torch(layer, block).norm2.load_state_dict(block.feed_forward_norm.state_dict())
    x, mask = random_tokens(2, 9), torch.arange(9) >= torch.tensor([9, 5])[:, None]
    expected = layer(x, src_key_padding_mask=mask)
    assert_same(block(x, src_key_padding_mask=mask)[~mask], expected[~mask], 1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_attention_makes_the_ordinary_transformer_decoder(norm_first):
    settings = dict(mixer="attention", activation="relu", norm_first=norm_first)
    block = decoder_block(encoder_dim=DIM, **settings)
    layer = nn.TransformerDecoderLayer(DIM, HEADS, 20, batch_first=True, norm_first=norm_first)
    copy_to_torch(layer, block).norm3.load_state_dict(block.feed_forward_norm.state_dict())
    layer.norm2.load_state_dict(block.cross_attention_norm.state_dict())
    theirs, ours = layer.multihead_attn, block.cross_attention
    parts = (ours.to_query, ours.to_key, ours.to_value)
    theirs.in_proj_weight.data = torch.cat([part.weight for part in parts])
    theirs.in_proj_bias.data = torch.cat([part.bias for part in parts])
    theirs.out_proj.load_state_dict(ours.to_out.state_dict())
    x, states = random_tokens(2, 6), random_tokens(2, 9, seed=2)
    mask = torch.arange(9) >= torch.tensor([9, 5])[:, None]
    ahead = torch.ones(6, 6, dtype=torch.bool).triu(1)
    expected = layer(x, states, tgt_mask=ahead, memory_key_padding_mask=mask)
    assert_same(block(x, encoder_states=states, encoder_padding_mask=mask), expected, 1e-5)


@every_mixer
@pytest.mark.parametrize("training", [False, True])
def test_swaps_into_torch_transformer_encoder(mixer, training):
    block = encoder_block(mixer=mixer, dropout=0.0)
    network = nn.TransformerEncoder(block, num_layers=2, enable_nested_tensor=False)
    network.train(training)
    x, mask = random_tokens(2, 9), torch.arange(9) >= torch.tensor([9, 5])[:, None]
    out = network(x, src_key_padding_mask=mask)
    assert_same(out[1:, :5], network(x[1:, :5]), 1e-5)
    assert_same(network(x), block(block(x)))


@every_mixer
def test_a_causal_block_accepts_the_causal_mask_alone(mixer):
    block = encoder_block(mixer=mixer, r_max=0)
    network = nn.TransformerEncoder(block, num_layers=1, enable_nested_tensor=False)
    x = random_tokens(2, 9)
    ahead = nn.Transformer.generate_square_subsequent_mask(9)
    expected = block(x)
    for mask in (ahead, ahead == -torch.inf):
        assert_same(block(x, mask), expected)
        assert_same(block(x, mask, is_causal=True), expected)
    assert_same(network(x, mask=ahead, is_causal=True), expected)
    assert_same(network(x, mask=ahead), expected)
    with pytest.raises(ValueError, match=r"must be None or the causal mask \(T, T\) = \(9, 9\)"):
        block(x, ahead.T)
    with pytest.raises(ValueError, match="got another"):
        block(x, ahead[:5, :5])


def test_a_two_sided_block_accepts_no_mask():
    block = encoder_block()
    x = random_tokens(2, 9)
    for settings in (dict(src_mask=torch.zeros(9, 9)), dict(is_causal=True)):
        with pytest.raises(ValueError, match="r_max=0 makes a causal block"):
            block(x, **settings)


@every_mixer
@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_lengths_mask_and_packed_agree(mixer, gate, norm_first):
    block = encoder_block(mixer=mixer, gate=gate, norm_first=norm_first)
    x, lengths = random_tokens(2, 9), torch.tensor([9, 5])
    mask = torch.arange(9) >= lengths[:, None]
    expected = torch.cat((block(x[:1])[0], block(x[1:, :5])[0]))
    assert_same(block(x, src_key_padding_mask=mask)[~mask], expected, 1e-5)
    assert_same(block(x, lengths=lengths)[~mask], expected, 1e-5)
    packed = block(x[~mask], cu_seqlens=torch.tensor([0, 9, 14]))
    assert_same(packed, expected, 1e-5)


@every_mixer
@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_streams(mixer, norm_first):
    block = decoder_block(mixer=mixer, norm_first=norm_first, encoder_dim=DIM)
    x, states = random_tokens(2, 8), random_tokens(2, 5, seed=2)
    mask = torch.arange(5) >= torch.tensor([3, 5])[:, None]
    expected = block(x, encoder_states=states, encoder_padding_mask=mask)
    projected = block.cross_attention.project(states, mask)
    state = block.empty_state(2)
    outs = []
    for part in x.split([3, 1, 1, 3], dim=1):
        out, state = block(part, encoder_states=projected, state=state)
        outs.append(out)
    assert_same(torch.cat(outs, dim=1), expected, 1e-5)


@every_mixer
def test_a_decoder_takes_padding_in_every_way(mixer):
    block = decoder_block(mixer=mixer)
    x, lengths = random_tokens(2, 9), torch.tensor([9, 5])
    exists = torch.arange(9) < lengths[:, None]
    expected = torch.cat((block(x[:1])[0], block(x[1:, :5])[0]))
    assert_same(block(x, lengths=lengths)[exists], expected, 1e-5)
    assert_same(block(x[exists], cu_seqlens=torch.tensor([0, 9, 14])), expected, 1e-5)


@every_mixer
def test_a_decoder_can_take_tokens_back(mixer):
    block = decoder_block(mixer=mixer)
    x = random_tokens(2, 6)
    _, state = block(x, state=block.empty_state(2, rollback=2))
    out, _ = block(x[:, 4:], state=state.crop(2))
    assert_same(out, block(x)[:, 4:], 1e-5)


@every_mixer
def test_decoder_beams_share_the_states(mixer):
    block = decoder_block(mixer=mixer, encoder_dim=6)
    prompt, states = random_tokens(2, 4), random_tokens(2, 5, seed=2)[..., :6]
    projected = block.cross_attention.project(states)
    _, state = block(prompt, encoder_states=projected, state=block.empty_state(2))
    then = random_tokens(6, 1, seed=3)
    out, _ = block(then, encoder_states=projected, state=state.repeat(3))
    whole = torch.cat((prompt.repeat_interleave(3, dim=0), then), dim=1)
    expected = block(whole, encoder_states=states.repeat_interleave(3, dim=0))
    assert_same(out, expected[:, -1:], 1e-5)


@every_mixer
def test_language_model_block_with_left_padding(mixer):
    block = decoder_block(mixer=mixer, norm_first=True)
    x = random_tokens(2, 8)
    mask = torch.arange(8) < torch.tensor([3, 0])[:, None]
    out = block(x, padding_mask=mask)
    assert_same(out[:1, 3:], block(x[:1, 3:]), 1e-5)
    assert_same(out[1:], block(x[1:]), 1e-5)


@every_mixer
@pytest.mark.parametrize("gate", [False, True])
def test_gradients_reach_every_parameter(mixer, gate):
    encoder, decoder = (
        encoder_block(mixer=mixer, gate=gate),
        decoder_block(mixer=mixer, gate=gate, encoder_dim=DIM),
    )
    x, states = random_tokens(2, 6), encoder(random_tokens(2, 9))
    decoder(x, encoder_states=states).square().sum().backward()
    for block in (encoder, decoder):
        for name, parameter in block.named_parameters():
            assert parameter.grad is not None, name
            # a bias on all keys alike changes no softmax
            if not name.endswith("to_key.bias"):
                assert parameter.grad.abs().max() > 1e-6, name


@every_mixer
def test_gradient_checkpoints_change_nothing(mixer):
    settings = dict(dropout=0.2, offset_dropout=0.2, weight_dropout=0.2, attention_dropout=0.2)
    block = encoder_block(mixer=mixer, **settings).train()
    grads = []
    for call in (block, lambda x: checkpoint(block, x, use_reentrant=False)):
        x = random_tokens(2, 9).requires_grad_()
        torch.manual_seed(0)
        call(x).square().sum().backward()
        grads.append(x.grad)
    assert torch.equal(*grads)


@every_mixer
def test_dropouts_are_for_training(mixer):
    names = ("dropout", "input_dropout", "offset_dropout", "weight_dropout")
    names += ("attention_dropout", "ff_dropout")
    own = dict(talk="offset_dropout", attention="attention_dropout")
    active = {"dropout", "ff_dropout", own.get(mixer, "weight_dropout")}
    active |= set() if mixer == "attention" else {"input_dropout"}
    x = random_tokens(1, 9)
    for name in names:
        block = encoder_block(mixer=mixer, **{"dropout": 0.0, name: 0.5}).train()
        differs = len({block(x).sum().item() for _ in range(6)}) > 1
        assert differs == (name in active), name
        block.eval()
        assert torch.equal(block(x), block(x))


def test_attention_dropout_is_over_the_encoder_too():
    block = decoder_block(encoder_dim=DIM, attention_dropout=0.5).train()
    x, states = random_tokens(1, 4), random_tokens(1, 9)
    assert not torch.equal(block(x, encoder_states=states), block(x, encoder_states=states))
    block.eval()
    assert torch.equal(block(x, encoder_states=states), block(x, encoder_states=states))


def test_heads_over_the_encoder_may_differ():
    block = decoder_block(encoder_dim=DIM, attention_heads=6)
    assert (block.mixer_unit.mixer.heads, block.cross_attention.heads) == (HEADS, 6)


def test_sums_can_be_left_without_normalization():
    """As in the first row of the ablation, sums of up to 7 tokens are not divided by 7."""
    units = [encoder_block(normalize=normalize).mixer_unit for normalize in (False, True)]
    x = random_tokens(2, 9)
    bias = units[0].out_proj.bias
    torch.testing.assert_close(units[0](x) - bias, 7 * (units[1](x) - bias))


@every_mixer
def test_blocks_compile_without_a_break(mixer):
    torch.compiler.reset()
    block = decoder_block(mixer=mixer, encoder_dim=DIM)
    compiled = torch.compile(block, backend="aot_eager", fullgraph=True)
    x, states = random_tokens(2, 6), random_tokens(2, 9, seed=2)
    assert_same(compiled(x, encoder_states=states), block(x, encoder_states=states), 1e-5)


def test_activations():
    """The feed-forward of -1 and 2 is computed by hand: swish(v) = v * sigmoid(v)."""
    values = torch.tensor([[[-1.0, 2.0]]])
    for name, expected in (("swish", [-0.268941, 1.761594]), ("relu", [0.0, 2.0])):
        feed_forward = EncoderBlock(2, 1, 2, 1, 1, activation=name).feed_forward
        for linear in (feed_forward.widen, feed_forward.narrow):
            nn.init.eye_(linear.weight)
        torch.testing.assert_close(feed_forward(values), torch.tensor([[expected]]))


def test_bad_settings_and_calls():
    with pytest.raises(ValueError, match="activation must be one of swish, relu; got 'gelu'"):
        EncoderBlock(8, 2, 16, 3, 3, activation="gelu")
    with pytest.raises(ValueError, match="one of talk, attention, light, dynamic; got 'lstm'"):
        EncoderBlock(8, 2, 16, 3, 3, mixer="lstm")
    with pytest.raises(TypeError, match="droput"):
        EncoderBlock(8, 2, 16, 3, 3, droput=0.1)
    x, states = random_tokens(1, 3), random_tokens(1, 4)
    with pytest.raises(ValueError, match="encoder_dim= gives it one"):
        decoder_block()(x, encoder_states=states)
    block = decoder_block(encoder_dim=DIM)
    with pytest.raises(ValueError, match="encoder_states= is missing"):
        block(x)
    projected, mask = block.cross_attention.project(states), torch.zeros(1, 4, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"pass the mask to project\(\)"):
        block(x, encoder_states=projected, encoder_padding_mask=mask)


def test_a_network_and_a_block_have_the_same_defaults():
    for field in fields(BlockSettings):
        if field.name != "mixer":
            assert field.default == getattr(NetworkSettings(), field.name), field.name
    assert BlockSettings().mixer == NetworkSettings().encoder_mixer
    assert BlockSettings().dropout == nn.TransformerEncoderLayer(8, 2).dropout.p
