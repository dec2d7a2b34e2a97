"""The card of a run, `run.json`. Reading it needs neither torch nor transformers."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from talkconv.conventions import check_task
from talkconv.files import write_json
from talkconv.runs.generation_settings import GenerationSettings

CARD = "run.json"
FORMAT = 1
# The folders of a run's networks: the best by validation, the newest, the mean of several.
BEST, LAST, AVERAGED = "best", "last", "averaged"


@dataclass(frozen=True)
class RunCard:
    """The facts about a run that generation and evaluation need."""

    task: str
    # the recipe's name
    recipe: str
    # the absolute path of the prepared data, and the fingerprint of its vocabulary
    data: str | None = None
    fingerprint: str | None = None
    source_lang: str | None = None
    target_lang: str | None = None
    generation: GenerationSettings = field(default_factory=GenerationSettings)
    # the score that the paper reports: metric, score, table
    paper: dict[str, Any] | None = None
    # the metric that chose the best checkpoint on the validation set
    metric: str | None = None
    # the folder of the network that is used if the caller names none
    model: str = BEST
    format: int = FORMAT

    def __post_init__(self) -> None:
        check_task(self.task)
        if self.format != FORMAT:
            raise ValueError(
                f"this version reads run cards of format {FORMAT}, got {self.format}: "
                "use the version of talkconv that wrote it"
            )

    def write(self, folder: Path) -> None:
        """Replace the card of `folder` at once: a reader sees the old one or the new one."""
        write_json(folder / CARD, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> "RunCard":
        """Read the card of a run folder."""
        path = folder / CARD
        try:
            return cls.of(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError as error:
            raise ValueError(
                f"{folder} has no {CARD}: give a folder that `talkconv train` wrote"
            ) from error
        except (json.JSONDecodeError, TypeError, ValueError) as error:
            raise ValueError(f"{path} must be the card of a run: {error}") from error

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "RunCard":
        """Make a card from the values of its JSON object, whose names must be known."""
        if not isinstance(values, Mapping) or not isinstance(values.get("generation"), Mapping):
            raise ValueError("it must be an object with a `generation` object in it")
        unknown = sorted(set(values) - {each.name for each in fields(cls)})
        if unknown:
            raise ValueError(f"it must not have a key {unknown[0]!r}")
        return cls(**{**values, "generation": GenerationSettings.of(values["generation"])})
