import torch
from typer.testing import CliRunner

from talkconv import doctor
from talkconv.cli import app
from talkconv.installing import install_command
from talkconv.ops import cpu


def test_doctor_says_what_runs():
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    assert torch.__version__ in result.output
    assert "right result" in result.output


def test_doctor_names_the_kernel(monkeypatch):
    kernel = cpu.find_kernel()
    if kernel is not None:
        assert kernel.isa in doctor.findings()["CPU kernel"]
    monkeypatch.setattr(cpu, "find_kernel", lambda: None)
    assert "plain PyTorch operations" in doctor.findings()["CPU kernel"]


def test_doctor_tells_how_to_install_what_is_missing(monkeypatch):
    named = [
        'rich>=13; extra == "text"',
        "not_a_package>=1; extra == 'text'",
        "for_old_ones>=1; python_version < '3' and extra == 'text'",
        "torch>=2",
    ]
    monkeypatch.setattr("importlib.metadata.requires", lambda _: named)
    result = CliRunner().invoke(app, ["doctor"])
    assert f"missing: not_a_package – {install_command('text')}" in result.output
    assert "for_old_ones" not in result.output


def test_doctor_fails_where_the_operation_is_wrong(monkeypatch):
    monkeypatch.setattr(doctor, "works", lambda: False)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "wrong result" in result.output
