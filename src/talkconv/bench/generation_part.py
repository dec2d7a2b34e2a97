"""The part about generation: translation by beam search, and steps late in a text."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from talkconv.bench.correctness import Finding
from talkconv.bench.decoding_steps import language_model_steps
from talkconv.bench.engines import (
    CTRANSLATE2,
    OURS,
    Engine,
    engine_of,
    exported_engines,
    random_model,
    random_texts,
    transformer_engines,
)
from talkconv.bench.measure import FULL, QUICK, Pace, at_pace, plain
from talkconv.bench.own_process import run_alone
from talkconv.bench.part import Part, Row, Rows
from talkconv.bench.side_by_side import RowResult

ATTENTION = "talkconv, self-attention"
VOCABULARY = 10_000
SOURCE = TARGET = 25
# (beams, sentences in a batch)
SEARCHES = ((1, 1), (1, 32), (5, 1), (5, 32))
QUICK_SEARCHES = ((5, 32),)
AFTER = (100, 1000, 10_000, 100_000)
QUICK_AFTER = (1000,)
# How far below the best word a greedy word may be, in standard deviations of the logits.
TOLERANCE, TOLERANCE_INT8 = 1e-3, 0.5


def search_key(beams: int, batch: int) -> str:
    """Return the key of a row of translations."""
    return f"translation, beams {beams}, batch {batch}"


def steps_key(tokens: int) -> str:
    """Return the key of a row of steps."""
    return f"steps, after {tokens} tokens"


def generation_part(quick: bool) -> Part:
    """Return translation and steps as a part."""
    pace = QUICK if quick else FULL
    searches = QUICK_SEARCHES if quick else SEARCHES
    after = QUICK_AFTER if quick else AFTER
    rows = [
        Row(
            search_key(beams, batch),
            functools.partial(_translate, beams=beams, batch=batch, pace=pace),
            22 if quick else 60,
        )
        for beams, batch in searches
    ]
    rows += [
        Row(
            steps_key(tokens),
            functools.partial(_step, tokens=tokens, pace=pace),
            3 if quick else 12,
        )
        for tokens in after
    ]
    return Part("generation", rows, lambda: run_alone(check_translators, _files(), quick))


@functools.cache
def _files() -> Path:
    """Return a folder for the files of engines, which take a minute to write; all rows share it."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _translate(rows: Rows, beams: int, batch: int, pace: Pace) -> RowResult:
    return run_alone(time_translation, beams, batch, pace, _files())


def _step(rows: Rows, tokens: int, pace: Pace) -> RowResult:
    return run_alone(time_steps, tokens, pace)


def time_translation(beams: int, batch: int, pace: Pace, files: Path) -> RowResult:
    """Let all engines take turns in this process."""
    found = engines(files, quick=pace == QUICK)
    texts = random_texts(batch, SOURCE, VOCABULARY)
    runs = {
        name: functools.partial(translate, texts, beams) for name, (translate, _) in found.items()
    }
    timings = at_pace(runs, pace)
    absent = {name: "is not installed" for name in CTRANSLATE2 if name not in found}
    return {"timings": plain(timings), "bytes": {}, "absent": absent}


def time_steps(tokens: int, pace: Pace) -> RowResult:
    """Let steps of language models take turns in this process; bytes are those of their caches."""
    runs, held = language_model_steps(tokens)
    return {"timings": plain(at_pace(runs, pace)), "bytes": held, "absent": {}}


def make_ours(mixer: str) -> Any:
    """Return a network of the IWSLT size with random weights."""
    # transformers takes seconds to import, which other commands need not wait for.
    from talkconv.models import TaLKConvForConditionalGeneration, preset

    config = preset(
        "iwslt14_de_en", vocab_size=VOCABULARY, encoder_mixer=mixer, decoder_mixer=mixer
    )
    model: Any = TaLKConvForConditionalGeneration(config)
    return model.eval()


def engines(files: Path, quick: bool) -> dict[str, tuple[Engine, Any]]:
    """Return engines by name, each with the float32 network that it must agree with.

    Quick ones are without exports, which take a minute to make.
    """
    import transformers.utils.logging

    disable_progress_bar: Any = transformers.utils.logging.disable_progress_bar
    disable_progress_bar()
    torch.manual_seed(0)
    talk, attention = make_ours("talk"), make_ours("attention")
    model = random_model(talk, TARGET)
    others, marian = transformer_engines(model, lambda texts: TARGET, files)
    exported = {} if quick else exported_engines(model, files)
    return {
        OURS: (engine_of(model), talk),
        **{name: (each, talk) for name, each in exported.items()},
        ATTENTION: (engine_of(random_model(attention, TARGET)), attention),
        **{name: (each, marian) for name, each in others.items()},
    }


def check_translators(files: Path, quick: bool) -> list[Finding]:
    """Check that each greedy word is the best one of a network that reads all words at once."""
    found = []
    texts = random_texts(2, SOURCE, VOCABULARY)
    for name, (translate, network) in engines(files, quick).items():
        gap = greedy_gap(network, ids_of(texts), ids_of(translate(texts, 1)))
        limit = TOLERANCE_INT8 if "int8" in name else TOLERANCE
        why = f"a word is {gap:.1e} deviations below the best one, allowed {limit:g}"
        found.append(Finding(name, gap <= limit, why=why))
    return found


def ids_of(texts: list[str]) -> Tensor:
    """Return the ids of texts that are numbers, all of one length: (B, T)."""
    return torch.tensor([[int(word) for word in text.split()] for text in texts])


@torch.no_grad()
def greedy_gap(network: Any, source: Tensor, words: Tensor) -> float:
    """Return how far the words are below the best ones, in deviations of the logits."""
    start = torch.full((len(words), 1), network.config.decoder_start_token_id)
    before = torch.cat((start, words[:, :-1]), dim=1)
    logits = network(source, decoder_input_ids=before, use_cache=False).logits
    # Padding, which MarianMT never writes, is the last id and its start token.
    logits[..., network.config.pad_token_id] = float("-inf")
    chosen = logits.gather(-1, words[..., None])[..., 0]
    finite = logits[logits.isfinite()]
    return float((logits.amax(-1) - chosen).max() / finite.std())
