from talkconv.data.lines import Reading
from talkconv.data.markup import read_segments
from tests.data.cases import write


def test_segments_may_be_broken_over_lines(tmp_path):
    path = write(tmp_path / "a.sgm", ['<seg id="1">one', "and &lt;two&gt;</seg><seg>three</seg>"])
    assert list(read_segments(path, Reading())) == ["one and <two>", "three"]
