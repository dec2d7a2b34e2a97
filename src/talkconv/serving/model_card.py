"""The README of an export: what the network is, what was checked, and how to use it."""

from talkconv.conventions import LANGUAGE_MODELLING, SUMMARIZATION
from talkconv.runs.open_run import Run
from talkconv.serving.export_card import FLOAT32, INT8, ExportCard

_CARD = """\
---
library_name: talkconv
pipeline_tag: {pipeline}
language: [{languages}]
---

# {name}

A network of Time-aware Large Kernel convolutions for {what}, exported to ONNX by talkconv
{version} from the run `{name}` ({model}). It has {parameters:.1f} million parameters.

## Use

```bash
pip install "talkconv[runtime,serve]"   # onnxruntime, no PyTorch
echo "..." | talkconv generate .        # lines in, lines out
talkconv serve .                        # an HTTP server with a page
```

```python
import talkconv

model = talkconv.load(".")
model.generate(["..."], beams={beams})
```

## Files

`float32/` holds the network as it was trained{int8_file}. `encoder.onnx` reads a source once;
`decoder.onnx` reads the next tokens of each beam, with a state of constant size as inputs and
outputs. `tokenizer/` has the subwords, `export.json` the settings of generation.

## Checked

{checks}
"""


def model_card(run: Run, card: ExportCard) -> str:
    """Return the README of an export as Markdown."""
    task = card.run.task
    languages = sorted({lang for lang in (card.run.source_lang, card.run.target_lang) if lang})
    translation = f"translation from {card.run.source_lang} to {card.run.target_lang}"
    what = {SUMMARIZATION: "summaries", LANGUAGE_MODELLING: "language modelling"}
    return _CARD.format(
        pipeline="text-generation" if task == LANGUAGE_MODELLING else task,
        languages=", ".join(languages),
        name=card.run.recipe,
        what=what.get(task, translation),
        version=card.version,
        model=run.weights.name,
        parameters=card.network.parameters / 1e6,
        beams=card.run.generation.num_beams,
        int8_file=", `int8/` the same with weights of 8 bits" if INT8 in card.checks else "",
        checks=_checks(card),
    )


def _checks(card: ExportCard) -> str:
    checks = card.checks
    lines = [
        f"- The logits differ from those of the PyTorch network by at most {checks['logits']:.1g} "
        f"of the largest one, on {checks['random inputs']} random inputs of many shapes.",
        f"- The outputs for {checks['same outputs']} validation lines are the same, token by "
        "token.",
    ]
    lines += [
        f"- {name}: {checks[name]['score']} on the validation set, {checks[name]['megabytes']} MB."
        for name in (FLOAT32, INT8)
        if name in checks
    ]
    return "\n".join(lines)
