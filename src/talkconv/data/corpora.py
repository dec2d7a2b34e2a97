"""Opens every corpus by its name."""

from collections.abc import Callable
from pathlib import Path

from talkconv.data.cnn_dailymail import cnn_dailymail
from talkconv.data.corpus import Corpus
from talkconv.data.data_settings import HUB, DataSettings
from talkconv.data.iwslt import iwslt14
from talkconv.data.own_files import pairs, summaries, text, wikitext
from talkconv.data.toy_corpus import toy
from talkconv.data.wmt import wmt14_en_fr, wmt16_en_de

_READERS: dict[str, Callable[[Path, DataSettings], Corpus]] = {
    "iwslt14": iwslt14,
    "wmt16_en_de": wmt16_en_de,
    "wmt14_en_fr": wmt14_en_fr,
    "cnn_dailymail": cnn_dailymail,
    "wikitext": wikitext,
    "pairs": pairs,
    "summaries": summaries,
    "text": text,
}


def open_corpus(raw: Path | None, settings: DataSettings) -> Corpus:
    """Open the corpus of `settings` in the folder `raw`.

    The corpora "toy" and "datasets:NAME" need no folder.
    """
    if settings.corpus.startswith(HUB):
        # The library takes seconds to import, and other corpora do not need it.
        from talkconv.data.hub import hub

        return hub(raw, settings)
    if settings.corpus == "toy":
        return toy(settings)
    if raw is None:
        raise ValueError(f"the corpus {settings.corpus} needs its raw files: --raw DIR")
    if not raw.is_dir():
        raise ValueError(f"{raw} must be a folder with raw files, and is not a folder")
    return _READERS[settings.corpus](raw, settings)
