"""Translates unseen sentences, and marks the words that differ from the reference."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape

from talkconv.data.prepared import Prepared
from talkconv.evaluation.bleu import corpus_bleu
from talkconv.generation.text_generator import generate_texts
from talkconv.runs.open_run import Run

# the number of sentences to translate; with so many, BLEU varies by less than half a point
SENTENCES = 500


@dataclass(frozen=True)
class Translation:
    source: str
    reference: str
    output: str

    @property
    def right(self) -> bool:
        return self.output == self.reference


def translate(run: Run, prepared: Prepared, most: int = SENTENCES) -> list[Translation]:
    """Translate the first sentences of the test split with the run's settings."""
    sources, references = prepared.texts("test")
    outputs = generate_texts(run.model, run.tokenizer, sources[:most], run.card.generation)
    return [
        Translation(source, reference, output[0].text)
        for source, reference, output in zip(sources, references, outputs, strict=False)
    ]


def bleu_of(translations: Sequence[Translation]) -> float:
    outputs = [one.output for one in translations]
    return corpus_bleu(outputs, [one.reference for one in translations]).value


def chosen(
    translations: Sequence[Translation], count: int = 12, wrong: int = 4
) -> list[Translation]:
    """Choose `count` translations to show, in their order, with `wrong` wrong ones if possible.

    The right ones are of medium length, because short ones such as "He sleeps." show little.
    """
    middling = [one for one in translations if one.right and 8 <= len(one.source.split()) <= 18]
    right = middling or [one for one in translations if one.right]
    mistakes = [one for one in translations if not one.right]
    kept = mistakes[: max(wrong, count - len(right))]
    kept += right[: count - len(kept)]
    return [one for one in translations if one in kept][:count]


def marked(output: str, reference: str) -> tuple[str, str]:
    """Return both texts as HTML, with the different words marked.

    >>> marked("a red hat", "a hat")
    ('a <mark>red</mark> hat', 'a hat')
    """
    ours, theirs = output.split(), reference.split()
    left: list[str] = []
    right: list[str] = []
    for kind, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        for words, side in ((ours[a:b], left), (theirs[c:d], right)):
            if words:
                text = escape(" ".join(words))
                side.append(text if kind == "equal" else f"<mark>{text}</mark>")
    return " ".join(left), " ".join(right)
