import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import chain

import pytest
from rich.console import Console
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.data import encoding, stages, words
from talkconv.data.cleaning import EMPTY, LONG_WORD
from talkconv.data.data_settings import DataSettings
from talkconv.data.lines import WINDOWS
from talkconv.data.prepare import prepare
from talkconv.data.prepare_report import print_report
from tests.data.cases import (
    ENGLISH,
    GERMAN,
    PAIRS,
    SUMMARIES,
    WORDS,
    left_in,
    write,
    write_pairs,
    write_segmented,
    write_text,
)
from tests.data.test_iwslt import write_iwslt


@pytest.fixture
def raw(tmp_path):
    return write_pairs(tmp_path / "raw")


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(stages, "_ROWS", 2)


def contents(folder):
    """Return all files of a prepared folder, without the seconds in the card, which may differ."""
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {str(p.relative_to(folder)): data for p, data in files.items() if p.name != "data.json"}


def test_counts_and_report(tmp_path, raw):
    card = prepare("translation", PAIRS, raw, tmp_path / "out").card
    assert {name: split["rows"] for name, split in card["splits"].items()} == {
        "train": 12,
        "valid": 3,
        "test": 3,
    }
    seen = card["report"]["splits"]["train"]
    # one of 20 training rows is checked for its way back, chosen by its text
    assert seen.pop("round_trip") == dict(checked=0, changed=0, examples=[])
    assert seen == dict(read=12, kept=12, dropped={})
    assert left_in(tmp_path) == ["out", "raw"]
    assert left_in(tmp_path / "out") == sorted(
        ["data.json", "text", "tokenizer", "train", "valid", "test"]
    )


def test_every_23rd_of_the_cleaned_pairs_is_for_validation(tmp_path, small_chunks):
    folder = write_iwslt(tmp_path / "raw")
    for lang in ("de", "en"):
        lines = [f"{lang} {n}" for n in range(1, 61)]
        # every tenth is dropped before the counting
        lines[9::10] = [""] * 6
        write(folder / "de-en" / f"train.tags.de-en.{lang}", lines)
    settings = DataSettings(corpus="iwslt14", source_lang="de", target_lang="en", vocabulary=60)
    prepared = prepare("translation", settings, folder, tmp_path / "out")
    # among 1-9, 11-19, 21-29, ... the 23rd is 25 and the 46th is 51
    assert prepared.texts("valid") == (["de 25", "de 51"], ["en 25", "en 51"])
    assert len(prepared.split("train")) == 52
    assert len(prepared.split("test")) == 10
    assert prepared.card["report"]["splits"]["train"]["dropped"] == {EMPTY: 6}
    sources = prepared.tokenizer().batch_decode(prepared.split("train")["source"][:])
    assert not any("25" in source for source in sources)


def test_articles_are_cut(tmp_path):
    for split in ("train", "valid"):
        write(tmp_path / "raw" / f"{split}.source", ["a b c d e f g"])
        write(tmp_path / "raw" / f"{split}.summary", ["a b c"])
    settings = dataclasses.replace(SUMMARIES, max_source_tokens=4)
    prepared = prepare("summarization", settings, tmp_path / "raw", tmp_path / "out")
    assert prepared.splits() == ["train", "valid"]
    for split in prepared.splits():
        row = prepared.split(split)[0]
        assert (len(row["source"]), len(row["target"])) == (5, 4)
        assert row["source"][-1] == row["target"][-1] == 2
    assert prepared.card["splits"]["train"]["source_cut"] == 1


def test_running_text_is_cut_into_blocks(tmp_path, small_chunks):
    prepared = prepare("language_modelling", WORDS, write_text(tmp_path / "raw"), tmp_path / "out")
    # 4 + 5 words and five ends of lines
    assert [len(row) for row in prepared.split("train")["tokens"]] == [8, 6]
    assert prepared.card["splits"]["train"] == dict(tokens=14, unknown=1, given_unknown=1, rows=2)


def test_special_names_in_running_text_are_text(tmp_path):
    for split in ("train", "valid"):
        write(tmp_path / "raw" / f"{split}.txt", ["a </s> <s> x<pad>y <unk>"])
    prepared = prepare("language_modelling", WORDS, tmp_path / "raw", tmp_path / "out")
    tokens = prepared.split("train")[0]["tokens"]
    assert tokens == [4, 3, 3, 5, 3, 2]
    # a line ends with </s>; a prompt begins after the end of a line, and is open
    prompt = prepared.tokenizer()(prepared.lines("valid")[0])["input_ids"]
    assert prompt == [2, *tokens[:-1]]


