import pytest
from transformers import TrainingArguments

from talkconv.training.arguments import arguments
from talkconv.training.training_settings import TrainingSettings


@pytest.mark.parametrize(("found", "used"), [(0, 0), (1, 1), (4, 1)])
def test_one_process_drives_one_gpu(tmp_path, monkeypatch, found, used):
    monkeypatch.setattr(TrainingArguments, "n_gpu", property(lambda self: found))
    assert arguments(TrainingSettings(), tmp_path).n_gpu == used


def test_the_trainer_writes_where_unfinished_things_are_cleared_away(tmp_path):
    folder = arguments(TrainingSettings(), tmp_path).output_dir
    assert folder == str(tmp_path / ".checkpoints.unfinished")
