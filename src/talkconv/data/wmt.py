"""Reads WMT 2016 English-German and WMT 2014 English-French: line files and sgm test sets."""

from collections.abc import Iterator
from pathlib import Path

from talkconv.data.corpus import Corpus, Row, Split, missing
from talkconv.data.data_settings import DataSettings
from talkconv.data.lines import Reading, aligned, find_below, read_pairs
from talkconv.data.markup import read_segments

_GERMAN = ("europarl-v7.de-en", "commoncrawl.de-en", "news-commentary-v11.de-en")
_FRENCH = (
    "europarl-v7.fr-en",
    "commoncrawl.fr-en",
    "news-commentary-v9.fr-en",
    "undoc.2000.fr-en",
    "giga-fren.release2.fixed",
)


def wmt16_en_de(raw: Path, settings: DataSettings) -> Corpus:
    """Read all of WMT 2016 for training, newstest2013 for validation, newstest2014 for test."""
    return _wmt(raw, settings, "de", _GERMAN, ["newstest2013"], ["newstest2014-deen"])


def wmt14_en_fr(raw: Path, settings: DataSettings) -> Corpus:
    """Read WMT 2014, newstest2012 and 2013 together for validation, newstest2014 for test."""
    valid = ["newstest2012", "newstest2013"]
    return _wmt(raw, settings, "fr", _FRENCH, valid, ["newstest2014-fren"])


def _wmt(
    raw: Path,
    settings: DataSettings,
    foreign: str,
    train: tuple[str, ...],
    valid: list[str],
    test: list[str],
) -> Corpus:
    langs = (settings.source_lang, settings.target_lang)
    if sorted(langs) != sorted(["en", foreign]):
        raise ValueError(f"this corpus has en and {foreign}, got {langs[0]} and {langs[1]}")
    wanted = {
        "train": [[f"{stem}.{lang}" for lang in langs] for stem in train],
        "valid": [_sets(name, langs) for name in valid],
        "test": [_sets(name, langs) for name in test],
    }
    names = [name for pairs in wanted.values() for pair in pairs for name in pair]
    found = {name: path for name in names if (path := find_below(raw, name))}
    absent = [name for name in names if name not in found]
    if absent:
        raise missing(raw, absent, "Unpack the archives of the translation task there.")
    paths = {
        split: [[found[name] for name in pair] for pair in pairs] for split, pairs in wanted.items()
    }
    return Corpus({split: _split(pairs) for split, pairs in paths.items()})


def _sets(name: str, langs: tuple[str, str]) -> list[str]:
    """Return the sgm files of a test set: newstest2013-src.en.sgm, newstest2013-ref.de.sgm."""
    return [f"{name}-{role}.{lang}.sgm" for role, lang in zip(("src", "ref"), langs, strict=True)]


def _split(pairs: list[list[Path]]) -> Split:
    def rows(reading: Reading) -> Iterator[Row]:
        for source, target in pairs:
            if ".sgm" in source.suffixes:
                sides = [read_segments(path, reading) for path in (source, target)]
                yield from aligned(sides, (source, target))
            else:
                yield from read_pairs(source, target, reading)

    return Split([path for pair in pairs for path in pair], rows)
