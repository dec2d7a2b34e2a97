"""The arguments of transformers' Trainer, made from a recipe."""

import os
from pathlib import Path

import torch
from transformers import TrainingArguments

from talkconv.runs.checkpoints import staging_folder
from talkconv.training.training_settings import TrainingSettings


class RunArguments(TrainingArguments):
    """Arguments of a process that drives one GPU; torchrun starts a process for each of several.

    The Trainer would let one process drive all of them, which is slower than one GPU alone.
    """

    @property
    def n_gpu(self) -> int:
        return min(1, int(super().n_gpu))


def arguments(settings: TrainingSettings, run: Path) -> RunArguments:
    """The settings that are the Trainer's own; the others are in what RunTrainer overrides.

    The processes of a run know each other from here on.
    """
    gpu = torch.cuda.is_available()
    return RunArguments(
        output_dir=str(staging_folder(run)),
        seed=settings.seed,
        max_steps=settings.max_steps,
        gradient_accumulation_steps=settings.accumulation,
        max_grad_norm=settings.clip,
        bf16=settings.precision == "bf16",
        fp16=settings.precision == "fp16",
        fsdp=settings.fsdp or None,  # type: ignore[arg-type]
        use_cpu=not gpu,
        ddp_backend=None if gpu or "WORLD_SIZE" not in os.environ else "gloo",
        ddp_find_unused_parameters=False,
        logging_steps=settings.log_every,
        # a loss that is no number must be seen
        logging_nan_inf_filter=False,
        eval_strategy="steps",
        eval_steps=settings.validate_every,
        metric_for_best_model=settings.validate_by,
        greater_is_better=settings.validate_by != "loss",
        save_steps=settings.save_every,
        # the stream knows its place
        ignore_data_skip=True,
        remove_unused_columns=False,
        # what the saved network does when it generates
        use_cache=True,
        disable_tqdm=True,
        report_to="none",
    )
