"""Trains a run that was planned; this is where torch and transformers are needed."""

import torch
from rich.console import Console
from transformers import set_seed
from transformers.utils.logging import disable_progress_bar

from talkconv.data.batching import Batches, examples_of
from talkconv.models import (
    TaLKConvConfig,
    TaLKConvForCausalLM,
    TaLKConvForConditionalGeneration,
)
from talkconv.models.generative import TaLKConvGenerativeModel
from talkconv.runs import checkpoints
from talkconv.runs.card import LAST, RunCard
from talkconv.runs.generation_config import follow
from talkconv.training.arguments import RunArguments, arguments
from talkconv.training.begin_run import Plan, write_run
from talkconv.training.collectives import wait_for_all
from talkconv.training.interrupt import Interrupt
from talkconv.training.process_group import join_processes
from talkconv.training.processes import processes
from talkconv.training.progress import Progress
from talkconv.training.recipe import Recipe
from talkconv.training.record import Record
from talkconv.training.trainer import RunTrainer
from talkconv.training.validate import Validation


def fit(plan: Plan, console: Console) -> Progress:
    """Train a run to its end, or until Ctrl-C, and return how far it came."""
    _check_machine(plan.recipe)
    # the bar of a training is enough
    disable_progress_bar()
    join_processes()
    told = arguments(plan.recipe.training, plan.out)
    wait_for_all()
    if told.process_index == 0:
        _make_ready(plan)
    wait_for_all()
    if plan.finished:
        console.print(
            f"{plan.out} is finished, at step {plan.progress.step}. A higher training.max_steps or "
            "training.patience lets it go on.",
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


def _make_ready(plan: Plan) -> None:
    """Make the folder of a run ready; a finished run keeps what was chosen for it since."""
    if plan.finished:
        checkpoints.recover_run(plan.out)
    else:
        write_run(plan)
    # a kill may have come between a checkpoint and its network's other name
    if plan.checkpoint is not None:
        checkpoints.publish(plan.checkpoint, plan.out / LAST)


def _trainer(plan: Plan, told: RunArguments, record: Record, interrupt: Interrupt) -> RunTrainer:
    recipe, prepared = plan.recipe, plan.prepared
    settings = recipe.training
    tokenizer = prepared.tokenizer()
    examples = examples_of(prepared.split("train"))
    batches = Batches(examples, tokens=settings.tokens, seed=settings.seed)
    model = build_model(recipe, len(tokenizer))
    # the card has the settings of `talkconv tune`, if it ran before training went on
    follow(model, RunCard.read(plan.out).generation)
    record.say(
        f"{plan.out}: {model.num_parameters() / 1e6:.1f}M parameters, "
        f"{len(examples.lengths[0]):,} rows in {len(batches):,} batches an epoch, "
        f"from step {plan.progress.step} to {settings.max_steps}"
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


def _check_machine(recipe: Recipe) -> None:
    """Raise a ValueError if this machine cannot train in the way that the recipe asks for."""
    if recipe.training.precision == "fp16" and not torch.cuda.is_available():
        raise ValueError(
            "training.precision = 'fp16' needs a GPU, and none is here: training.precision=bf16 or "
            "fp32 runs on any machine"
        )
    if not recipe.training.fsdp:
        return
    if processes() < 2:
        raise ValueError(
            "training.fsdp spreads a network over processes: start them with torchrun "
            "--nproc-per-node N -m talkconv train ..., or set training.fsdp=false"
        )
    if not torch.cuda.is_available():
        # accelerate would train without it, and not say so
        raise ValueError(
            "training.fsdp spreads a network over GPUs, and none is here: set training.fsdp=false"
        )
