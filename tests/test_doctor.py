import sys

import pytest
import torch
from typer.testing import CliRunner

import talkconv
from talkconv import doctor
from talkconv.cli import app
from talkconv.installing import install_command
from talkconv.ops import library

needs_kernel = pytest.mark.skipif(library.find_kernel() is None, reason="it checks the kernel")


def test_doctor_says_what_runs():
    result = CliRunner().invoke(app, ["doctor", "--full"])
    assert result.exit_code == 0, result.output
    assert torch.__version__ in result.output
    assert "talk_conv on cpu gives the right result" in result.output
    assert "none that torch can use" in result.output or torch.cuda.is_available()


@needs_kernel
def test_doctor_checks_the_kernel_without_torch():
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    assert torch.__version__ in result.output
    assert "the CPU kernel gives the right result" in result.output
    assert "doctor --full" in result.output


def test_doctor_names_the_kernel(monkeypatch):
    kernel = library.find_kernel()
    if kernel is not None:
        assert kernel.isa in doctor.findings()["CPU kernel"]
    monkeypatch.setattr(library, "find_kernel", lambda: None)
    assert "plain PyTorch operations" in doctor.findings()["CPU kernel"]
    assert doctor.results_of_kernel() == {}


@pytest.mark.parametrize(("has", "said"), [(True, "trains faster"), (False, "is slow")])
def test_doctor_says_whether_bf16_pays(monkeypatch, has, said):
    monkeypatch.setattr(doctor, "has_bfloat16", lambda: has)
    assert said in doctor.findings()["bfloat16"]


def test_doctor_survives_a_kernel_that_needs_what_torch_brings(monkeypatch):
    def find_kernel():
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(library, "find_kernel", find_kernel)
    result = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    assert "not loaded without torch: libgomp.so.1: cannot open" in result.output


@pytest.mark.parametrize(
    ("build", "said"),
    [("", "without CUDA"), ("cuda = '12.8'", "CUDA 12.8"), ("hip = '6.4'", "HIP 6.4")],
)
def test_doctor_says_what_torch_was_built_for(tmp_path, monkeypatch, build, said):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('it was imported')")
    (tmp_path / "torch" / "version.py").write_text(f"__version__ = '2.99'\n{build}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch")
    assert doctor.findings()["torch"].startswith("2.99, built")
    assert said in doctor.findings()["torch"]


def test_doctor_works_in_an_installation_without_torch(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert install_command("torch") in doctor.findings()["torch"]
    result = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"})
    assert install_command("torch") in result.output.replace("\n", "")


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


@needs_kernel
def test_doctor_fails_where_the_kernel_is_wrong(monkeypatch):
    monkeypatch.setattr(library.Kernel, "forward", lambda *_: None)  # the output stays 0
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "the CPU kernel gives a wrong result" in result.output


def test_doctor_fails_where_the_operation_is_wrong(monkeypatch):
    monkeypatch.setattr(talkconv, "talk_conv", lambda x, *_, **__: x)
    result = CliRunner().invoke(app, ["doctor", "--full"])
    assert result.exit_code == 1
    assert "talk_conv on cpu gives a wrong result" in result.output
