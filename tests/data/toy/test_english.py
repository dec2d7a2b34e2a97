import pytest

from talkconv.data.toy import english
from tests.data.toy.cases import TABLE


@pytest.mark.parametrize(
    ("said", "expected"), [row[::2] for row in TABLE], ids=[row[2] for row in TABLE]
)
def test_what_a_person_would_say(said, expected):
    assert english.sentence(said) == expected
