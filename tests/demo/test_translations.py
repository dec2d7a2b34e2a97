import pytest

from talkconv.demo.translations import Translation, bleu_of, chosen, marked


@pytest.mark.parametrize(
    ("output", "reference", "ours", "theirs"),
    [
        ("a b c", "a b c", "a b c", "a b c"),
        ("a x c", "a b c", "a <mark>x</mark> c", "a <mark>b</mark> c"),
        ("a c", "a b c", "a c", "a <mark>b</mark> c"),
        ("", "a", "", "<mark>a</mark>"),
        ("<b> c", "c", "<mark>&lt;b&gt;</mark> c", "c"),
    ],
)
def test_what_differs_is_marked(output, reference, ours, theirs):
    assert marked(output, reference) == (ours, theirs)


def test_a_few_of_each_kind_are_chosen_in_their_order():
    right = [Translation(f"{n} " + "wort " * 9, "x", "x") for n in range(30)]
    wrong = [Translation(f"w{n} " + "wort " * 9, "x", "y") for n in range(9)]
    found = chosen([right[0], *wrong, *right[1:]], count=6, wrong=2)
    assert found == [right[0], wrong[0], wrong[1], right[1], right[2], right[3]]


def test_short_sentences_are_chosen_if_there_are_no_others():
    assert len(chosen([Translation("kurz", "short", "short")])) == 1


def test_mistakes_are_chosen_if_there_is_nothing_else():
    wrong = [Translation(f"{n}", "x", "y") for n in range(9)]
    assert chosen(wrong, count=6, wrong=2) == wrong[:6]


def test_bleu_of_references_is_100():
    same = "The old man who reads sees the dog."
    assert bleu_of([Translation("", same, same)] * 3) == pytest.approx(100)
