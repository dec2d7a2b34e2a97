import argparse
import pickle
import sys
import types
import zipfile

import pytest
import torch

from talkconv.models.fairseq import CheckpointError, config_of, read_checkpoint

ARGS = argparse.Namespace(arch="talkconv", dropout=0.3)


def save(path, content, **how):
    torch.save(content, path, **how)
    return path


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_reads_both_formats_of_torch(tmp_path, zipped):
    content = {"args": ARGS, "model": {"w": torch.arange(3.0).half()}}
    path = save(tmp_path / "c.pt", content, _use_new_zipfile_serialization=zipped)
    checkpoint = read_checkpoint(path)
    assert checkpoint.args == vars(ARGS)
    assert checkpoint.weights["w"].tolist() == [0, 1, 2]
    assert checkpoint.weights["w"].dtype == torch.float32


def test_progress_meters_in_a_checkpoint_are_ignored(tmp_path, monkeypatch):
    meters = types.ModuleType("fairseq.meters")
    meters.AverageMeter = type("AverageMeter", (), {"__module__": "fairseq.meters"})
    monkeypatch.setitem(sys.modules, "fairseq", types.ModuleType("fairseq"))
    monkeypatch.setitem(sys.modules, "fairseq.meters", meters)
    meter = meters.AverageMeter()
    meter.sum = 3.0
    content = {"args": ARGS, "model": {"w": torch.ones(2)}, "extra_state": {"train_meters": meter}}
    path = save(tmp_path / "c.pt", content)
    monkeypatch.undo()
    assert list(read_checkpoint(path).weights) == ["w"]


class Malicious:
    """An object that creates a file when an ordinary unpickler reads it."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (exec, (f"open({str(self.target)!r}, 'w').close()",))


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("place", ["args", "model", "extra_state"])
def test_a_malicious_file_runs_nothing(tmp_path, place, zipped):
    target = tmp_path / "ran"
    content = {"args": ARGS, "model": {"w": torch.ones(2)}, place: Malicious(target)}
    path = save(tmp_path / "c.pt", content, _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError, match=r"would run .*exec.*It was not run.*plain\.pt"):
        read_checkpoint(path)
    assert not target.exists()
    # an ordinary unpickler does create the file, so this test can fail
    torch.load(path, weights_only=False)
    assert target.exists()


def test_a_bare_pickle_runs_nothing(tmp_path):
    path, target = tmp_path / "c.pt", tmp_path / "ran"
    path.write_bytes(pickle.dumps(Malicious(target)))
    with pytest.raises(CheckpointError):
        read_checkpoint(path)
    assert not target.exists()


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9])
def test_a_file_cut_short_is_refused(tmp_path, kept, zipped):
    content = {"args": ARGS, "model": {"w": torch.ones(1000)}}
    path = save(tmp_path / "c.pt", content, _use_new_zipfile_serialization=zipped)
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(CheckpointError, match=r"cut short.*Download it again"):
        read_checkpoint(path)


def test_foreign_files_are_refused(tmp_path):
    text = tmp_path / "text.pt"
    text.write_text("no checkpoint at all\n" * 50)
    archive = tmp_path / "archive.pt"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("a.txt", "not a checkpoint")
    for path in (text, archive):
        with pytest.raises(CheckpointError, match="is not a checkpoint"):
            read_checkpoint(path)
    with pytest.raises(CheckpointError, match="is not a file"):
        read_checkpoint(tmp_path / "missing.pt")


def test_other_checkpoints_are_refused(tmp_path):
    bare = save(tmp_path / "a.pt", {"weight": torch.ones(2)})
    with pytest.raises(CheckpointError, match=r'"args" and "model", got \[\'weight\'\]'):
        read_checkpoint(bare)
    listed = save(tmp_path / "b.pt", [torch.ones(2)])
    with pytest.raises(CheckpointError, match="got list"):
        read_checkpoint(listed)
    strange = save(tmp_path / "c.pt", {"args": ARGS, "model": {"w": "words"}})
    with pytest.raises(CheckpointError, match="tensors only, not 'w'"):
        read_checkpoint(strange)
    other = save(tmp_path / "d.pt", {"args": ARGS, "model": {"fc.weight": torch.ones(2)}})
    with pytest.raises(CheckpointError, match=r"args have no .* \(arch 'talkconv'\)"):
        config_of(read_checkpoint(other))
