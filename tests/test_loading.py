import subprocess
import sys

import pytest

import talkconv
from talkconv.generation.text_generator import generate_texts
from tests.evaluation.cases import SMALL, language_model, make_run, texts, tokenizer, translator


def test_a_run_answers_by_its_own_settings(tmp_path):
    model = talkconv.load(make_run(tmp_path))
    expected = [o.text for (o,) in generate_texts(translator(), tokenizer(), texts(5), SMALL)]
    assert model.translate(texts(5)) == expected
    assert model.settings == SMALL
    # the name of a folder may be a string
    assert talkconv.load(str(tmp_path)).translate(texts(5)) == expected


def test_the_network_of_a_run_can_be_named(tmp_path):
    make_run(tmp_path, translator(1), names=("best",))
    make_run(tmp_path, translator(2), names=("last",))
    lines = texts(8)
    best, last = (talkconv.load(tmp_path, name).translate(lines) for name in ("best", "last"))
    assert best != last
    assert best == talkconv.load(tmp_path).translate(lines)


def test_a_language_model_completes(tmp_path):
    network = language_model()
    ((output,),) = generate_texts(network, tokenizer(), ["w1 w2"], SMALL)
    model = talkconv.load(make_run(tmp_path, network))
    assert model.complete("w1 w2") == output.text


def test_a_folder_of_a_model_needs_no_card(tmp_path):
    make_run(tmp_path)
    assert talkconv.load(tmp_path / "best").task == "translation"


def test_a_missing_run_is_told(tmp_path):
    with pytest.raises(ValueError, match="must be the folder of a run or of a model"):
        talkconv.load(tmp_path / "nowhere")


def output_of(code):
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return answer.stdout.split()


def test_the_package_and_load_start_without_torch():
    heavy = "print(*sorted({'torch', 'transformers'} & set(sys.modules)))"
    assert output_of(f"import sys, talkconv; talkconv.load; {heavy}") == []
    assert output_of(f"import sys, talkconv; talkconv.talk_conv; {heavy}") == ["torch"]


def test_every_public_name_is_there():
    for name in [*talkconv.__all__, "layers", "models", "ops"]:
        assert name in dir(talkconv)
        assert getattr(talkconv, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        talkconv.nothing  # noqa: B018
