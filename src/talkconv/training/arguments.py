"""What transformers' Trainer is told of a recipe."""

import os
from pathlib import Path

import torch
from transformers import TrainingArguments

from talkconv.runs.checkpoints import CHECKPOINTS
from talkconv.training.training_settings import TrainingSettings


def arguments(settings: TrainingSettings, run: Path) -> TrainingArguments:
    """The settings that are the Trainer's own; the others are in what RunTrainer overrides.

    The processes of a run know each other from here on.
    """
    gpu = torch.cuda.is_available()
    made = TrainingArguments(
        output_dir=str(run / CHECKPOINTS),
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
    # several GPUs are for torchrun: one process that drives them all would be slower than one GPU
    if made.n_gpu > 1:
        made._n_gpu = 1
    return made
