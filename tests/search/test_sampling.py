import numpy as np
import pytest

from talkconv.search.hypotheses import Rules
from talkconv.search.sampling import SampleSettings, sample

# the probabilities of the words 0 .. 4, whatever came before; 4 is the end
PROBS = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
END = 4


class Constant:
    """A network whose words do not depend on one another. It records the parents of its rows."""

    def __init__(self):
        self.parents = []

    def log_probs(self, tokens, parents):
        self.parents.append(None if parents is None else parents.tolist())
        return np.log(PROBS).astype(np.float32)[None].repeat(len(tokens), axis=0)


def settings_of(rules=None, **changes):
    return SampleSettings(
        **{"max_length": 2, "pad": 9, **changes}, rules=rules or Rules(eos=(END,))
    )


def drawn(draws=20_000, **changes):
    """Return how often each word came as the first one."""
    found = sample(
        Constant(), np.array([[0]]), settings_of(**changes), draws, np.random.default_rng(0)
    )
    return np.bincount(found.tokens[0, :, 1], minlength=5) / draws


def test_words_come_as_often_as_they_are_likely():
    assert drawn() == pytest.approx(PROBS, abs=0.015)


def test_temperature_sharpens():
    expected = PROBS**2 / (PROBS**2).sum()
    assert drawn(temperature=0.5) == pytest.approx(expected, abs=0.015)


def test_top_k_and_top_p_leave_the_likeliest():
    assert drawn(top_k=2) == pytest.approx([4 / 7, 3 / 7, 0, 0, 0], abs=0.015)
    # 0.4 + 0.3 is less than 0.75, so that the third word is drawn, too
    expected = np.array([0.4, 0.3, 0.15, 0, 0]) / 0.85
    assert drawn(top_p=0.75) == pytest.approx(expected, abs=0.015)
    assert drawn(top_p=0.01) == pytest.approx([1, 0, 0, 0, 0])


def test_forbidden_words_do_not_come():
    least = drawn(rules=Rules(eos=(END,), min_length=2))
    assert least == pytest.approx([0.4, 0.3, 0.15, 0.1, 0] / np.float64(0.95), abs=0.015)
    once = sample(
        Constant(),
        np.array([[0]]),
        settings_of(rules=Rules(no_repeat_ngram=1), max_length=5),
        50,
        np.random.default_rng(0),
    )
    assert all(sorted(row) == [0, 1, 2, 3, 4] for row in once.tokens[0].tolist())


def test_scores_are_of_the_distribution_drawn_from_and_the_best_comes_first():
    settings = settings_of(max_length=6, top_k=3, temperature=0.7, length_penalty=0.5)
    found = sample(Constant(), np.array([[0], [1]]), settings, 4, np.random.default_rng(3))
    kept = PROBS[:3] ** (1 / 0.7)
    log_probs = np.log(kept / kept.sum())
    for row in range(2):
        assert sorted(found.scores[row], reverse=True) == found.scores[row].tolist()
        for n in range(4):
            words = found.tokens[row, n, 1 : found.lengths[row, n]]
            expected = log_probs[words].sum() / len(words) ** 0.5
            assert found.scores[row, n] == pytest.approx(expected, abs=1e-5)


def test_outputs_end_at_their_end_and_at_their_limit():
    settings = settings_of(max_length=40, limits=np.array([3, 40]))
    found = sample(Constant(), np.array([[0], [1]]), settings, 30, np.random.default_rng(0))
    assert found.lengths[0].max() == 3
    assert 3 < found.lengths[1].max() <= 40
    for row in range(2):
        for tokens, length in zip(found.tokens[row], found.lengths[row], strict=True):
            assert (tokens[length:] == 9).all()
            assert END not in tokens[1 : length - 1]
            assert length in (3, 40) or tokens[length - 1] == END


def test_the_prompt_is_read_once_and_then_rows_go_on_by_themselves():
    network = Constant()
    settings = settings_of(max_length=4, rules=Rules())
    sample(network, np.array([[0], [1]]), settings, 3, np.random.default_rng(0))
    assert network.parents == [None, [0, 0, 0, 1, 1, 1], None]


def test_a_seed_gives_the_same_samples_again():
    settings = settings_of(max_length=20)
    first, again, other = (
        sample(Constant(), np.array([[0]]), settings, 3, np.random.default_rng(seed)).tokens
        for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert not (first == other).all()
