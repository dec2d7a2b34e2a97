import numpy as np

from talkconv.search.hypotheses import Hypotheses, Rules


def test_the_best_of_hypotheses_come_first():
    found = Hypotheses(
        np.arange(6).reshape(1, 3, 2), np.float32([[-3, -1, -2]]), np.array([[2, 1, 2]])
    ).best(2)
    assert found.tokens.tolist() == [[[2, 3], [4, 5]]]
    assert found.scores.tolist() == [[-1, -2]]
    assert found.lengths.tolist() == [[1, 2]]


def pairs(forbidden):
    return sorted(zip(forbidden.rows.tolist(), forbidden.words.tolist(), strict=True))


def test_without_rules_nothing_is_forbidden():
    written = np.array([[5, 6, 5, 6]])
    assert Rules().forbidden(written) is None
    assert Rules(eos=(2,), min_length=4, no_repeat_ngram=5).forbidden(written) is None


def test_short_outputs_must_not_end():
    rules = Rules(eos=(2, 3), min_length=5)
    assert pairs(rules.forbidden(np.zeros((2, 4), dtype=int))) == [(0, 2), (0, 3), (1, 2), (1, 3)]
    assert rules.forbidden(np.zeros((2, 5), dtype=int)) is None
    assert Rules(min_length=5).forbidden(np.zeros((2, 4), dtype=int)) is None


def test_what_would_repeat_an_ngram_is_forbidden():
    written = np.array([[5, 6, 7, 5, 6], [5, 6, 7, 6, 5], [1, 2, 3, 4, 9]])
    assert pairs(Rules(no_repeat_ngram=3).forbidden(written)) == [(0, 7)]
    assert pairs(Rules(no_repeat_ngram=2).forbidden(written)) == [(0, 7), (1, 6)]
    every = Rules(no_repeat_ngram=1).forbidden(written[2:])
    assert pairs(every) == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 9)]


def test_rules_add_up():
    found = Rules(eos=(2,), min_length=9, no_repeat_ngram=2).forbidden(np.array([[5, 6, 5]]))
    assert pairs(found) == [(0, 2), (0, 6)]
