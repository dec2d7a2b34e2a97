import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from talkconv.generation.text_generator import TextGenerator, batches_of, generate_texts, padded
from tests.evaluation.cases import SMALL, language_model, texts, tokenizer, translator


def written(lines, settings=SMALL, model=None, seed=None, **kwargs):
    rng = np.random.default_rng(seed)
    generator = TextGenerator(model or translator(), tokenizer(), settings, rng=rng)
    return list(generator.outputs(lines, **kwargs))


def test_outputs_are_those_of_generate_line_by_line():
    model, words = translator(), tokenizer()
    lines = texts(12)
    found = written(lines, replace(SMALL, max_ratio=0, max_extra=12), model)
    lengths = set()
    for line, (output,) in zip(lines, found, strict=True):
        ids = torch.tensor([words(line)["input_ids"]])
        theirs = model.generate(ids, num_beams=3, max_new_tokens=12, length_penalty=1.0)[0]
        assert output.text == words.decode(theirs, skip_special_tokens=True)
        lengths.add(len(output.tokens))
    assert len(lengths) > 2


@functools.cache
def written_as_usual(count):
    return written(texts(count))


@pytest.mark.parametrize("read_ahead", [1, 4, 1000])
@pytest.mark.parametrize("batch_tokens", [1, 30, 2048])
def test_batches_and_windows_change_nothing(read_ahead, batch_tokens):
    lines, usual = texts(17), written_as_usual(17)
    other = written(lines, replace(SMALL, read_ahead=read_ahead, batch_tokens=batch_tokens))
    assert [o.text for (o,) in other] == [o.text for (o,) in usual]
    assert [o.score for (o,) in other] == pytest.approx([o.score for (o,) in usual], abs=1e-4)


def test_outputs_come_before_all_lines_are_read():
    read = []

    def lines():
        for line in texts(20):
            read.append(line)
            yield line

    outputs = generate_texts(translator(), tokenizer(), lines(), replace(SMALL, read_ahead=4))
    next(outputs)
    assert len(read) == 4


def test_lines_are_counted_as_they_are_done():
    done = []
    writer = TextGenerator(translator(), tokenizer(), replace(SMALL, batch_tokens=16))
    list(writer.outputs(texts(10), on_done=done.append))
    assert sum(done) == 10
    assert len(done) > 2


def test_empty_lines_stay_empty():
    found = written(["w1 w2", "", "  ", "w3"], n_best=2)
    assert [len(outputs) for outputs in found] == [2, 2, 2, 2]
    assert [[o.text for o in found[at]] for at in (1, 2)] == [["", ""], ["", ""]]
    alone = written(["w1 w2"], n_best=2)[0]
    assert [o.tokens for o in found[0]] == [o.tokens for o in alone]


def test_nothing_gives_nothing():
    assert written([]) == []


def test_n_best_come_the_best_first_and_differ():
    for outputs in written(texts(6), n_best=3):
        assert outputs == sorted(outputs, key=lambda output: -output.score)
        assert len({tuple(output.tokens) for output in outputs}) == 3


@pytest.mark.parametrize("n_best", [0, 4])
def test_n_best_is_at_most_the_beams(n_best):
    with pytest.raises(ValueError, match="n_best must be from 1 to num_beams=3"):
        written(["w1"], n_best=n_best)


def test_more_beams_than_words_is_said():
    with pytest.raises(ValueError, match="num_beams must be at most 14 with 29 words, got 15"):
        written(["w1"], replace(SMALL, num_beams=15))


def test_long_lines_are_cut_and_said():
    said = []
    settings = replace(SMALL, max_source_tokens=4, read_ahead=2)
    lines = ["w1", "w2", "w3 w4 w5 w6 w7 w8"]
    found = written(lines, settings, on_cut=lambda line, tokens: said.append((line, tokens)))
    assert said == [(2, 7)]
    # three words and the end of the line
    assert (
        found[2][0].text
        == written(["w3 w4 w5"], replace(settings, max_source_tokens=99))[0][0].text
    )


def test_outputs_are_as_long_as_their_sources_allow():
    settings = replace(SMALL, max_ratio=1.0, max_extra=1, max_length=6)
    model = translator(seed=0)
    lines = texts(10)
    for line, (output,) in zip(lines, written(lines, settings, model), strict=True):
        # an end would count too, but none needs to be there
        assert len(output.tokens) <= min(6, len(line.split()) + 1 + 1)


