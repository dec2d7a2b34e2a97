import subprocess

import pytest

from talkconv import machine


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Return a repository in which the package lies in src/, with one commit."""
    for name in ("src/machine.py", "results/rows.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("before")
    who = ["-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init"], ["add", "."], [*who, "commit", "-m", "all"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "src/machine.py"))
    return tmp_path


def test_results_in_the_checkout_do_not_change_the_version(checkout):
    clean = machine.describe_machine()["commit"]
    (checkout / "results/rows.json").write_text("after")
    assert machine.describe_machine()["commit"] == clean
    assert len(clean) >= 7


def test_a_changed_package_is_another_version(checkout):
    clean = machine.describe_machine()["commit"]
    (checkout / "src/machine.py").write_text("after")
    assert machine.describe_machine()["commit"] == f"{clean}-dirty"


def test_a_package_outside_of_a_repository_has_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "machine.py"))
    assert machine.describe_machine()["commit"] is None


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["/opt/venv/bin/talkconv", "bench", "op"], "talkconv bench op"),
        (["/opt/src/talkconv/__main__.py", "bench", "op"], "talkconv bench op"),
        (
            ["benchmarks/training_step.py", "--rounds", "1"],
            "python benchmarks/training_step.py --rounds 1",
        ),
    ],
)
def test_the_command_is_what_a_user_typed(argv, command, monkeypatch):
    monkeypatch.setattr(machine.sys, "argv", argv)
    assert machine.describe_machine()["command"] == command