def test_subwords_for_running_text(tmp_path):
    settings = dataclasses.replace(WORDS, vocabulary=40)
    prepared = prepare(
        "language_modelling", settings, write_text(tmp_path / "raw"), tmp_path / "out"
    )
    tokens = [*chain(*prepared.split("test")["tokens"])]
    assert prepared.tokenizer().decode(tokens[1:]).startswith(" = A title =")


def test_text_that_others_segmented(tmp_path):
    settings = DataSettings(corpus="pairs", source_lang="en", target_lang="de", codes="codes.bpe")
    raw = write_segmented(tmp_path / "raw")
    prepared = prepare("translation", settings, raw, tmp_path / "out", workers=1)
    assert prepared.splits() == ["train", "valid", "test", "test2017"]
    tokenizer, row = prepared.tokenizer(), prepared.split("test2017")[0]
    assert tokenizer.convert_ids_to_tokens(row["source"])[:3] == ["the", "do@@", "g"]
    assert tokenizer.unk_token_id not in row["target"]
    # one dictionary for both sides
    assert tokenizer.convert_ids_to_tokens(row["target"])[-2:] == [".", "</s>"]
    sources, references = prepared.texts("test2017")
    # sources are as the tokenizer reads them, references are as it writes
    assert tokenizer(sources[0])["input_ids"] == row["source"]
    assert references[0] == tokenizer.decode(row["target"][:-1]) == "der hund läuft ."
    assert references[0] == tokenizer.tokenized_text("der hund läu@@ ft .")
    # new lines need no marks
    assert tokenizer("the dog runs .")["input_ids"] == row["source"]


@pytest.mark.parametrize("tokenizer", ["bytes", "unigram"])
def test_raw_text_is_kept_byte_by_byte(tmp_path, tokenizer, small_chunks):
    settings = dataclasses.replace(PAIRS, tokenizer=tokenizer, vocabulary=300)
    raw = write_pairs(tmp_path / "raw")
    hard = "  Don't  open %s, <b>please</b>:\t家 </s> "
    for lang in ("de", "en"):
        write(raw / f"test.{lang}", [hard])
    prepared = prepare("translation", settings, raw, tmp_path / "out", workers=1)
    tokenizer = prepared.tokenizer()
    row = prepared.split("test")[0]
    assert tokenizer.decode(row["target"], skip_special_tokens=True) == hard
    assert tokenizer(text_target=hard)["input_ids"] == row["target"]
    assert tokenizer.decode_tokenized(row["target"]) == tokenizer.tokenized_text(hard)
    assert prepared.texts("test")[1] == [hard]
    for split in prepared.splits():
        assert prepared.card["splits"][split]["unknown"] == 0
        assert prepared.card["report"]["splits"][split]["round_trip"]["changed"] == 0


def test_codes_that_are_not_there(tmp_path, raw):
    settings = dataclasses.replace(PAIRS, vocabulary=None, codes="absent.bpe")
    with pytest.raises(ValueError, match=r"codes = 'absent.bpe' must be a file in .*raw or at"):
        prepare("translation", settings, raw, tmp_path / "out")
    assert left_in(tmp_path) == ["raw"]


def test_other_codes_are_other_files(tmp_path):
    raw = write_segmented(tmp_path / "raw")
    settings = DataSettings(corpus="pairs", source_lang="en", target_lang="de", codes="codes.bpe")
    prepare("translation", settings, raw, tmp_path / "out", workers=1)
    write(raw / "codes.bpe", ["#version: 0.2", "d o"])
    with pytest.raises(ValueError, match="was prepared from other files"):
        prepare("translation", settings, raw, tmp_path / "out", workers=1)


def test_folders_of_older_versions_still_open(tmp_path, raw):
    out = tmp_path / "out"
    prepare("translation", PAIRS, raw, out, workers=1)
    card = json.loads((out / "data.json").read_text())
    for name in ("tokenizer", "protected", "codes"):
        del card["settings"][name]
    del card["report"]["repeats"]
    for split in card["report"]["splits"].values():
        del split["round_trip"]
    for counts in card["splits"].values():
        del counts["given_unknown"]
    (out / "data.json").write_text(json.dumps(card))
    console = Console(record=True, width=120)
    prepared = prepare("translation", PAIRS, raw, out, console=console)
    print_report(prepared, console)
    text = console.export_text()
    assert "is prepared already" in text
    assert "vocabulary: 60 entries" in text
    assert prepared.settings == PAIRS


