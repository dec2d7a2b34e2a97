import json

from talkconv.report.speed import write_speed


def test_speed_is_measured_apart_and_leaves_the_run_alone(workplace):
    run = workplace / "runs" / "tiny-talk"
    before = sorted(path for path in run.rglob("*"))
    speed = write_speed(run, steps=2, sentences=3)
    written = json.loads((run / "speed.json").read_text())
    (run / "speed.json").unlink()
    assert written == speed
    assert speed["training_tokens_per_second"] > 0
    assert speed["generation_sentences_per_second"] > 0
    assert speed["machine"]["date"]
    assert sorted(path for path in run.rglob("*")) == before
