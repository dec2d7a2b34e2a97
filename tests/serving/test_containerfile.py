"""The Containerfile names what exists, and its steps, run without a container, give a server."""

import fnmatch
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from talkconv.cli import app
from tests.serving.server.cases import Client, port_of, wait_for

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent.parent


def instructions():
    """Return the instructions of the Containerfile as (name, the rest)."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def all_of(name):
    return [rest for found, rest in instructions() if found == name]


def extras():
    """Return the extras that pip installs."""
    (command,) = all_of("RUN")
    return re.search(r'"\.\[([\w,]+)\]"', command)[1].split(",")


def copied():
    """Return the files and folders that are copied from the folder of the project."""
    words = [rest.split() for rest in all_of("COPY") if not rest.startswith("--from")]
    files = [[word for word in each if not word.startswith("--")] for each in words]
    return [source for *sources, _ in files for source in sources]


def health_check():
    (rest,) = all_of("HEALTHCHECK")
    return json.loads(rest[rest.index("CMD ") + 4 :])


def test_the_extras_exist_and_bring_no_torch():
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert extras() == ["runtime", "serve"]
    for extra in extras():
        for requirement in known["optional-dependencies"][extra]:
            name = re.match(r"[\w-]+", requirement)[0]
            # an extra of our own would bring what it names
            assert name not in {"torch", "transformers", "talkconv"}, requirement


def test_what_is_copied_exists_and_is_not_ignored():
    ignored = (ROOT / ".containerignore").read_text(encoding="utf-8").split("\n")
    patterns = [line for line in ignored if line and not line.startswith("#")]
    sources = copied()
    assert "${EXPORT}" in sources
    assert all_of("ARG") == ["EXPORT=exported"]
    for source in sources:
        if source != "${EXPORT}":
            assert (ROOT / source).exists(), source
        name = "exported" if source == "${EXPORT}" else source
        assert not any(fnmatch.fnmatch(name, pattern) for pattern in patterns), name


def test_what_the_build_reads_is_copied():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    build, project = settings["tool"]["scikit-build"], settings["project"]
    needed = {"pyproject.toml", "CMakeLists.txt", project["readme"], *project["license-files"]}
    needed |= {Path(folder).parts[0] for folder in build["wheel"]["packages"].values()}
    assert needed <= set(copied())


def test_the_server_is_started_without_a_shell_by_a_user_who_is_not_root():
    (entry,) = all_of("ENTRYPOINT")
    program, name, folder, *options = json.loads(entry)
    assert (program, name, folder) == ("talkconv", "serve", "/model")
    command = next(each for each in app.registered_commands if each.callback.__name__ == name)
    assert "host" in command.callback.__annotations__
    assert options == ["--host", "0.0.0.0"]
    (user,) = all_of("USER")
    assert int(user.split(":")[0]) > 0
    names = [each for each, _ in instructions()]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert all_of("STOPSIGNAL") == ["SIGTERM"]


def test_the_health_check_asks_the_port_that_is_exposed():
    (port,) = all_of("EXPOSE")
    program, flag, code = health_check()
    assert (program, flag) == ("python", "-c")
    compile(code, "health check", "exec")
    assert f"127.0.0.1:{port}/health" in code


@pytest.mark.slow
def test_its_steps_give_a_server(translation, tmp_path):
    """Run each step as the Containerfile has it, on nothing but the files that it copies."""
    source, opt = tmp_path / "source", tmp_path / "opt"
    source.mkdir()
    for name in copied():
        if name == "${EXPORT}":
            continue
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    (command,) = all_of("RUN")
    here = command.replace("/opt/", f"{opt}/").replace(
        "python -m venv", f"{sys.executable} -m venv"
    )
    opt.mkdir()
    subprocess.run(["sh", "-c", here], cwd=source, check=True, timeout=900)
    folder = opt / "talkconv" / "bin"
    found = subprocess.run(
        [folder / "python", "-m", "pip", "list"], capture_output=True, text=True, check=True
    )
    assert "torch" not in found.stdout
    (entry,) = all_of("ENTRYPOINT")
    words = [word.replace("/model", str(translation.folder)) for word in json.loads(entry)]
    server = subprocess.Popen(
        [folder / words[0], *words[1:], "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    with server:
        port = port_of(server.stderr)
        client = Client(port)
        wait_for(client.is_listening)
        assert client.translate("Der Hund läuft.")[0] == 200
        *program, code = health_check()
        check = [folder / program[0], *program[1:], code.replace(":8000/", f":{port}/")]
        assert subprocess.run(check).returncode == 0
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    assert subprocess.run(check, capture_output=True).returncode != 0
