import pytest

from talkconv.report.window_statistics import _Sums, measure_windows
from tests.report.cases import SENTENCES


def layer(left, right, l_max=4, r_max=4):
    return {"l_max": l_max, "r_max": r_max, "left": left, "right": right}


def test_means_and_whole_sentences_worked_out_by_hand():
    sums = _Sums(4, 4)
    # three tokens, two heads: the first head sees all from the middle token alone
    sums.add(layer([[0, 1, 2], [0, 0, 0]], [[1, 1, 0], [2, 1, 0]]))
    # if a sentence has one token, every window covers it
    sums.add(layer([[3], [4]], [[0], [0]]))
    found = sums.mean()
    assert found["left"] == [6 / 4, 4 / 4]
    assert found["right"] == [2 / 4, 3 / 4]
    # head 1: tokens 1 and 2 of the first sentence, and the second one; head 2: token 0, and it
    assert found["whole"] == [3 / 4, 2 / 4]


def test_a_decoder_covers_the_whole_sentence_with_all_tokens_so_far():
    sums = _Sums(4, 0)
    sums.add(layer([[0, 1, 1]], [[0, 0, 0]], r_max=0))
    assert sums.mean()["whole"] == [pytest.approx(2 / 3, abs=1e-4)]


def test_a_run_is_measured_on_its_test_set(workplace):
    found = measure_windows(workplace / "runs" / "tiny-talk", SENTENCES)
    assert found["sequences"] == 6
    assert [(each["l_max"], each["r_max"]) for each in found["encoder"]] == [(1, 1), (3, 3)]
    assert [(each["l_max"], each["r_max"]) for each in found["decoder"]] == [(2, 0)]
    for each in (*found["encoder"], *found["decoder"]):
        assert len(each["left"]) == len(each["right"]) == len(each["whole"]) == 2
        assert all(0 < reach < each["l_max"] for reach in each["left"])
        assert all(0 <= share <= 1 for share in each["whole"])
    assert [look["text"] for look in found["looks"]] == SENTENCES
    assert len(found["looks"][0]["encoder"]["tokens"]) == 4
    assert measure_windows(workplace / "runs" / "tiny-talk", most=2)["sequences"] == 2
