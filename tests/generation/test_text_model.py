import pytest

from talkconv.generation.text_generator import generate_texts
from talkconv.generation.text_model import TextModel
from talkconv.runs.generation_settings import GenerationSettings
from tests.evaluation.cases import SMALL, language_model, texts, tokenizer, translator


@pytest.fixture(scope="module")
def model():
    return TextModel(translator(), tokenizer(), SMALL, "translation")


def expected(lines, settings=SMALL):
    outputs = generate_texts(translator(), tokenizer(), lines, settings)
    return [output.text for (output,) in outputs]


def test_answers_each_line_in_order(model):
    lines = [*texts(9), "", *texts(3, seed=1)]
    assert model.translate(lines) == expected(lines)
    assert model.generate(iter(lines)) == expected(lines)
    assert model.translate([]) == []


def test_a_string_gives_a_string(model):
    assert model.translate("w1 w2") == expected(["w1 w2"])[0]
    with pytest.raises(TypeError, match="got one string: put it in a list"):
        model.outputs("w1 w2")


def test_settings_are_changed_for_one_call(model):
    lines = texts(6)
    other = GenerationSettings(num_beams=1, max_length=4)
    assert model.generate(lines, beams=1, max_length=4) == expected(lines, other)
    assert model.generate(lines, num_beams=1, max_length=4) == expected(lines, other)
    assert model.generate(lines) == expected(lines) != expected(lines, other)


def test_scores_come_with_outputs(model):
    for outputs in model.outputs(texts(4), n_best=3):
        assert len(outputs) == 3
        assert outputs == sorted(outputs, key=lambda output: -output.score)


def test_samples_follow_the_seed():
    model = TextModel(language_model(), tokenizer(), SMALL, "language_modelling")
    first, again, other = (
        model.complete(texts(4), temperature=1.0, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_cut_line_is_a_warning(model):
    with pytest.warns(UserWarning, match="line 2 has 6 tokens, but only 3 are read"):
        model.translate(["w1", "w1 w2 w3 w4 w5"], max_source_tokens=3)


def test_mistakes_are_told_before_anything_runs(model):
    with pytest.raises(ValueError, match=r"use .translate\(lines\) instead of .summarize\(lines\)"):
        model.summarize(["w1"])
    with pytest.raises(ValueError, match=r"use .translate\(lines\) instead of .complete\(lines\)"):
        model.complete(["w1"])
    with pytest.raises(ValueError, match="no setting of generation is called 'num_beam'"):
        model.generate(["w1"], num_beam=3)
    with pytest.raises(ValueError, match="n_best must be from 1 to num_beams=3, got 4"):
        model.outputs(["w1"], n_best=4)
    with pytest.raises(TypeError, match="got int as line 2"):
        model.translate(["w1", 2])


@pytest.mark.parametrize("task", ["summarization", "translation"])
def test_each_task_has_its_method(task):
    model = TextModel(translator(), tokenizer(), SMALL, task)
    method = {"summarization": model.summarize, "translation": model.translate}[task]
    assert method("w1 w2") == expected(["w1 w2"])[0]
