"""`talkconv.load`: opens a trained network, whatever folder holds it."""

from pathlib import Path
from typing import Any

from talkconv.generation.text_model import TextModel


def load(folder: str | Path, model: str | None = None, device: Any = None) -> TextModel:
    """Open a run that `talkconv train` wrote, or the folder of a model with its tokenizer.

    `model` is best, last, averaged or any other network of the run; by default it is the one that
    the run's card names. The network is put on `device`, by default the best one here.

    >>> model = load("runs/multi30k_de_en")  # doctest: +SKIP
    >>> model.translate("Ein Mann schläft.", beams=5)  # doctest: +SKIP
    'A man sleeps.'
    """
    # torch and transformers take seconds to import, and exported networks do without them
    from talkconv.runs.open_run import open_run

    run = open_run(Path(folder), model, device)
    return TextModel(
        run.model, run.tokenizer, run.card.generation, run.card.task, run.target_tokenizer
    )
