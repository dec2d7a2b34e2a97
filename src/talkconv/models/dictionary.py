"""Makes tokenizers of fairseq's dictionaries, which have one word a line, most frequent first."""

from collections import Counter
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

# the ids that fairseq gives before the first word of a dictionary
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")


def read_dictionary(path: Path) -> list[str]:
    """Return all words in the order of their ids, special words first."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be a dictionary in UTF-8, got {error}") from error
    words = list(SPECIALS)
    for number, line in enumerate(lines, start=1):
        word, _, count = line.rpartition(" ")
        if not word or not count.isdecimal():
            raise ValueError(f"{path}:{number} must be a word and its count, got {line[:80]!r}")
        words.append(word)
    twice = [word for word, times in Counter(words).items() if times > 1]
    if twice:
        raise ValueError(f"{path} must have each word once, got {twice[0]!r} again")
    return words


def tokenizer_of(words: list[str]) -> PreTrainedTokenizerFast:
    """Return a tokenizer that splits at spaces. The text must be segmented already."""
    ids = {word: id for id, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", ids["</s>"])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )
