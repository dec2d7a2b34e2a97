"""The outcome of a training: `outcome.json`, which `talkconv reproduce` writes into a run."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from talkconv.files import write_json

OUTCOME = "outcome.json"


@dataclass(frozen=True)
class Outcome:
    """The machine of a run, its error if it failed, and the network that was chosen."""

    machine: Mapping[str, Any] = field(default_factory=dict)
    failure: str | None = None
    # best or averaged, after they were compared on the validation set
    chosen: str | None = None


def write_outcome(run: Path, outcome: Outcome) -> None:
    """Write the outcome into the folder of a run."""
    write_json(run / OUTCOME, asdict(outcome))


def read_outcome(run: Path) -> Outcome:
    """Read the outcome of a run. It is empty if `talkconv reproduce` did not train the run."""
    path = run / OUTCOME
    if not path.is_file():
        return Outcome()
    return Outcome(**json.loads(path.read_text(encoding="utf-8")))
