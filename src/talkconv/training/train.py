"""`talkconv train`: a recipe and prepared data to a trained network."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import typer
from rich.console import Console
from rich.markup import escape
from transformers import set_seed
from transformers.trainer_callback import TrainerState
from transformers.utils.logging import disable_progress_bar

from talkconv.data.batching import Batches, examples_of
from talkconv.data.prepared import Prepared, open_prepared
from talkconv.models import (
    TaLKConvConfig,
    TaLKConvForCausalLM,
    TaLKConvForConditionalGeneration,
)
from talkconv.models.base import TaLKConvPreTrainedModel
from talkconv.runs import checkpoints
from talkconv.runs.card import BEST, LAST, RunCard
from talkconv.runs.generation_config import follow
from talkconv.training.arguments import RunArguments, arguments
from talkconv.training.begin_run import Beginning, plan_run, write_run
from talkconv.training.interrupt import Interrupt
from talkconv.training.patience import out_of_patience
from talkconv.training.processes import process, processes, wait_for_all
from talkconv.training.recipe import Recipe, read_recipe
from talkconv.training.record import Record
from talkconv.training.trainer import Diverged, RunTrainer
from talkconv.training.validate import Validation

# what a shell says of a program that Ctrl-C ended
_INTERRUPTED = 130


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    recipe: str
    overrides: Sequence[str] = ()
    data: Path | None = None
    out: Path | None = None
    resume: bool = False
    # how many random starts are trained; None: one, in `out` itself
    seeds: int | None = None

    def command(self) -> str:
        """What to type to go on; the run knows its overrides."""
        words = ["talkconv", "train", self.recipe]
        if processes() > 1:
            here = os.environ.get("LOCAL_WORLD_SIZE", str(processes()))
            words = ["torchrun", "--nproc-per-node", here, "-m", *words]
        for option in ("data", "out", "seeds"):
            value = getattr(self, option)
            words += [] if value is None else [f"--{option}", str(value)]
        return shlex.join([*words, "--resume"])


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    out: Path
    recipe: Recipe
    state: TrainerState

    @property
    def finished(self) -> bool:
        return finished(self.state, self.recipe)


def train_command(request: Request) -> None:
    """train() for the command line: what went wrong is one message, without a traceback."""
    from talkconv.training.seeds import train_seeds

    console = Console(quiet=process() > 0)
    # one bar is enough
    disable_progress_bar()
    try:
        if request.seeds is not None:
            done = train_seeds(request, request.seeds, console)
        else:
            done = train(request, console).finished
    except (ValueError, OSError, Diverged) as error:
        console.print(f"[bold red]not trained:[/] {escape(str(error))}", highlight=False)
        if isinstance(error, OSError):
            _say_how_to_go_on(request, console)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        console.print("stopped at once.", highlight=False)
        done = False
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    if not done:
        _say_how_to_go_on(request, console)
        raise typer.Exit(_INTERRUPTED)


def train(request: Request, console: Console) -> Outcome:
    """Train a run to its end, or until Ctrl-C."""
    recipe = read_recipe(request.recipe, request.overrides)
    out = request.out or Path("runs") / recipe.name
    prepared = open_prepared(request.data or Path("data") / recipe.name)
    beginning = plan_run(out, recipe, request.overrides, prepared, resume=request.resume)
    recipe = beginning.recipe
    _check_machine(recipe)
    # it lets the processes of a run know each other: from here on they can wait
    told = arguments(recipe.training, out)
    writes = told.process_index == 0
    done = beginning.state is not None and finished(beginning.state, recipe)
    wait_for_all()
    if writes:
        _make_ready(out, beginning, prepared, done=done)
    wait_for_all()
    if beginning.state is not None and done:
        console.print(
            f"{out} is finished, at step {beginning.state.global_step}. A higher "
            "training.max_steps or training.patience lets it go on.",
            highlight=False,
        )
        return Outcome(out, recipe, beginning.state)
    again = "" if told.world_size > 1 else "; Ctrl-C again stops at once"
    with (
        Record(out if writes else None, console, recipe.training.max_steps) as record,
        Interrupt(
            lambda: record.say("stopping after this step" + again),
            patient=told.world_size > 1,
        ) as interrupt,
    ):
        trainer = _trainer(beginning, prepared, out, told, record, interrupt)
        state = trainer.go(beginning.checkpoint)
    outcome = Outcome(out, recipe, state)
    _say_outcome(outcome, console)
    return outcome


def _make_ready(out: Path, beginning: Beginning, prepared: Prepared, *, done: bool) -> None:
    """The folder as a run needs it; one that is done keeps what was chosen for it since."""
    if done:
        checkpoints.recover_run(out)
    else:
        write_run(out, beginning, prepared)
    # a kill may have come between a checkpoint and its network's other name
    if beginning.checkpoint is not None:
        checkpoints.publish(beginning.checkpoint, out / LAST)


def finished(state: TrainerState, recipe: Recipe) -> bool:
    settings = recipe.training
    return state.global_step >= settings.max_steps or out_of_patience(state, settings)


def build_model(recipe: Recipe, vocab_size: int) -> TaLKConvPreTrainedModel:
    """The recipe's network as its seed starts it."""
    config = TaLKConvConfig(**recipe.model, vocab_size=vocab_size)
    set_seed(recipe.training.seed)
    if config.is_encoder_decoder:
        return TaLKConvForConditionalGeneration(config)
    return TaLKConvForCausalLM(config)


def _trainer(
    beginning: Beginning,
    prepared: Prepared,
    out: Path,
    told: RunArguments,
    record: Record,
    interrupt: Interrupt,
) -> RunTrainer:
    recipe = beginning.recipe
    settings = recipe.training
    tokenizer = prepared.tokenizer()
    examples = examples_of(prepared.split("train"))
    batches = Batches(examples, tokens=settings.tokens, seed=settings.seed)
    model = build_model(recipe, len(tokenizer))
    # the card has the settings of `talkconv tune`, if it ran before training went on
    follow(model, RunCard.read(out).generation)
    step = 0 if beginning.state is None else beginning.state.global_step
    record.say(
        f"{out}: {model.num_parameters() / 1e6:.1f}M parameters, {len(examples.lengths[0]):,} rows "
        f"in {len(batches):,} batches an epoch, from step {step} to {settings.max_steps}"
    )
    return RunTrainer(
        model=model,
        settings=settings,
        batches=batches,
        validation=Validation(prepared, tokenizer, recipe),
        run=out,
        arguments=told,
        record=record,
        interrupt=interrupt,
    )


def _check_machine(recipe: Recipe) -> None:
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


def _say_outcome(outcome: Outcome, console: Console) -> None:
    out, state, by = outcome.out, outcome.state, outcome.recipe.training.validate_by
    if not outcome.finished:
        console.print(f"saved at step {state.global_step}.", highlight=False)
        return
    best = "" if state.best_metric is None else f", best {by} {state.best_metric:.4g}"
    at = "" if state.best_global_step is None else f" at step {state.best_global_step}"
    console.print(
        f"{state.global_step} steps{best}{at}: {out / BEST}. Next: talkconv evaluate {out}",
        highlight=False,
        soft_wrap=True,
    )


def _say_how_to_go_on(request: Request, console: Console) -> None:
    console.print(
        f"To go on: [bold]{escape(request.command())}[/]", highlight=False, soft_wrap=True
    )
