"""Finds runs that were trained with other settings than the plan and its recipes have now."""

from talkconv.report.kept_run import KeptRun
from talkconv.report.plan import PlannedRun
from talkconv.training.recipe import make_recipe, read_recipe, toml_text
from talkconv.training.resumed_recipe import differences


def other_settings(planned: PlannedRun, run: KeptRun) -> list[str]:
    """Return the settings of a run that differ from its command, such as `training.seed = 2`."""
    if not run.recipe:
        return []
    now = read_recipe(planned.recipe, planned.overrides).sections()
    then = make_recipe(planned.recipe, run.recipe).sections()
    return [f"{key} = {toml_text(value)}" for key, value, _ in differences(then, now)]
