"""Loads the parameters of the authors' networks into ours, under our names."""

import re

import torch
from torch import Tensor

from talkconv.models.causal_lm import TaLKConvForCausalLM
from talkconv.models.fairseq import Checkpoint, CheckpointError, config_of
from talkconv.models.generative import TaLKConvGenerativeModel
from talkconv.models.seq2seq import TaLKConvForConditionalGeneration

# (their name, our name), tried in order. A name that matches none of them is the same in both.
_RENAMED = [
    (r"^(encoder|decoder)\.layer_norm\.", r"\1.norm."),
    (r"\.linear1\.", ".mixer_unit.in_proj."),
    (r"\.linear2\.", ".mixer_unit.out_proj."),
    (r"\.conv\.offsets\.", ".mixer_unit.mixer.to_offsets."),
    (r"\.fc1\.", ".feed_forward.widen."),
    (r"\.fc2\.", ".feed_forward.narrow."),
    (r"\.(layer_norms\.0|conv_layer_norm)\.", ".mixer_norm."),
    (r"\.(layer_norms\.1|final_layer_norm)\.", ".feed_forward_norm."),
    (r"\.encoder_attn_layer_norm\.", ".cross_attention_norm."),
    (r"\.encoder_attn\.q_proj\.", ".cross_attention.to_query."),
    (r"\.encoder_attn\.k_proj\.", ".cross_attention.to_key."),
    (r"\.encoder_attn\.v_proj\.", ".cross_attention.to_value."),
    (r"\.encoder_attn\.out_proj\.", ".cross_attention.to_out."),
    (r"^decoder\.embed_out$", "lm_head.weight"),
    (r"\.embed_tokens\.embeddings\.(\d+)\.0\.", r".embed_tokens.embeddings.\1."),
    (r"\.embed_tokens\.embeddings\.(\d+)\.1\.", r".embed_tokens.projections.\1."),
    (r"^decoder\.adaptive_softmax\.head\.class_proj\.", "adaptive_softmax.clusters."),
    (r"^decoder\.adaptive_softmax\.head\.word_proj\.weight$", "adaptive_softmax.words.0"),
    (r"^decoder\.adaptive_softmax\.tail\.(\d+)\.0\.weight$", r"adaptive_softmax.projections.\1"),
]
# buffers without content
_EMPTY = re.compile(r"(^|\.)(version|_float_tensor)$")
_TAIL_WORDS = re.compile(r"^decoder\.adaptive_softmax\.tail\.(\d+)\.2\.weight$")


def network_of(checkpoint: Checkpoint) -> TaLKConvGenerativeModel:
    """Make the network of a checkpoint, ready to use, in eval mode."""
    config = config_of(checkpoint)
    network = TaLKConvForConditionalGeneration if checkpoint.is_seq2seq else TaLKConvForCausalLM
    model: TaLKConvGenerativeModel = network(config).eval()
    weights = {
        _our_name(name): value
        for name, value in checkpoint.weights.items()
        if not _EMPTY.search(name)
    }
    _drop_copies(checkpoint, model, weights)
    _check_names_and_shapes(checkpoint, model, weights)
    model.load_state_dict(weights, strict=False)
    model.tie_weights()
    return model


def _our_name(name: str) -> str:
    tail = _TAIL_WORDS.match(name)
    if tail:
        # The words of the first band belong to the head, so the first tail is band 1.
        return f"adaptive_softmax.words.{int(tail.group(1)) + 1}"
    for theirs, ours in _RENAMED:
        name, found = re.subn(theirs, ours, name)
        if found:
            break
    return name


def _drop_copies(
    checkpoint: Checkpoint, model: TaLKConvGenerativeModel, weights: dict[str, Tensor]
) -> None:
    """Remove the copies of tied parameters. Raise an error if a copy differs from its source."""
    for copy, source in model.all_tied_weights_keys.items():
        stored = weights.pop(copy, None)
        original = weights.get(source)
        if stored is None or original is None:
            continue
        if stored.shape != original.shape or not torch.equal(stored, original):
            raise CheckpointError(
                f"{checkpoint.path} says that {copy} and {source} are one parameter, but their "
                "values differ: the file was put together from parts of other checkpoints"
            )


def _check_names_and_shapes(
    checkpoint: Checkpoint, model: TaLKConvGenerativeModel, weights: dict[str, Tensor]
) -> None:
    wanted = {
        name: parameter.shape
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if name not in model.all_tied_weights_keys
    }
    missing, foreign = wanted.keys() - weights.keys(), weights.keys() - wanted.keys()
    if missing or foreign:
        few = [f"has no {name}" for name in sorted(missing)[:3]]
        few += [f"has {name}" for name in sorted(foreign)[:3]]
        raise CheckpointError(
            f"{checkpoint.path} does not hold the network that its args describe: "
            f"it {', '.join(few)} ({len(missing)} missing, {len(foreign)} too many)"
        )
    for name, shape in wanted.items():
        if weights[name].shape != shape:
            raise CheckpointError(
                f"{checkpoint.path} does not hold the network that its args describe: {name} must "
                f"be {tuple(shape)}, got {tuple(weights[name].shape)}"
            )
