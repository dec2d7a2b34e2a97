"""Decides which calls of generate() our beam search answers, and answers them.

transformers' own beam search sorts all words of all beams and reads the prompt once for each beam.
Ours sorts few words and reads the prompt once for each sentence, and finds the same outputs. It
knows the settings in `_KNOWN`; a call with others (sampling, more outputs, other processors of
scores) goes to transformers. Greedy search is a beam search with one beam.
"""

import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed
from torch import Tensor, nn
from transformers import (
    EosTokenCriteria,
    GenerationConfig,
    LogitsProcessorList,
    MaxLengthCriteria,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    StoppingCriteriaList,
)
from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled
from transformers.integrations.fsdp import is_fsdp_managed_module

from talkconv.search.beam_search import BeamSettings, beam_search, candidates
from talkconv.search.hypotheses import Rules
from talkconv.search.limits import longest_output
from talkconv.search.network import Ints, end_tokens

# The settings that our search follows.
_KNOWN = {
    "num_beams",
    "num_return_sequences",
    "length_penalty",
    "early_stopping",
    "max_length",
    "max_new_tokens",
    "min_length",
    "min_new_tokens",
    "no_repeat_ngram_size",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "decoder_start_token_id",
    # settings of our own, which transformers keeps without following them
    "max_ratio",
    "max_extra",
    "stepwise_length_penalty",
}
# Settings without an effect on beam search: those of sampling, and a note.
_IDLE = {
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "top_h",
    "typical_p",
    "epsilon_cutoff",
    "eta_cutoff",
    "transformers_version",
}
# Every other setting must be unset or have the value that changes nothing.
_NEUTRAL = {
    "do_sample": False,
    "use_cache": True,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "diversity_penalty": 0.0,
    "num_beam_groups": 1,
    "remove_invalid_values": False,
    "return_dict_in_generate": False,
    "output_attentions": False,
    "output_hidden_states": False,
    "output_logits": False,
    "output_scores": False,
}
# The inputs of a network that our search passes on.
_INPUTS = {"input_ids", "attention_mask", "decoder_input_ids", "encoder_outputs"}
_PROCESSORS = (
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
)
_CRITERIA = (MaxLengthCriteria, EosTokenCriteria)


