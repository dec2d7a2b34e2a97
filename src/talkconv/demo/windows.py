"""Chooses the sentences whose windows the page of the demo shows."""

import re
from collections.abc import Sequence

from transformers import BatchEncoding

from talkconv.data.tokenizer import TaLKConvTokenizer
from talkconv.demo.translations import Translation
from talkconv.models import TaLKConvForConditionalGeneration
from talkconv.report.looks import Look
from talkconv.report.windows import look_at

# The kinds of sentences. Of each kind, the page shows the longest one that fits on a phone.
KINDS = {
    "a separable verb": r" (ab|an|auf|ein|mit|vor|weg|zu|zurück)\.$",
    "the verb last": r", (weil|obwohl|während|bevor) ",
    "a relative clause": r", (der|die|das|den|dem|denen) ",
    "an object first": r"^(Den|Dem|Der \w+ hilft|Diesen|Einen) ",
    "a number": r"und(zwan|drei|vier|fünf|sech|sieb|acht|neun)\w+ ",
    "a question": r"\?$",
}
MOST_TOKENS, CANDIDATES = 18, 20


def looks(
    model: TaLKConvForConditionalGeneration,
    tokenizer: TaLKConvTokenizer,
    translations: Sequence[Translation],
) -> list[Look]:
    """Return the windows of one sentence of each kind, translated correctly if possible."""
    found = []
    for kind, pattern in KINDS.items():
        fitting = [one for one in translations if re.search(pattern, one.source)]
        right = [one for one in fitting if one.right]
        best = _longest(tokenizer, right) or _longest(tokenizer, fitting)
        if best is not None:
            source = _ids(tokenizer(best.source))
            target = _ids(tokenizer(text_target=best.output))
            found.append(look_at(model, tokenizer, f"{best.source} ({kind})", source, target))
    return found


def _longest(
    tokenizer: TaLKConvTokenizer, translations: Sequence[Translation]
) -> Translation | None:
    """Return the longest of the first sentences that has at most MOST_TOKENS tokens."""
    lengths = {one: len(_ids(tokenizer(one.source))) for one in translations[:CANDIDATES]}
    short = [one for one, length in lengths.items() if length <= MOST_TOKENS]
    return max(short, key=lambda one: lengths[one], default=None)


def _ids(encoded: BatchEncoding) -> list[int]:
    ids: list[int] = encoded["input_ids"]
    return ids
