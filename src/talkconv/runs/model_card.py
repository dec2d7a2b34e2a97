"""The README.md of a network: what it is, its scores, and how to use it."""

from collections.abc import Mapping
from pathlib import Path

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from talkconv.conventions import LANGUAGE_MODELLING, SUMMARIZATION, TRANSLATION
from talkconv.files import write_text
from talkconv.runs.card import RunCard

README = "README.md"
# a task of ours -> what a reader calls it, the hub's name for it, and the method that does it
_TASKS = {
    TRANSLATION: ("translation", "translation", "translate"),
    SUMMARIZATION: ("summaries", "summarization", "summarize"),
    LANGUAGE_MODELLING: ("language modelling", "text-generation", "complete"),
}

_TEXT = """
# {name}

A network of Time-aware Large Kernel convolutions for {what}, trained with talkconv by the recipe
`{name}`.

## Scores

{scores}

## Use

```python
import talkconv

model = talkconv.load(".")
model.{method}(["..."])
```

`talkconv generate .` does the same for lines of a file. After `import talkconv.models` the Auto
classes of transformers open this folder, too.
"""


def write_scores(network: Path, card: RunCard, split: str, scores: Mapping[str, float]) -> None:
    """Write the scores of a split into a network's README.md. Those of other splits remain.

    The file is replaced and not changed in place, because other folders may link to it.
    """
    path = network / README
    found = [] if not path.exists() else ModelCard.load(path).data.eval_results or []
    kept = [result for result in found if result.dataset_split != split]
    results = [*kept, *(_result(card, split, name, value) for name, value in scores.items())]
    write_text(path, str(_model_card(card, results)))


def _result(card: RunCard, split: str, name: str, value: float) -> EvalResult:
    return EvalResult(
        task_type=_TASKS[card.task][1],
        dataset_type=card.recipe,
        dataset_name=card.recipe,
        dataset_split=split,
        metric_type=name,
        metric_name=name,
        metric_value=round(value, 4),
    )


def _model_card(card: RunCard, results: list[EvalResult]) -> ModelCard:
    what, tag, method = _TASKS[card.task]
    languages = sorted({lang for lang in (card.source_lang, card.target_lang) if lang})
    if card.task == TRANSLATION and card.source_lang and card.target_lang:
        what = f"translation from {card.source_lang} to {card.target_lang}"
    data = ModelCardData(
        model_name=card.recipe,
        library_name="talkconv",
        pipeline_tag=tag,
        language=languages or None,
        tags=["talkconv"],
        eval_results=results,
    )
    rows = [f"| {r.dataset_split} | {r.metric_name} | {r.metric_value:g} |" for r in results]
    table = "\n".join(["| split | score | value |", "|---|---|---|", *rows])
    text = _TEXT.format(name=card.recipe, what=what, scores=table, method=method)
    return ModelCard(f"---\n{data.to_yaml()}\n---\n{text}")
