"""Plans a run: decides what to start or to resume. It needs neither torch nor transformers."""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import tomli_w

from talkconv.data.prepared import Prepared, open_prepared
from talkconv.files import write_text
from talkconv.runs import checkpoints
from talkconv.runs.card import CARD, RunCard
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.training.origin import ORIGIN, Origin
from talkconv.training.processes import launch_id, process
from talkconv.training.progress import Progress
from talkconv.training.recipe import (
    MODEL_KEYS,
    Recipe,
    RecipeFile,
    as_toml,
    read_recipe_file,
    read_toml,
)
from talkconv.training.request import Request
from talkconv.training.resumed_recipe import RECIPE, differences, resumed_recipe


@dataclass(frozen=True)
class Plan:
    """The plan of a request: a recipe, its data, a folder, and the checkpoint to start from."""

    recipe: Recipe
    out: Path
    prepared: Prepared
    origin: Origin
    # None means that the run starts at step 0
    checkpoint: Path | None = None
    progress: Progress = field(default_factory=Progress)

    @property
    def finished(self) -> bool:
        return self.progress.finished(self.recipe.training)


def plan_run(request: Request) -> Plan:
    """Return what to do for a request, or raise a ValueError. Nothing is written."""
    file = read_recipe_file(request.recipe)
    recipe = file.recipe(request.overrides)
    out = request.out or Path("runs") / recipe.name
    if not (out / CARD).exists():
        if out.exists() and (not out.is_dir() or _foreign(out)):
            raise ValueError(f"{out} holds something other than a run: choose another --out")
        prepared = open_prepared(request.data or Path("data") / recipe.name)
        check_data(prepared, recipe, request.recipe)
        return Plan(
            recipe, out, prepared, Origin(file.sections, list(request.overrides), launch_id())
        )
    return _plan_resume(request, file, out)


def check_data(prepared: Prepared, recipe: Recipe, given: str) -> None:
    """Raise a ValueError unless the data was prepared as the recipe, given by this name, says."""
    folder = prepared.folder
    anew = f"prepare it again: talkconv prepare {given} --raw DIR --out DIR"
    if prepared.task != recipe.task:
        raise ValueError(
            f"recipe {recipe.name} is for {recipe.task}, but {folder} was prepared for "
            f"{prepared.task}: give another --data, or {anew}"
        )
    was, now = ({"data": as_toml(asdict(each))} for each in (prepared.settings, recipe.data))
    for key, old, new in differences(was, now):
        raise ValueError(
            f"{folder} was prepared with {key} = {old}, but the recipe has {new}: give another "
            f"--data, {key}={old}, or {anew}"
        )


def write_run(plan: Plan) -> None:
    """Write all files that a run has before its first step."""
    out = plan.out
    out.mkdir(parents=True, exist_ok=True)
    checkpoints.recover_run(out)
    card = card_of(plan.recipe, plan.prepared)
    if (out / CARD).exists():
        card = replace(card, generation=_generation(plan))
    _write(plan, card)


def write_changes(plan: Plan) -> bool:
    """Write what a finished run takes from a changed recipe, and return whether it changed."""
    checkpoints.recover_run(plan.out)
    if read_toml(plan.out / RECIPE) == plan.recipe.sections():
        return False
    paper = plan.recipe.sections().get("paper")
    card = replace(RunCard.read(plan.out), paper=paper, generation=_generation(plan))
    _write(plan, card)
    return True


def _generation(plan: Plan) -> GenerationSettings:
    """Return the settings of generation of a run that goes on or is finished."""
    before = read_toml(plan.out / RECIPE)["generation"]
    if before == plan.recipe.sections()["generation"]:
        # `talkconv tune` may have chosen better settings than the recipe's
        return RunCard.read(plan.out).generation
    return card_of(plan.recipe, plan.prepared).generation