def test_processes_change_nothing(tmp_path, raw, small_chunks):
    for workers in (1, 2):
        prepare("translation", PAIRS, raw, tmp_path / f"out{workers}", workers=workers)
    assert contents(tmp_path / "out1") == contents(tmp_path / "out2")


def test_shards_are_few(tmp_path, raw, small_chunks, monkeypatch):
    monkeypatch.setattr(stages, "_SHARDS", 2)
    prepared = prepare("translation", PAIRS, raw, tmp_path / "out", workers=1)
    assert left_in(tmp_path / "out" / "train") == ["00000.arrow", "00001.arrow"]
    decoded = prepared.tokenizer().batch_decode(
        prepared.split("train")["target"][:], skip_special_tokens=True
    )
    assert decoded == ENGLISH * 4


def test_done_work_is_not_redone(tmp_path, raw, monkeypatch):
    out = tmp_path / "out"
    prepare("translation", PAIRS, raw, out)
    monkeypatch.setattr(stages, "Stages", None)
    console = Console(record=True, width=200)
    prepare("translation", PAIRS, raw, out, console=console)
    assert "is prepared already, nothing is left to do" in console.export_text()
    other = dataclasses.replace(PAIRS, lowercase=True)
    with pytest.raises(
        ValueError, match=r"with data\.lowercase = False, not True: give another --out"
    ):
        prepare("translation", other, raw, out)
    with pytest.raises(ValueError, match="was prepared for translation, not for summarization"):
        prepare("summarization", PAIRS, raw, out)
    write(raw / "train.de", [*GERMAN * 3, *GERMAN[::-1]])
    os.utime(raw / "train.de", (1, 1))
    with pytest.raises(ValueError, match="was prepared from other files"):
        prepare("translation", PAIRS, raw, out)


@pytest.mark.parametrize(
    ("module", "name", "calls"),
    [
        (words, "tokenize_chunk", 0),
        (words, "tokenize_chunk", 3),
        (words, "count_words", 2),
        (stages, "bpe_backend", 0),
        (encoding, "encode_pairs", 0),
        (encoding, "encode_pairs", 4),
    ],
)
def test_an_interrupted_call_goes_on(tmp_path, raw, small_chunks, monkeypatch, module, name, calls):
    prepare("translation", PAIRS, raw, tmp_path / "undisturbed", workers=1)
    function = getattr(module, name)
    done = []

    def interrupted(*arguments):
        if len(done) == calls:
            raise KeyboardInterrupt
        done.append(arguments)
        return function(*arguments)

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(module, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            prepare("translation", PAIRS, raw, out, workers=1)
    assert not out.exists()
    assert left_in(tmp_path) == [".out.preparing", "raw", "undisturbed"]

    again = []
    monkeypatch.setattr(module, name, lambda *given: again.append(given) or function(*given))
    console = Console(record=True)
    prepare("translation", PAIRS, raw, out, workers=1, console=console)
    assert "going on from where the last call was interrupted" in console.export_text()
    assert contents(out) == contents(tmp_path / "undisturbed")
    assert left_in(tmp_path) == ["out", "raw", "undisturbed"]
    if name in ("tokenize_chunk", "encode_pairs"):
        assert not {str(given) for given in done} & {str(given) for given in again}


def test_other_settings_start_anew_after_an_interruption(tmp_path, raw, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(encoding, "encode_pairs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            prepare("translation", PAIRS, raw, tmp_path / "out")
    lower = dataclasses.replace(PAIRS, lowercase=True)
    prepared = prepare("translation", lower, raw, tmp_path / "out")
    assert prepared.tokenizer().tokenized_text("The DOG") == "the dog"


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on(tmp_path):
    raw = write_pairs(tmp_path / "raw", times=4_000)
    prepare("translation", PAIRS, raw, tmp_path / "undisturbed")
    out, work = tmp_path / "out", tmp_path / ".out.preparing"
    code = (
        "from pathlib import Path; from talkconv.data.prepare import prepare\n"
        "from talkconv.data.data_settings import DataSettings\n"
        f"prepare('translation', DataSettings(**{PAIRS.as_dict()!r}), Path({str(raw)!r}), "
        f"Path({str(out)!r}), workers=1)"
    )
    for moment in (0.0, 0.3, 0.6, 0.9, 1.2, 1.5):
        process = subprocess.Popen([sys.executable, "-c", code])
        while process.poll() is None and not work.exists():
            time.sleep(0.01)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if out.exists():
            break
    prepare("translation", PAIRS, raw, out)
    assert contents(out) == contents(tmp_path / "undisturbed")
    assert left_in(tmp_path) == ["out", "raw", "undisturbed"]


def spoil_counts(raw):
    write(raw / "train.en", ENGLISH * 4 + ["one more"])


def spoil_encoding(raw):
    (raw / "train.de").write_bytes((raw / "train.de").read_bytes() + b"M\xe4dchen\n")
    spoil_counts(raw)


def spoil_by_emptying(raw):
    (raw / "valid.en").write_bytes(b"")


def spoil_by_removing(raw):
    (raw / "train.de").unlink()


def spoil_all_pairs(raw):
    for lang in ("de", "en"):
        write(raw / f"train.{lang}", ["", ""])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_counts, r"train\.de ends after line 12, train\.en goes on"),
        (spoil_encoding, r"train\.de:13 must be UTF-8, got b'\\xe4dch' at byte 2"),
        (spoil_by_emptying, r"valid\.en must hold text, and is empty"),
        (spoil_by_removing, r"must hold these files, and does not:\n  train\.de\n"),
        (spoil_all_pairs, r"no training text is left after cleaning"),
    ],
)
def test_a_mistake_is_told_and_leaves_nothing(tmp_path, raw, small_chunks, spoil, message):
    spoil(raw)
    with pytest.raises(ValueError, match=message):
        prepare("translation", PAIRS, raw, tmp_path / "out", workers=1)
    assert left_in(tmp_path) == ["raw"]


