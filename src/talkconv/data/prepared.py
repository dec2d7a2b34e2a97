"""The prepared folder, which `talkconv prepare` writes and training and evaluation read.

data.json           task, settings, counts, and the report of what was kept and dropped
tokenizer/          in transformers' format
train/ valid/ test/ arrow shards: source and target, or tokens, as lists of int32
text/               valid and test as raw text, a sentence a line
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talkconv.conventions import LANGUAGE_MODELLING
from talkconv.data.data_settings import DataSettings

if TYPE_CHECKING:
    from datasets import Dataset

    from talkconv.data.tokenizer import TaLKConvTokenizer

FORMAT = 1
CARD = "data.json"


@dataclass(frozen=True)
class Prepared:
    """An open prepared folder, whose rows are read from disk when they are needed.

    >>> prepared = open_prepared("data/multi30k_de_en")  # doctest: +SKIP
    >>> prepared.split("train")[0]["source"][-1]  # doctest: +SKIP
    2
    """

    folder: Path
    card: dict[str, Any]

    @property
    def task(self) -> str:
        return str(self.card["task"])

    @property
    def recipe(self) -> str | None:
        name = self.card["recipe"]
        return None if name is None else str(name)

    @property
    def fingerprint(self) -> str:
        """A hash of the vocabulary. If two folders have the same hash, their ids mean the same."""
        return str(self.card["vocabulary"])

    @cached_property
    def settings(self) -> DataSettings:
        return DataSettings(**self.card["settings"])

    def splits(self) -> list[str]:
        return list(self.card["splits"])

    def split(self, name: str) -> "Dataset":
        """Return the columns source and target, or tokens, as lists of int32 that include </s>."""
        # It takes a second to import, and reading the card does not need it.
        from datasets import Dataset, concatenate_datasets

        shards = sorted((self.folder / self._known(name)).glob("*.arrow"))
        return concatenate_datasets([Dataset.from_file(str(shard)) for shard in shards])

    def tokenizer(self) -> "TaLKConvTokenizer":
        # transformers takes seconds to import, and reading the card does not need it.
        from talkconv.data.tokenizer import load_tokenizer

        return load_tokenizer(self.folder / "tokenizer")

    def texts(self, name: str) -> tuple[list[str], list[str]]:
        """Return the raw sources and targets of valid or test, in the order of split(name)."""
        if self.task == LANGUAGE_MODELLING:
            raise ValueError(f"{self.folder} holds no pairs but running text: call lines({name!r})")
        source, target = (self._read(f"{name}.{side}") for side in ("source", "target"))
        return source, target

    def lines(self, name: str) -> list[str]:
        """Return the raw lines of valid or test of a language model."""
        if self.task != LANGUAGE_MODELLING:
            raise ValueError(f"{self.folder} holds pairs, not running text: call texts({name!r})")
        return self._read(f"{name}.txt")

    def _known(self, name: str) -> str:
        if name not in self.card["splits"]:
            raise ValueError(f"{self.folder} has the splits {self.splits()}, got {name!r}")
        return name

    def _read(self, name: str) -> list[str]:
        self._known(name.split(".")[0])
        path = self.folder / "text" / name
        if not path.is_file():
            raise ValueError(f"{self.folder} keeps the text of valid and test only, got {name!r}")
        # splitlines() would also split at other separators, which a sentence may contain.
        return path.read_bytes().decode().split("\n")[:-1]


def open_prepared(folder: Path | str) -> Prepared:
    """Open a folder that `talkconv prepare` wrote. A ValueError says how to make one."""
    folder = Path(folder)
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"{folder} must be a prepared folder with {CARD}: run talkconv prepare RECIPE "
            f"--raw DIR --out {folder}"
        ) from None
    except ValueError as error:
        raise ValueError(f"{folder / CARD} must be JSON, got {error}: prepare it again") from error
    found = card.get("format") if isinstance(card, dict) else None
    if found != FORMAT:
        raise ValueError(
            f"{folder / CARD} must have format {FORMAT}, got {found}: prepare it again"
        )
    return Prepared(folder, card)


def fingerprint_of(tokenizer_folder: Path) -> str:
    return sha256((tokenizer_folder / "tokenizer.json").read_bytes()).hexdigest()


def write_card(
    folder: Path,
    *,
    task: str,
    recipe: str | None,
    settings: DataSettings,
    splits: dict[str, dict[str, int]],
    report: dict[str, Any],
    inputs: Sequence[dict[str, Any]],
) -> None:
    """Write the card, which is the last file of a prepared folder.

    `inputs` describe the raw files, so that a second call recognizes that the work is done.
    """
    card = dict(
        format=FORMAT,
        task=task,
        recipe=recipe,
        settings=settings.as_dict(),
        vocabulary=fingerprint_of(folder / "tokenizer"),
        splits=splits,
        report=report,
        inputs=list(inputs),
    )
    text = json.dumps(card, indent=2, ensure_ascii=False)
    (folder / CARD).write_text(text + "\n", encoding="utf-8")
