import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.serving import export as export_module
from talkconv.serving.export import ExportRequest, export
from talkconv.serving.export_card import ExportCard
from talkconv.serving.validation_lines import ValidationScore
from tests.evaluation.cases import make_run, translator
from tests.serving.cases import translation_run


def files_of(folder):
    """Return the files of an export; other tests of this session may have scored it."""
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return sorted(str(path) for path in files if path.parts[0] != "evaluation")


def test_a_translator_is_written_whole_and_the_checks_are_told(translation):
    networks = [f"{name}/{part}.onnx" for name in ("float32", "int8") for part in PARTS]
    tokenizer = ["tokenizer/tokenizer.json", "tokenizer/tokenizer_config.json"]
    assert files_of(translation.folder) == sorted(
        ["README.md", "export.json", *networks, *tokenizer]
    )
    card = ExportCard.read(translation.folder)
    assert card.checks["random inputs"] == 100
    assert card.checks["logits"] <= 1e-5
    assert card.checks["same outputs"] == 3
    assert "logits differ by at most" in translation.said
    assert "the outputs for 3 lines are the same" in translation.said
    for name in ("float32", "int8"):
        told = card.checks[name]
        assert f"{name}: {told['score']}, {told['megabytes']} MB" in translation.said
        assert told["score"].startswith("BLEU")


def test_an_export_tells_nothing_about_the_disk_of_its_machine(translation):
    """It is made to be shared. An evaluation beside it is a record of this machine."""
    paths = [str(translation.run.parent), str(Path(export_module.__file__).parents[2])]
    for name in files_of(translation.folder):
        content = (translation.folder / name).read_bytes()
        for path in paths:
            assert path.encode() not in content, f"{path} in {name}"
    assert ExportCard.read(translation.folder).run.data is None


PARTS = ("encoder", "decoder")


def test_a_language_model_has_no_encoder_and_is_scored_by_its_loss(language_model):
    assert not (language_model.folder / "float32/encoder.onnx").exists()
    card = ExportCard.read(language_model.folder)
    assert card.checks["int8"]["score"].startswith("loss")


def test_the_model_card_says_what_was_checked(translation):
    text = (translation.folder / "README.md").read_text(encoding="utf-8")
    assert "translation from de to en" in text
    assert "The outputs for 3 validation lines are the same" in text
    assert "`int8/`" in text
    assert max(map(len, text.splitlines())) < 130


@pytest.fixture
def request_(tmp_path, monkeypatch, translation):
    """Return a request whose graphs are those of the shared export, so that it takes no time."""

    def copy(network, folder):
        folder.mkdir()
        for part in PARTS:
            name = f"{part}.onnx"
            (folder / name).write_bytes((translation.folder / "float32" / name).read_bytes())

    monkeypatch.setattr(export_module, "write_graphs", copy)
    monkeypatch.setattr(export_module, "INPUTS", 4)
    return ExportRequest(translation.run, tmp_path / "new")


def test_nothing_is_published_if_the_logits_differ(request_, monkeypatch):
    def other(folder, *args):
        run = open_run(folder, *args)
        run.model.decoder.embed_tokens.weight.data += 1e-3
        return run

    open_run = export_module.open_run
    monkeypatch.setattr(export_module, "open_run", other)
    with pytest.raises(ValueError, match="the logits of the export must be within 1e-05"):
        export(request_, Console())
    assert list(request_.folder.parent.iterdir()) == []


def test_nothing_is_published_if_an_output_differs(request_, monkeypatch):
    outputs = export_module._outputs
    answers = iter([lambda found: found, lambda found: [*found[:1], replace(found[1], tokens=[5])]])

    monkeypatch.setattr(export_module, "_outputs", lambda *args: next(answers)(outputs(*args)[:2]))
    with pytest.raises(ValueError, match="differs for 1 of 2 lines, first for 'Die Katze"):
        export(request_, Console())
    assert list(request_.folder.parent.iterdir()) == []


def test_a_folder_that_is_there_is_not_touched(request_):
    request_.folder.mkdir()
    (request_.folder / "mine.txt").write_text("kept")
    with pytest.raises(ValueError, match="must not exist yet"):
        export(request_, Console())
    assert files_of(request_.folder) == ["mine.txt"]


@pytest.mark.parametrize(("rounded", "loud"), [(34.8, False), (34.6, True)])
def test_a_loss_of_more_than_three_tenths_of_bleu_is_said_loudly(
    request_, monkeypatch, capsys, rounded, loud
):
    scores = iter([ValidationScore("BLEU", 35.0), ValidationScore("BLEU", rounded)])
    monkeypatch.setattr(export_module, "_score", lambda *args: next(scores))
    export(replace(request_, int8=True, limit=1), Console(width=200))
    assert ("int8 is worse by 0.40 BLEU" in capsys.readouterr().out) == loud


def test_a_higher_loss_is_worse():
    assert ValidationScore("loss", 2.0).loss_to(ValidationScore("loss", 2.5)) == 0.5


def test_a_network_without_data_is_compared_on_lines_of_a_file(request_, tmp_path, capsys):
    card = json.loads((request_.run / "run.json").read_text(encoding="utf-8"))
    run = tmp_path / "moved"
    (run / "best").mkdir(parents=True)
    for path in (request_.run / "best").iterdir():
        (run / "best" / path.name).write_bytes(path.read_bytes())
    (run / "run.json").write_text(json.dumps({**card, "data": None}), encoding="utf-8")
    with pytest.raises(ValueError, match="names no data"):
        export(replace(request_, run=run), Console())
    lines = tmp_path / "lines.txt"
    lines.write_text("Der Hund.\n\nDie Katze.\n", encoding="utf-8")
    export(replace(request_, run=run, lines=lines), Console(width=200))
    assert "the outputs for 3 lines are the same" in capsys.readouterr().out


def test_other_mixers_are_refused_in_one_message(tmp_path):
    run = make_run(tmp_path / "run", translator(encoder_mixer="attention"))
    lines = tmp_path / "lines.txt"
    lines.write_text("w1\n")
    words = ["export", str(run), str(tmp_path / "new"), "--lines", str(lines)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert "not exported: export needs networks whose mixers are all 'talk'" in result.output
    assert "got a SelfAttention" in result.output
    assert not (tmp_path / "new").exists()


def test_both_vocabularies_of_a_converted_network_are_exported(tmp_path, monkeypatch):
    run = translation_run(tmp_path)
    source = run / "best"
    (source / "target_tokenizer").mkdir()
    for name in export_module.TOKENIZER_FILES:
        (source / "target_tokenizer" / name).write_bytes((source / name).read_bytes())
    monkeypatch.setattr(export_module, "CONVERTED_TARGET", "target_tokenizer")
    opened = export_module.open_run(run, None, "cpu")
    (tmp_path / "out").mkdir()
    export_module._copy_tokenizers(opened, tmp_path / "out")
    assert len(files_of(tmp_path / "out" / "target_tokenizer")) == 2
