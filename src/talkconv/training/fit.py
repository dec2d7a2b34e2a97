"""Trains a run that was planned. From here on torch and transformers are needed."""

import torch
from rich.console import Console
from transformers import set_seed
from transformers.utils.logging import disable_progress_bar

from talkconv.data.batching import Batches, examples_of
from talkconv.machine import has_bfloat16
from talkconv.models import (
    TaLKConvConfig,
    TaLKConvForCausalLM,
    TaLKConvForConditionalGeneration,
)
from talkconv.models.generative import TaLKConvGenerativeModel
from talkconv.runs import checkpoints
from talkconv.runs.card import LAST, RunCard
from talkconv.runs.generation_config import follow, write_generation_configs
from talkconv.training.arguments import RunArguments, arguments
from talkconv.training.begin_run import Plan, write_changes, write_run
from talkconv.training.collectives import wait_for_all
from talkconv.training.interrupt import Interrupt
from talkconv.training.process_group import join_processes
from talkconv.training.processes import processes
from talkconv.training.progress import Progress
from talkconv.training.recipe import Recipe
from talkconv.training.record import Record
from talkconv.training.trainer import RunTrainer
from talkconv.training.training_settings import Precision
from talkconv.training.validate import Validation


def fit(plan: Plan, console: Console) -> Progress:
    """Train a run to its end, or until Ctrl-C, and return its progress."""
    _check_machine(plan.recipe)
    # The training has its own progress bar; those of other libraries would disturb it.
    disable_progress_bar()
    join_processes()
    told = arguments(plan.recipe.training, plan.out)
    wait_for_all()
    if told.process_index == 0:
        _make_ready(plan, console)
    wait_for_all()
    if plan.finished:
        console.print(
            f"{plan.out} is finished, at step {plan.progress.step}. To continue it, set a higher "
            "training.max_steps or training.patience.",
            highlight=False,
            soft_wrap=True,
        )
        return plan.progress
    several = told.world_size > 1
    again = "" if several else "; Ctrl-C again stops at once"
    folder = plan.out if told.process_index == 0 else None
    with (
        Record(folder, console, plan.recipe.training.max_steps) as record,
        Interrupt(
            lambda: record.say("stopping after this step" + again), patient=several
        ) as interrupt,
    ):
        return _trainer(plan, told, record, interrupt).go(plan.checkpoint)


def build_model(recipe: Recipe, vocab_size: int) -> TaLKConvGenerativeModel:
    """Return the recipe's network with the initial weights of its seed."""
    config = TaLKConvConfig(**recipe.model, vocab_size=vocab_size)
    set_seed(recipe.training.seed)
    if config.is_encoder_decoder:
        return TaLKConvForConditionalGeneration(config)
    return TaLKConvForCausalLM(config)


def _make_ready(plan: Plan, console: Console) -> None:
    """Prepare the folder of a run. A finished run keeps the settings that were chosen later."""
    if not plan.finished:
        write_run(plan)
    elif write_changes(plan):
        console.print(f"{plan.out} now has the settings of the changed recipe.", highlight=False)
    # The process may have been killed after a checkpoint and before the link to its network.
    if plan.checkpoint is not None:
        checkpoints.publish(plan.checkpoint, plan.out / LAST)
    # The settings of generation may have changed since these networks were saved.
    write_generation_configs(plan.out)


def _trainer(plan: Plan, told: RunArguments, record: Record, interrupt: Interrupt) -> RunTrainer:
    recipe, prepared = plan.recipe, plan.prepared
    settings = recipe.training
    tokenizer = prepared.tokenizer()
    examples = examples_of(prepared.split("train"))
    batches = Batches(examples, tokens=settings.tokens, seed=settings.seed)
    model = build_model(recipe, len(tokenizer))
    # if `talkconv tune` ran before this training was resumed, the card has its settings
    follow(model, RunCard.read(plan.out).generation)
    record.say(
        f"{plan.out}: {model.num_parameters() / 1e6:.1f}M parameters, "
        f"{len(examples.lengths[0]):,} rows in {len(batches):,} batches an epoch, "
        f"from step {plan.progress.step} to {settings.max_steps}"
    )
    if not _is_fast(settings.precision):
        record.say(
            "training.precision = 'bf16' is slower than fp32 here, because this processor has no "
            "instructions for bfloat16"
        )
    return RunTrainer(
        model=model,
        settings=settings,
        batches=batches,
        validation=Validation(prepared, tokenizer, recipe),
        run=plan.out,
        arguments=told,
        record=record,
        interrupt=interrupt,
    )


def _is_fast(precision: Precision) -> bool:
    """Return whether this machine can multiply in a precision and does not have to emulate it."""
    return precision != "bf16" or torch.cuda.is_available() or has_bfloat16()


def _check_machine(recipe: Recipe) -> None:
    """Raise a ValueError if this machine cannot train as the recipe says."""
    if recipe.training.precision == "fp16" and not torch.cuda.is_available():
        raise ValueError(
            "training.precision = 'fp16' needs a GPU, and this machine has none: set "
            "training.precision=bf16 or fp32"
        )
    if not recipe.training.fsdp:
        return
    if processes() < 2:
        raise ValueError(
            "training.fsdp spreads a network over processes: start them with torchrun "
            "--nproc-per-node N -m talkconv train ..., or set training.fsdp=false"
        )
    if not torch.cuda.is_available():
        # accelerate would train without FSDP and give no message
        raise ValueError(
            "training.fsdp spreads a network over GPUs, and this machine has none: set "
            "training.fsdp=false"
        )
