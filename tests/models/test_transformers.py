"""Tests our networks with other tools: Auto classes, pipelines, stop strings and adapters."""

import subprocess
import sys
from collections import Counter

import pytest
import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

from talkconv.data.data_settings import DataSettings
from talkconv.data.tokenizer import make_tokenizer
from talkconv.data.vocabulary import word_backend
from talkconv.models import TaLKConvConfig, TaLKConvForSequenceClassification
from talkconv.models.stop_strings import StopStrings
from tests.models.cases import SIZES, language_model, seq2seq, tokens

WORDS = ["the", "dog", "cat", "returns", "sleeps", ".", ",", "ball", "a"]


def make_text_tokenizer(*, open_ended):
    settings = DataSettings(corpus="pairs", source_lang="en", target_lang="en")
    return make_tokenizer(word_backend(Counter(WORDS)), settings, open_ended=open_ended)


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    """Return the folder of a language model over WORDS, with its tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    words = make_text_tokenizer(open_ended=True)
    torch.manual_seed(0)
    model = language_model(vocab_size=len(words))
    # no special token comes
    model.lm_head.weight.data[:4] = 0
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def test_the_text_generation_pipeline_does_not_glue_words(model_folder):
    write = pipeline("text-generation", model=str(model_folder), device="cpu")
    prompt = "The dog returns"
    (found,) = write(prompt, max_new_tokens=6, do_sample=False)
    text = found["generated_text"]
    assert text.startswith(prompt)
    # a word follows after a space, a comma or a full stop without one
    rest = text.removeprefix(prompt)
    assert rest[:1] in {" ", ".", ","}
    assert all(word.strip(".,") in {*WORDS, ""} for word in rest.split())
    model, words = write.model, AutoTokenizer.from_pretrained(model_folder)
    ids = words(prompt, return_tensors="pt")["input_ids"]
    new = model.generate(ids, max_new_tokens=6, do_sample=False)[0, ids.shape[1] :]
    assert rest == words.decode(new, skip_special_tokens=True)


# One process tries all three, because each import of transformers takes seconds.
WITHOUT_TALKCONV = """
import json, sys
from transformers import AutoModel, AutoModelForCausalLM, pipeline

(folder,) = sys.argv[1:]
for load in (
    lambda: AutoModelForCausalLM.from_pretrained(folder),
    lambda: AutoModel.from_pretrained(folder),
    lambda: pipeline("text-generation", model=folder),
):
    try:
        load()
    except Exception as error:
        print(json.dumps(str(error)))
assert "talkconv" not in sys.modules
"""


def test_without_talkconv_a_network_is_an_error(model_folder):
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_TALKCONV, str(model_folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    errors = [line for line in answer.stdout.splitlines() if line.startswith('"')]
    assert len(errors) == 3, answer.stdout
    assert all("talkconv" in error for error in errors)


@pytest.mark.parametrize("beams", [1, 3])
def test_stop_strings_end_an_output(model_folder, beams):
    model = AutoModelForCausalLM.from_pretrained(model_folder)
    words = AutoTokenizer.from_pretrained(model_folder)
    ids = words("The dog", return_tensors="pt")["input_ids"]
    settings = dict(max_new_tokens=12, num_beams=beams, eos_token_id=None)

    def text_of(outputs):
        return words.decode(outputs[0, ids.shape[1] :], skip_special_tokens=True)

    whole = model.generate(ids, **settings)
    # the end of the third new word and the whole fourth one
    three, four = (text_of(whole[:, : ids.shape[1] + count]) for count in (3, 4))
    stop = three[-2:] + four.removeprefix(three)
    found = text_of(model.generate(ids, stop_strings=stop, tokenizer=words, **settings))
    assert found.endswith(stop)
    assert found.index(stop) + len(stop) == len(found)
    if beams == 1:
        assert found == text_of(whole)[: text_of(whole).index(stop) + len(stop)]


def test_stop_strings_are_found_in_the_text_that_is_shown():
    """That text has no special tokens, and the prompt is not part of it."""
    words = make_text_tokenizer(open_ended=True)
    dog, cat = (words.convert_tokens_to_ids(word) for word in ("dog", "cat"))
    ends = StopStrings(words, ["dog cat"])
    prompt = [dog, cat]
    assert ends(torch.tensor([[*prompt, dog]]), None).tolist() == [False]
    new = [[dog, words.pad_token_id, cat], [dog, dog, dog]]
    found = ends(torch.tensor([[*prompt, *row] for row in new]), None)
    assert found.tolist() == [True, False]


def test_stop_strings_need_a_tokenizer(model_folder):
    model = AutoModelForCausalLM.from_pretrained(model_folder)
    with pytest.raises(ValueError, match="tokenizer"):
        model.generate(tokens(1, 3, vocab_size=9), stop_strings=["dog"], max_new_tokens=3)


def adapted(model, task):
    return get_peft_model(
        model, LoraConfig(task_type=task, r=2, lora_alpha=4, target_modules="all-linear")
    )


@pytest.mark.parametrize(
    ("make", "task", "inputs"),
    [
        (
            seq2seq,
            TaskType.SEQ_2_SEQ_LM,
            dict(input_ids=tokens(2, 6), labels=tokens(2, 5, seed=1)),
        ),
        (language_model, TaskType.CAUSAL_LM, dict(input_ids=tokens(2, 6), labels=tokens(2, 6))),
        (
            lambda: TaLKConvForSequenceClassification(
                TaLKConvConfig(**SIZES, encoder_l_max=[1, 3], num_labels=3)
            ),
            TaskType.SEQ_CLS,
            dict(input_ids=tokens(2, 6), labels=torch.tensor([0, 2])),
        ),
    ],
    ids=["seq2seq", "lm", "classifier"],
)
def test_lora_trains_saves_and_loads(make, task, inputs, tmp_path):
    torch.manual_seed(0)
    plain = make().eval()
    plain.save_pretrained(tmp_path / "base")
    model = adapted(plain, task)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    losses = []
    for _ in range(5):
        loss = model(**inputs).loss
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < losses[0]
    model.save_pretrained(tmp_path / "adapter")
    base = type(plain).from_pretrained(tmp_path / "base")
    read = PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    expected = model.eval()(**inputs)
    torch.testing.assert_close(read(**inputs).logits, expected.logits)


@pytest.mark.parametrize(
    ("make", "task"), [(seq2seq, TaskType.SEQ_2_SEQ_LM), (language_model, TaskType.CAUSAL_LM)]
)
@pytest.mark.parametrize("beams", [1, 3])
def test_an_adapted_network_generates(make, task, beams):
    plain = make()
    settings = dict(max_new_tokens=5, num_beams=beams, eos_token_id=None)
    expected = plain.generate(input_ids=tokens(2, 6), **settings)
    # the second matrix of an adapter starts at 0
    found = adapted(plain, task).generate(input_ids=tokens(2, 6), **settings)
    assert found.tolist() == expected.tolist()
