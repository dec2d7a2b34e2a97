"""Whole networks, as transformers models: `pip install "talkconv[text]"`."""

from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from talkconv.data.tokenizer import TaLKConvTokenizer
from talkconv.models.cache import TaLKConvCache
from talkconv.models.causal_lm import TaLKConvForCausalLM
from talkconv.models.configuration import TaLKConvConfig
from talkconv.models.presets import preset
from talkconv.models.seq2seq import TaLKConvForConditionalGeneration

AutoConfig.register("talkconv", TaLKConvConfig)
AutoModelForSeq2SeqLM.register(TaLKConvConfig, TaLKConvForConditionalGeneration)
AutoModelForCausalLM.register(TaLKConvConfig, TaLKConvForCausalLM)
AutoTokenizer.register(TaLKConvConfig, fast_tokenizer_class=TaLKConvTokenizer)

__all__ = [
    "TaLKConvCache",
    "TaLKConvConfig",
    "TaLKConvForCausalLM",
    "TaLKConvForConditionalGeneration",
    "preset",
]