def test_least_lengths_and_no_repeats():
    settings = replace(SMALL, min_length=5, no_repeat_ngram=1)
    for (output,) in written(texts(8), settings):
        assert len(output.tokens) >= 5
        assert len(set(output.tokens)) == len(output.tokens)


def test_a_language_model_goes_on_from_a_line():
    model, words = language_model(), tokenizer()
    settings = replace(SMALL, max_length=5)
    lines = ["w1 w2 w3", "w4", "w5 w6"]
    for line, (output,) in zip(lines, written(lines, settings, model), strict=True):
        # the end of the line before, the words, and no end
        ids = torch.tensor([[2, *words(line)["input_ids"][:-1]]])
        theirs = model.generate(ids, num_beams=3, max_new_tokens=5, length_penalty=1.0)[0]
        assert output.text == words.decode(theirs[ids.shape[1] :], skip_special_tokens=True)


def test_a_long_prompt_keeps_its_end():
    model = language_model()
    short = written(["w5 w6 w7"], replace(SMALL, max_source_tokens=4), model)[0][0]
    cut = written(["w1 w2 w3 w4 w5 w6 w7"], replace(SMALL, max_source_tokens=3), model)[0][0]
    ids = torch.tensor([tokenizer()("w5 w6 w7")["input_ids"][:-1]])
    theirs = model.generate(ids, num_beams=3, max_new_tokens=12, length_penalty=1.0)[0, 3:]
    assert cut.text == tokenizer().decode(theirs, skip_special_tokens=True)
    assert short.tokens


def test_samples_differ_and_repeat_with_the_seed():
    settings = replace(SMALL, temperature=1.0, max_length=8)
    runs, model = [], language_model()
    for seed in (0, 0, 1):
        found = written(["w1 w2", "w3"], settings, model, seed, n_best=4)
        runs.append([[o.text for o in outputs] for outputs in found])
        for outputs in found:
            assert outputs == sorted(outputs, key=lambda output: -output.score)
    assert runs[0] == runs[1] != runs[2]
    assert len(set(itertools.chain(*runs[0]))) > 4


def test_the_score_of_a_sample_is_its_mean_log_probability():
    model = language_model()
    settings = replace(SMALL, temperature=1.0, max_length=6)
    for (output,) in written(texts(5), settings, model):
        assert output.score < 0
    line = "w1 w2"
    ((output,),) = written([line], settings, model)
    ids = [2, *tokenizer()(line)["input_ids"][:-1]]
    # it ended, unless it has all tokens it may have
    end = [] if len(output.tokens) == 6 else [2]
    whole = torch.tensor([[*ids, *output.tokens, *end]])
    log_probs = model(whole[:, :-1]).logits[0].log_softmax(dim=-1)
    steps = log_probs.gather(1, whole[0, 1:, None])[len(ids) - 1 :]
    assert output.score == pytest.approx(steps.mean().item(), abs=1e-4)


def test_another_tokenizer_may_write():
    other = tokenizer([f"v{number}" for number in range(25)])
    model = translator()
    (ours,) = next(TextGenerator(model, tokenizer(), SMALL).outputs(["w19 w24"]))
    (theirs,) = next(TextGenerator(model, tokenizer(), SMALL, other).outputs(["w19 w24"]))
    assert ours.text.replace("w", "v") == theirs.text != ""


def test_batches_hold_like_lengths_within_the_budget():
    sources = [[0] * n for n in (3, 0, 9, 4, 1, 2, 5, 30)]
    batches = list(batches_of(sources, 10))
    assert sorted(itertools.chain(*batches)) == [0, 2, 3, 4, 5, 6, 7]
    for batch in batches:
        longest = max(len(sources[index]) for index in batch)
        assert len(batch) == 1 or longest * len(batch) <= 10
    assert batches[0] == [7]


def test_padding_stands_where_it_should():
    tokens, mask = padded([[5, 6, 7], [8]], 1, left=True)
    assert tokens.tolist() == [[5, 6, 7], [1, 1, 8]]
    assert mask.tolist() == [[1, 1, 1], [0, 0, 1]]
    assert padded([[5, 6, 7], [8]], 1, left=False)[0].tolist() == [[5, 6, 7], [8, 1, 1]]
