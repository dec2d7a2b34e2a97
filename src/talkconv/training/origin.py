"""The origin of a run: the recipe file as it was, and the changes on the command line.

The recipe in the folder of a run has all defaults filled in. The origin shows whether a setting
that differs now was changed in the recipe file since then.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from talkconv.files import write_json

ORIGIN = "origin.json"


@dataclass(frozen=True)
class Origin:
    """The recipe file, the overrides, and the launch of torchrun that a run was started with."""

    # the sections of the recipe file, as it was when the run was last started or resumed
    sections: Mapping[str, Any]
    # all changes that the command line has made to the run since
    overrides: Sequence[str] = ()
    # see launch_id(); None without torchrun
    launch: str | None = None

    def write(self, run: Path) -> None:
        write_json(run / ORIGIN, asdict(self))

    @classmethod
    def read(cls, run: Path) -> "Origin | None":
        """Read the origin of a run. Return None if an older version started it without one."""
        path = run / ORIGIN
        if not path.exists():
            return None
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{path} must say what the run was started with: {error}. Remove it, and the run "
                "goes on with the settings of its recipe.toml"
            ) from error
