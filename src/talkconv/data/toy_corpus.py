"""Offers the built-in corpus in the form of the other corpora."""

from collections.abc import Iterator

from talkconv.data.corpus import SPLITS, Corpus, Row, Split
from talkconv.data.data_settings import DataSettings
from talkconv.data.lines import Reading
from talkconv.data.toy import generate

# Valid and test each have at least so many pairs, or this fraction of the training pairs.
_FEWEST, _PART = 100, 80


def toy(settings: DataSettings) -> Corpus:
    """Make settings.toy_pairs training pairs, in either direction."""
    langs = (settings.source_lang, settings.target_lang)
    if sorted(langs) != ["de", "en"]:
        raise ValueError(f"the toy corpus has German and English, got {langs[0]} and {langs[1]}")
    few = max(_FEWEST, settings.toy_pairs // _PART)
    sizes = {"train": settings.toy_pairs, "valid": few, "test": few}
    splits = {name: _split(name, sizes[name], langs == ("de", "en")) for name in SPLITS}
    return Corpus(splits, identity=f"toy {sizes}")


def _split(name: str, size: int, forward: bool) -> Split:
    def rows(reading: Reading) -> Iterator[Row]:
        for pair in generate({name: size})[name]:
            yield pair if forward else (pair.target, pair.source)

    return Split([], rows)
