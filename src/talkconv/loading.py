"""`talkconv.load` opens a trained network in any kind of folder."""

from pathlib import Path
from typing import Any

from talkconv.generation.text_model import TextModel
from talkconv.runs.find_network import find_network
from talkconv.serving.export_card import is_export


def load(
    folder: str | Path,
    model: str | None = None,
    device: Any = None,
    threads: int | None = None,
) -> TextModel:
    """Open a run, an export, or the folder of a model with its tokenizer.

    `model` names the network: best, last, averaged or any other folder of a run, float32 or int8 of
    an export. The default is the one that the card of the folder names. A run's network is put on
    `device`, by default the best one of this machine. `threads` is the number of threads to use.

    >>> model = load("runs/multi30k_de_en")  # doctest: +SKIP
    >>> model.translate("Ein Mann schläft.", beams=5)  # doctest: +SKIP
    'A man sleeps.'
    """
    folder = Path(folder)
    if is_export(folder):
        # onnxruntime is not needed for runs
        from talkconv.serving.loading import load_export

        if device is not None and str(device) != "cpu":
            raise ValueError(f"an export runs on the CPU: leave out device, got {device!r}")
        return load_export(folder, model, threads)
    # A folder without a network raises an error before torch and transformers are imported, which
    # takes seconds. Exported networks do not need them.
    find_network(folder, model)
    from talkconv.runs.open_run import open_run

    run = open_run(folder, model, device, threads)
    return TextModel(
        run.model, run.tokenizer, run.card.generation, run.card.task, run.target_tokenizer
    )
