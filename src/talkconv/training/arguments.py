"""The arguments of transformers' Trainer, made from a recipe."""

import os
from pathlib import Path

import torch
from transformers import TrainingArguments

from talkconv.runs.checkpoints import staging_folder
from talkconv.training.training_settings import TrainingSettings


class RunArguments(TrainingArguments):
    """The arguments of a process that uses one GPU. torchrun starts one process for each GPU.

    The Trainer would let one process use all GPUs, which is slower than one GPU alone.
    """

    @property
    def n_gpu(self) -> int:
        return min(1, int(super().n_gpu))


def arguments(settings: TrainingSettings, run: Path) -> RunArguments:
    """Return the settings that the Trainer knows. RunTrainer's methods follow the others.

    This call also connects the processes of a run.
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
        # a loss of NaN or infinity must appear in the log
        logging_nan_inf_filter=False,
        eval_strategy="steps",
        eval_steps=settings.validate_every,
        metric_for_best_model=settings.validate_by,
        greater_is_better=settings.validate_by != "loss",
        save_steps=settings.save_every,
        # our stream of batches restores its position itself
        ignore_data_skip=True,
        remove_unused_columns=False,
        # this value is saved in the config, and generation follows it
        use_cache=True,
        disable_tqdm=True,
        report_to="none",
    )
