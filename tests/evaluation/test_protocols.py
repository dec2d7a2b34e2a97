import pytest

from talkconv.evaluation.metric import score
from talkconv.evaluation.protocols import PROTOCOLS, metrics_of


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_reference_has_the_full_score_in_every_protocol(protocol):
    lines = ["The quick brown fox jumps .", "Well-known dogs sleep here ."]
    for metric in metrics_of([protocol], lines):
        assert score(metric, lines, lines).value == pytest.approx(100)