def _write(plan: Plan, card: RunCard) -> None:
    write_text(plan.out / RECIPE, tomli_w.dumps(plan.recipe.sections()))
    plan.origin.write(plan.out)
    # The card is written last, because a folder without it does not count as a run.
    card.write(plan.out)


def card_of(recipe: Recipe, prepared: Prepared) -> RunCard:
    """Return the card of a new run."""
    return RunCard(
        task=recipe.task,
        recipe=recipe.name,
        data=str(prepared.folder.resolve()),
        fingerprint=prepared.fingerprint,
        source_lang=recipe.data.source_lang,
        target_lang=recipe.data.target_lang,
        generation=recipe.generation.reading_at_most(recipe.data.max_source_tokens),
        paper=recipe.sections().get("paper"),
        metric=recipe.training.validate_by,
    )


def _plan_resume(request: Request, file: RecipeFile, out: Path) -> Plan:
    card, origin = RunCard.read(out), Origin.read(out)
    found = checkpoints.checkpoints_of(out)
    if not (request.resume or _restarted(origin)):
        where = f"at step {checkpoints.step_of(found[-1])}" if found else "without a checkpoint yet"
        raise ValueError(
            f"{out} already holds a run of recipe {card.recipe} ({where}): continue it with "
            "--resume, or choose another --out"
        )
    if card.recipe != file.name:
        raise ValueError(
            f"{out} holds a run of recipe {card.recipe}, not of {file.name}: choose another --out"
        )
    prepared = _data_of_run(request, card, out)
    recipe, origin = resumed_recipe(out, file, request.overrides, origin)
    check_data(prepared, recipe, request.recipe)
    if card.fingerprint != prepared.fingerprint:
        raise ValueError(
            f"{out} was trained with another vocabulary than that of {prepared.folder}: give the "
            f"data of the run, --data {card.data}, or start a new run in another --out"
        )
    if not found:
        return Plan(recipe, out, prepared, origin)
    _check_checkpoint(found[-1], recipe)
    return Plan(recipe, out, prepared, origin, found[-1], Progress.read(found[-1]))


def _restarted(origin: Origin | None) -> bool:
    """Return whether torchrun restarted this process, and the same launch started the run.

    The first process decides for all: if it raises an error, torchrun ends the others too.
    """
    launch = launch_id()
    if launch is None:
        return False
    return process() > 0 or (origin is not None and origin.launch == launch)


def _data_of_run(request: Request, card: RunCard, out: Path) -> Prepared:
    """Open the data that the request names, or else the data that the run was started with."""
    if request.data is not None or card.data is None:
        return open_prepared(request.data or Path("data") / card.recipe)
    try:
        return open_prepared(card.data)
    except ValueError as error:
        raise ValueError(
            f"the data of {out} is no longer in its folder: {error}, or give --data"
        ) from None


def _check_checkpoint(checkpoint: Path, recipe: Recipe) -> None:
    """Raise a ValueError unless a checkpoint is complete and belongs to this network."""
    files = [checkpoints.STATE, checkpoints.POSITION, "config.json", "model.safetensors"]
    if not recipe.training.fsdp:
        files += ["optimizer.pt", "scheduler.pt"]
    for name in files:
        if not (checkpoint / name).is_file():
            raise ValueError(
                f"{checkpoint} has no {name}: remove the folder, and training goes on from the "
                "checkpoint before it"
            )
    saved = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    wanted = recipe.network(vocab_size=saved["vocab_size"])
    for key in MODEL_KEYS:
        if key in saved and saved[key] != getattr(wanted, key):
            raise ValueError(
                f"{checkpoint} belongs to another network: it has {key} = {saved[key]}, but this "
                f"run has {getattr(wanted, key)}. Remove the folder, or train in another --out"
            )


def _foreign(out: Path) -> bool:
    """Return whether a folder without a card has files that no start of a run wrote."""
    ours = {RECIPE, ORIGIN}
    return any(path.name not in ours and not path.name.startswith(".") for path in out.iterdir())