def test_a_recipe_for_another_task(tmp_path, raw):
    with pytest.raises(
        ValueError, match=r"language_modelling needs running text.*pairs holds pairs"
    ):
        prepare("language_modelling", PAIRS, raw, tmp_path / "out")
    with pytest.raises(ValueError, match=r"translation needs pairs.*text holds running text"):
        prepare("translation", WORDS, write_text(tmp_path / "text"), tmp_path / "out")
    assert left_in(tmp_path) == ["raw", "text"]


def test_odd_lines_are_handled_and_reported(tmp_path, raw):
    odd = [
        ("Hund " * 100_000, "dog " * 100_000),
        ("", "empty"),
        ("x" * 5_000, "long word"),
    ]
    for side, lang in enumerate(("de", "en")):
        lines = [*(GERMAN, ENGLISH)[side], *(pair[side] for pair in odd)]
        write(raw / f"train.{lang}", lines, end="\r\n")
        # scores are over the whole test set, whatever is in it
        write(raw / f"test.{lang}", [*(GERMAN, ENGLISH)[side], ("", "empty")[side]])
    prepared = prepare("translation", PAIRS, raw, tmp_path / "out")
    report = prepared.card["report"]
    assert report["splits"]["train"] == dict(
        read=6,
        kept=3,
        dropped={"a side of more than 1000 words": 1, EMPTY: 1, LONG_WORD: 1},
        round_trip=dict(checked=0, changed=0, examples=[]),
    )
    assert report["notes"] == {WINDOWS: 12}
    assert prepared.texts("test") == ([*GERMAN, ""], [*ENGLISH, "empty"])
    assert prepared.split("test")[3]["source"] == [2]


def test_a_full_disk_leaves_no_folder(tmp_path, raw, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(encoding, "encode_pairs", full)
        with pytest.raises(OSError, match="No space left"):
            prepare("translation", PAIRS, raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert len(prepare("translation", PAIRS, raw, tmp_path / "out").split("train")) == 12


def test_the_command(tmp_path, raw, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["prepare", "multi30k_de_en", "data.vocabulary=60", "--raw", str(raw)]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    assert "vocabulary: 60 entries" in first.output
    assert (tmp_path / "data" / "multi30k_de_en" / "data.json").exists()
    second = CliRunner().invoke(app, command)
    assert "is prepared already" in second.output
    shutil.rmtree(tmp_path / "data")
    spoil_counts(raw)
    failed = CliRunner().invoke(app, command)
    assert failed.exit_code == 1
    assert failed.output.count("not prepared:") == 1
    assert "Traceback" not in failed.output
    assert left_in(tmp_path / "data") == []
    unknown = CliRunner().invoke(app, ["prepare", "multi30k_de_em", "--raw", str(raw)])
    assert unknown.exit_code == 1
    assert "multi30k_de_en" in unknown.output
