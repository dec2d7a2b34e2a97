import pytest

from talkconv.data.protected import SYMBOL, Protected

TAGS = ["%[a-z]", "</?[a-z]+>"]


def test_strings_come_back_in_order():
    protected = Protected(TAGS)
    text = f"<b>%s</b> of {SYMBOL} and %d"
    hidden, strings = protected.hide(text)
    assert strings == ["<b>", "%s", "</b>", SYMBOL, "%d"]
    assert "%" not in hidden
    assert protected.show(hidden, strings) == text


def test_nothing_to_protect():
    assert Protected([]).hide("100 %") == ("100 %", [])


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("(", "must be regular expressions, got '\\('"), ("x*", "at least one character, got 'x\\*'")],
)
def test_mistakes_are_told(pattern, message):
    with pytest.raises(ValueError, match=message):
        Protected([pattern])
