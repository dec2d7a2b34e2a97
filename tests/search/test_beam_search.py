import itertools
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from talkconv.search.beam_search import BeamSettings, beam_search
from talkconv.search.hypotheses import Rules

# log-probabilities of the words 0, 1, 2 and of the end, 3, after each of the three words
_LOGITS = np.array([[0.1, 0.5, 1.2, 0.3], [0.9, 0.2, 0.1, 0.7], [0.4, 1.1, 0.2, 0.6]])
TABLE = (_LOGITS - np.log(np.exp(_LOGITS).sum(axis=1, keepdims=True))).astype(np.float32)
END = 3
RULES = [field.name for field in fields(Rules)]


def settings_of(**changes):
    rules = {name: changes.pop(name) for name in list(changes) if name in RULES}
    plain = dict(num_beams=3, max_length=9, pad=1, length_penalty=1.0)
    return BeamSettings(**{**plain, **changes}, rules=Rules(**{"eos": (END,), **rules}))


class Markov:
    """A network whose next word depends only on the last one. It records its calls."""

    def __init__(self, table=TABLE):
        self.table = table
        self.calls = []

    def best(self, tokens, parents, forbidden, k):
        self.calls.append((tokens, parents, forbidden))
        log_probs = self.table[np.minimum(tokens[:, -1], len(self.table) - 1)].copy()
        if forbidden is not None:
            log_probs[forbidden.rows, forbidden.words] = -np.inf
        # fewer words than candidates: the rest can never be chosen
        log_probs = np.pad(log_probs, ((0, 0), (0, 80)), constant_values=-np.inf)
        best = np.argsort(-log_probs, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(log_probs, best, axis=1), best


def every_output(most, penalty=0.0, power=0.5):
    """Return the score of each output of up to `most` words after word 0."""
    scored = {}
    for length in range(1, most + 1):
        for words in itertools.product(range(3), repeat=length - 1):
            for last in range(4) if length == most else (END,):
                output = (0, *words, last)
                total = sum(TABLE[a][b] - penalty for a, b in itertools.pairwise(output))
                scored[output] = total / length**power
    return scored


def written(found, row=0, n=0):
    return tuple(found.tokens[row, n, : found.lengths[row, n]].tolist())


@pytest.mark.parametrize("step_penalty", [0.1, 0.0, -0.4, -1.5, -4.0])
@pytest.mark.parametrize("early_stopping", [False, "never"])
def test_wide_beams_find_the_best_of_all(step_penalty, early_stopping):
    settings = settings_of(
        num_beams=27,
        max_length=5,
        length_penalty=0.5,
        step_penalty=step_penalty,
        early_stopping=early_stopping,
    )
    scored = every_output(4, step_penalty)
    found = beam_search(Markov(), np.array([[0]]), settings)
    best = sorted(scored, key=scored.get, reverse=True)[:3]
    assert written(found) == best[0]
    assert found.scores[0, :3].tolist() == pytest.approx([scored[o] for o in best], abs=1e-5)


def test_the_prompts_are_read_once_and_beams_name_their_parents():
    network = Markov()
    beam_search(network, np.array([[1, 0], [0, 2]]), settings_of(num_beams=2, max_length=5, eos=()))
    tokens, parents, _ = network.calls[0]
    assert (tokens.tolist(), parents) == ([[1, 0], [0, 2]], None)
    tokens, parents, _ = network.calls[1]
    # the likeliest words after 0 are 2 and 1, after 2 they are 1 and 0 (the end is a word here)
    assert tokens.shape == (4, 1)
    assert tokens[:, 0].tolist() == [2, 1, 1, 3]
    assert parents.tolist() == [0, 0, 1, 1]


def test_outputs_are_filled_with_padding_behind_their_end():
    found = beam_search(Markov(), np.array([[0]]), settings_of(pad=77)).best(3)
    for n in range(3):
        length = found.lengths[0, n]
        assert (found.tokens[0, n, length:] == 77).all()
        assert (found.tokens[0, n, :length] != 77).all()


def test_the_least_length_counts_the_prompt():
    found = beam_search(Markov(), np.array([[0, 1]]), settings_of(min_length=6, length_penalty=0.0))
    # five tokens and more, then the end
    assert found.lengths.min() >= 7
    assert (found.tokens[0, 0, :6] != END).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_ngram_comes_twice(n):
    settings = settings_of(no_repeat_ngram=n, max_length=12, eos=(), num_beams=2)
    prompt = np.array([[0, 1, 2, 0]]) if n > 1 else np.array([[0]])
    network = Markov(np.pad(TABLE, ((0, 9), (0, 9)), mode="edge"))
    words = written(beam_search(network, prompt, settings))
    grams = list(zip(*(words[at:] for at in range(n)), strict=False))
    assert len(grams) == len(set(grams))
    free = written(beam_search(network, prompt, settings_of(max_length=12, eos=(), num_beams=2)))
    assert words != free


def test_each_sentence_has_its_own_limit():
    prompts, limits = np.array([[0], [1], [2]]), np.array([2, 4, 9])
    together = beam_search(Markov(), prompts, settings_of(limits=limits))
    for row, limit in enumerate(limits):
        alone = beam_search(Markov(), prompts[row : row + 1], settings_of(max_length=int(limit)))
        assert together.tokens[row, 0, :limit].tolist() == alone.tokens[0, 0].tolist()
        assert together.scores[row].tolist() == pytest.approx(alone.scores[0].tolist(), abs=1e-6)


def test_early_stopping_takes_the_first_that_end():
    first, longer = (Markov() for _ in range(2))
    prompt = np.array([[0]])
    stopped = beam_search(first, prompt, settings_of(early_stopping=True, length_penalty=5.0))
    never = beam_search(longer, prompt, settings_of(early_stopping="never", length_penalty=5.0))
    assert len(first.calls) < len(longer.calls)
    assert stopped.scores[0, 0] < never.scores[0, 0]


def test_needs_neither_torch_nor_transformers():
    check = (
        "import sys, talkconv.generation.text_model, talkconv.loading; "
        "print(*sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == ""