def with_length(
    defaults: GenerationConfig, given: GenerationConfig | None, kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return `kwargs` in which a length given by the call takes precedence over the network's.

    transformers prefers max_new_tokens to max_length and min_new_tokens to min_length, even if only
    the network's own settings have the former. A length in the call also removes our own limits,
    which depend on the length of the source.
    """
    kwargs = dict(kwargs)

    def is_named(name: str) -> bool:
        return kwargs.get(name) is not None or getattr(given, name, None) is not None

    for total, new in (("max_length", "max_new_tokens"), ("min_length", "min_new_tokens")):
        if is_named(total) and not is_named(new) and getattr(defaults, new) is not None:
            kwargs[new] = None
    if is_named("max_length") or is_named("max_new_tokens"):
        ours = [name for name in ("max_ratio", "max_extra") if hasattr(defaults, name)]
        kwargs.update(dict.fromkeys(ours))
    return kwargs


def merged_settings(
    defaults: GenerationConfig, given: GenerationConfig | None, kwargs: dict[str, Any]
) -> tuple[GenerationConfig, dict[str, Any]]:
    """Return the settings that generate() will follow, and the keywords that are not settings.

    `defaults` are the network's own settings, `given` and `kwargs` those of the call.
    """
    settings = copy.deepcopy(given) if given is not None else GenerationConfig()
    settings.update(**defaults.to_dict(), defaults_only=True, allow_custom_entries=True)
    return settings, settings.update(**kwargs)


def can_search(settings: GenerationConfig, inputs: dict[str, Any], vocab_size: int) -> bool:
    """Return whether our beam search gives what generate() would with these settings."""
    chosen = {name: value for name, value in settings.to_dict().items() if value is not None}
    others = chosen.keys() - _KNOWN - _IDLE
    given = {name for name, value in inputs.items() if value is not None}
    return (
        all(_NEUTRAL.get(name) == chosen[name] for name in others if name[0] != "_")
        and given <= _INPUTS
        and vocab_size >= candidates(chosen.get("num_beams", 1), _end_tokens(settings))
    )


def search(
    model: Any,
    input_ids: Tensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    **model_kwargs: Any,
) -> Tensor:
    """Search as the `custom_generate` of GenerationMixin.generate().

    input_ids (B * num_beams, p) are the prompts. The result is (B * num_return_sequences, T).
    """
    _check_rules(logits_processor, stopping_criteria)
    # transformers repeats every input for each beam, but our search reads a prompt once
    rows = slice(None, None, generation_config.num_beams)
    prompt = input_ids[rows]
    mask = _rows(model_kwargs.get("attention_mask"), rows)
    states = _rows(_states(model_kwargs.get("encoder_outputs")), rows)
    settings = _beam_settings(generation_config, prompt.shape[1])
    if states is not None:
        limits = _limits(generation_config, settings, prompt.shape[1], _lengths(states, mask))
        settings = replace(settings, limits=limits)
    step = model.search_step(len(prompt), mask, states)
    found = beam_search(step, prompt.cpu().numpy(), settings)
    best = found.best(generation_config.num_return_sequences)
    tokens = torch.from_numpy(best.tokens).flatten(0, 1)
    return tokens[:, : int(best.lengths.max())].to(input_ids.device)


def _beam_settings(config: GenerationConfig, prompt: int) -> BeamSettings:
    eos = _end_tokens(config)
    pad = config.pad_token_id
    return BeamSettings(
        num_beams=config.num_beams,
        max_length=config.max_length,
        pad=next(iter(eos), 0) if pad is None else int(pad),
        length_penalty=config.length_penalty,
        # one beam is greedy search, which stops at the first end token
        early_stopping=config.early_stopping if config.num_beams > 1 else True,
        step_penalty=getattr(config, "stepwise_length_penalty", None) or 0.0,
        rules=Rules(
            eos=eos,
            min_length=max(config.min_length or 0, prompt + (config.min_new_tokens or 0)),
            no_repeat_ngram=config.no_repeat_ngram_size or 0,
        ),
    )


def _limits(
    config: GenerationConfig, settings: BeamSettings, prompt: int, lengths: list[int]
) -> Ints | None:
    """Return the largest number of tokens of each output, which depends on its source's length.

    Return None if there is no such limit.
    """
    max_ratio, max_extra = (getattr(config, name, None) for name in ("max_ratio", "max_extra"))
    if max_ratio is None or max_extra is None:
        return None
    longest = partial(
        longest_output,
        max_length=settings.max_length - prompt,
        min_length=settings.rules.min_length - prompt,
        max_ratio=max_ratio,
        max_extra=max_extra,
    )
    return np.array([prompt + longest(length) for length in lengths])


def _lengths(states: Tensor, mask: Tensor | None) -> list[int]:
    """Return the number of tokens of each source: states (B, S, dim), mask (B, S) 0 at padding."""
    if mask is None:
        return [states.shape[1]] * len(states)
    lengths: list[int] = mask.sum(dim=1).tolist()
    return lengths


def _end_tokens(config: GenerationConfig) -> tuple[int, ...]:
    eos: Any = config.eos_token_id
    return end_tokens(eos.tolist() if isinstance(eos, Tensor) else eos)


def is_sharded(model: nn.Module) -> bool:
    """Return whether all processes must make the same number of steps, as transformers ensures."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return False
    sharded = is_fsdp_managed_module(model) or is_deepspeed_zero3_enabled()
    return bool(sharded) and torch.distributed.get_world_size() > 1


def _check_rules(processors: LogitsProcessorList, criteria: StoppingCriteriaList) -> None:
    """Raise an error if transformers made rules of the settings that our search does not know."""
    strange = [type(each) for each in processors if type(each) not in _PROCESSORS]
    strange += [type(each) for each in criteria if type(each) not in _CRITERIA]
    if strange:
        raise NotImplementedError(
            f"this beam search does not know {strange[0].__name__}, which this version of "
            "transformers adds to every search: use a version in the range of pyproject.toml"
        )


def _states(outputs: Any) -> Tensor | None:
    """Return the states of the encoder (B, S, dim)."""
    states: Tensor | None = None if outputs is None else outputs[0]
    return states


def _rows(x: Tensor | None, rows: slice) -> Tensor | None:
    return None if x is None else x[rows]
