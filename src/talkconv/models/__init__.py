"""Whole networks, as models of transformers: `pip install "talkconv[text]"`."""

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from talkconv.data.tokenizer import TaLKConvTokenizer
from talkconv.models.cache import TaLKConvCache
from talkconv.models.causal_lm import TaLKConvForCausalLM
from talkconv.models.classification import (
    TaLKConvForSequenceClassification,
    TaLKConvForTokenClassification,
)
from talkconv.models.configuration import TaLKConvConfig
from talkconv.models.headless import TaLKConvModel
from talkconv.models.presets import preset
from talkconv.models.seq2seq import TaLKConvForConditionalGeneration

AutoConfig.register("talkconv", TaLKConvConfig)
AutoModel.register(TaLKConvConfig, TaLKConvModel)
AutoModelForSeq2SeqLM.register(TaLKConvConfig, TaLKConvForConditionalGeneration)
AutoModelForCausalLM.register(TaLKConvConfig, TaLKConvForCausalLM)
AutoModelForSequenceClassification.register(TaLKConvConfig, TaLKConvForSequenceClassification)
AutoModelForTokenClassification.register(TaLKConvConfig, TaLKConvForTokenClassification)
AutoTokenizer.register(TaLKConvConfig, fast_tokenizer_class=TaLKConvTokenizer)

__all__ = [
    "TaLKConvCache",
    "TaLKConvConfig",
    "TaLKConvForCausalLM",
    "TaLKConvForConditionalGeneration",
    "TaLKConvForSequenceClassification",
    "TaLKConvForTokenClassification",
    "TaLKConvModel",
    "preset",
]
