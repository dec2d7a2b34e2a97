"""A plan of tiny runs, and runs that were trained for it."""

import json
from pathlib import Path

import tomli_w

from talkconv.evaluation.evaluate_run import evaluate_run
from talkconv.report.kept_run import KeptRun
from talkconv.report.plan import Plan, read_plan
from talkconv.training.request import Request
from tests.training.cases import run as train_run
from tests.training.cases import write_prepared, write_recipe

SCORE = "BLEU, tokenized"
SENTENCES = ["w1 w2 w3"]


def write_plan(root: Path, **changes) -> Path:
    """Two networks of a tiny recipe, one of them with two seeds."""
    recipe = write_recipe(root / "tiny.toml", training={"validate_by": "bleu"})
    table = {
        "name": "tiny",
        "title": "Tiny networks",
        "recipe": str(recipe),
        "score": SCORE,
        "also": ["chrF2"],
        "average": 2,
        "baseline": "talk",
        "published": [{"label": "Others", "score": 41.02, "parameters": 2_600_000}],
        "row": [
            {"name": "talk", "label": "TaLK", "seeds": [1, 2]},
            {"name": "attention", "label": "Attention", "overrides": ["model.mixer=attention"]},
        ],
        **changes,
    }
    windows = {"run": "tiny-talk", "label": "Windows", "sentences": SENTENCES}
    path = root / "plan.toml"
    path.write_text(tomli_w.dumps({"title": "Results", "table": [table], "windows": [windows]}))
    return path


def prepare(root: Path) -> Path:
    """Prepared data with the counts that `talkconv prepare` writes."""
    data = write_prepared(root / "data" / "tiny")
    card = json.loads((data / "data.json").read_text())
    card["splits"]["train"]["target_tokens"] = 200
    (data / "data.json").write_text(json.dumps(card))
    return data


def train(root: Path, plan: Plan, name: str, *, evaluate: bool = True, **training) -> Path:
    """Train a planned run as its command would."""
    (planned,) = (run for run in plan.runs() if run.name == name)
    overrides = [*planned.overrides, *(f"training.{k}={v}" for k, v in training.items())]
    out = root / "runs" / name
    train_run(Request(planned.recipe, overrides, root / "data" / "tiny", out))
    if evaluate:
        evaluate_run(out)
    return out


def kept(name="run", value=40.0, **changes) -> KeptRun:
    """Return a KeptRun with made-up values."""
    score = {"name": SCORE, "value": value, "interval": [value - 1, value + 1], "signature": "s"}
    machine = dict(date="2026-01-02", processor="P", cores=2, threads=1, torch="2", commit="abc")
    about = {"model": "best", "parameters": 4_500_000, "machine": machine}
    about["generation"] = {"num_beams": 5}
    known = dict(
        summary={"step": 20, "max_steps": 20, "finished": True, "tokens_per_epoch": 1_000_000},
        recipe={"training": {"validate_by": "bleu"}},
        log=[
            {"step": 10, "epoch": 1.0, "loss": 3.0},
            {"step": 10, "epoch": 1.0, "valid_bleu": value / 2, "valid_loss": 3.0},
            {"step": 20, "epoch": 2.5, "valid_bleu": value, "valid_loss": 2.0},
        ],
        evaluations={"test": {"scores": [score], "comparisons": [], "about": about}},
        speed={
            "training_tokens_per_second": 1600,
            "generation_sentences_per_second": 21.25,
            "machine": machine,
        },
    )
    return KeptRun(name, **{**known, **changes})


__all__ = ["SCORE", "SENTENCES", "kept", "prepare", "read_plan", "train", "write_plan"]
