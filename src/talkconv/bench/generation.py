"""`talkconv bench generate`: translation by beam search, and the steps of a language model.

Translation: networks of iwslt14_de_en size with random weights, against transformers' MarianMT of
the same size and the same Marian network in CTranslate2. A language model: one step after few
tokens and after many, TaLK beside self-attention.
"""

import importlib.util
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import torch
import torch.ao.quantization
import typer
from rich.console import Console
from rich.table import Table
from torch import Tensor

from talkconv.bench.decoding_steps import language_model_steps
from talkconv.bench.marian import VOCABULARY, make_marian
from talkconv.bench.measure import Timing, measure, plain
from talkconv.machine import headline, write_results

SENTENCES, SOURCE, TARGET, BEAMS = 32, 25, 25, 5
OURS = "talkconv"
# without an end token, every translation has all its tokens
SETTINGS: dict[str, Any] = dict(num_beams=BEAMS, max_new_tokens=TARGET, eos_token_id=None)

Run = Callable[[], object]


def translators(folder: Path) -> dict[str, Run]:
    """Each a translation of the same random sentences."""
    torch.manual_seed(0)
    source = torch.randint(4, VOCABULARY - 1, (SENTENCES, SOURCE))
    marian = make_marian()
    marian.save_pretrained(folder / "marian")
    ours = make_ours()
    runs = {
        OURS: _with(ours, source),
        f"{OURS} int8": _with(quantized(ours), source),
        "transformers MarianMT": _with(marian, source),
    }
    if importlib.util.find_spec("ctranslate2") is not None:
        for precision in ("float32", "int8"):
            runs[f"CTranslate2 {precision}"] = ctranslate2_run(folder, precision, source)
    return runs


def make_ours() -> Any:
    # transformers takes seconds to import, which other commands need not wait for
    from talkconv.models import TaLKConvForConditionalGeneration, preset

    config = preset("iwslt14_de_en", vocab_size=VOCABULARY)
    model: Any = TaLKConvForConditionalGeneration(config)
    return model.eval()


def quantized(model: Any) -> Any:
    """The same network with linear layers of int8 weights, by torch's dynamic quantization."""
    quantize: Any = torch.ao.quantization.quantize_dynamic
    with warnings.catch_warnings():
        # the function is to move to a package of its own
        warnings.simplefilter("ignore")
        return quantize(model, {torch.nn.Linear}, dtype=torch.qint8)


def _with(model: Any, source: Tensor) -> Run:
    mask = torch.ones_like(source)
    return lambda: model.generate(source, attention_mask=mask, **SETTINGS)


def ctranslate2_run(folder: Path, precision: str, source: Tensor) -> Run:
    """The saved Marian network in CTranslate2. Random weights need a vocabulary all the same."""
    import ctranslate2
    from ctranslate2.converters import TransformersConverter
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = ["</s>", "<unk>", *(f"w{i}" for i in range(2, VOCABULARY - 1)), "<pad>"]
    ids = {word: id for id, word in enumerate(words)}

    make_tokenizer: Any = PreTrainedTokenizerFast

    class Converter(TransformersConverter):  # type: ignore[misc]
        def load_tokenizer(self, *args: Any, **kwargs: Any) -> Any:
            vocabulary = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
            special = dict(eos_token="</s>", unk_token="<unk>", pad_token="<pad>")
            return make_tokenizer(tokenizer_object=vocabulary, **special)

    place = folder / precision
    Converter(str(folder / "marian")).convert(str(place), quantization=precision)
    translator = ctranslate2.Translator(
        str(place), compute_type=precision, inter_threads=1, intra_threads=torch.get_num_threads()
    )
    sentences = [[words[id] for id in row] for row in source.tolist()]
    length = dict(max_decoding_length=TARGET, min_decoding_length=TARGET)
    return lambda: translator.translate_batch(sentences, beam_size=BEAMS, **length)


def bench_generate(
    seconds: Annotated[float, typer.Option(help="Time for each contestant.")] = 20.0,
    few: Annotated[int, typer.Option(help="Tokens before an early step.")] = 100,
    many: Annotated[int, typer.Option(help="Tokens before a late step.")] = 100_000,
    out: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("results/generate.json"),
) -> None:
    """Time beam search against MarianMT and CTranslate2, and steps late in a text."""
    console = Console()
    console.print(headline(f"{SENTENCES} sentences, {SOURCE} tokens in and {TARGET} out"))
    with tempfile.TemporaryDirectory() as folder, console.status("translating"):
        translation = measure(translators(Path(folder)), seconds=seconds)
    console.print(translation_table(translation))
    if not any("CTranslate2" in name for name in translation):
        console.print("without CTranslate2: pip install 'talkconv\\[bench]'", highlight=False)
    with console.status("stepping"):
        early, early_bytes = language_model_steps(few)
        late, late_bytes = language_model_steps(many)
        runs = {f"{mixer} {few}": run for mixer, run in early.items()}
        runs |= {f"{mixer} {many}": run for mixer, run in late.items()}
        steps = measure(runs, seconds=min(seconds, 5.0))
    held = {f"{mixer} {few}": size for mixer, size in early_bytes.items()}
    held |= {f"{mixer} {many}": size for mixer, size in late_bytes.items()}
    console.print(step_table(steps, held))
    write_results(
        out, {"translation": plain(translation), "steps": plain(steps), "cache bytes": held}
    )
    console.print(f"written to {out}")


def translation_table(timings: dict[str, Timing]) -> Table:
    table = Table(title=f"Translation, beam {BEAMS}", title_justify="left")
    table.add_column("")
    for heading in ("sentences/s (quartiles)", "talkconv is faster by"):
        table.add_column(heading, justify="right")
    for name, timing in sorted(timings.items(), key=lambda item: item[1].median):
        rates = [SENTENCES / value for value in (timing.median, timing.high, timing.low)]
        ratio = f"{timing.median / timings[OURS].median:.2f}"
        style = "bold" if name == OURS else ""
        table.add_row(name, f"{rates[0]:.1f} ({rates[1]:.1f}–{rates[2]:.1f})", ratio, style=style)
    return table


def step_table(timings: dict[str, Timing], held: dict[str, int]) -> Table:
    table = Table(title="A language model's step, d 512, 6 layers", title_justify="left")
    for heading in ("mixer", "after tokens", "ms (quartiles)", "cache, MiB"):
        table.add_column(heading, justify="right")
    for name, timing in timings.items():
        mixer, tokens = name.split()
        table.add_row(mixer, f"{int(tokens):,}", str(timing), f"{held[name] / 2**20:.2f}")
    return table
