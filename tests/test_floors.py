"""Checks by the imports that each floor uses only the floors below it."""

import ast
from pathlib import Path

import pytest

import talkconv

ROOT = Path(talkconv.__file__).parent
# A folder may import the folders named here, torch and the standard library.
MAY_IMPORT = {
    "ops": set(),
    "layers": {"ops"},
    "search": set(),
    # for AutoTokenizer, which must know the tokenizer when it knows the networks
    "models": {"ops", "layers", "search", "data"},
    "data": set(),
    "runs": {"search", "models", "data"},
    "generation": {"search", "models", "data", "runs"},
    "evaluation": {"models", "data", "runs", "generation"},
    "training": {"layers", "models", "data", "runs", "generation", "evaluation"},
    "report": {"layers", "models", "data", "runs", "generation", "evaluation", "training"},
    "serving": {
        *("search", "layers", "models", "data", "runs", "generation", "evaluation", "report")
    },
    "bench": {
        *("ops", "layers", "models", "data", "runs", "generation", "training", "evaluation"),
        "serving",
    },
    "demo": {
        *("layers", "models", "data", "runs", "generation", "training", "evaluation", "report"),
        *("bench", "serving"),
    },
}
TORCH_ALONE = {"ops", "layers"}
STANDARD_OR_TORCH = {"torch", "triton", "talkconv"}


def imports_of(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT)


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(file):
    room = file.relative_to(ROOT).parts[0]
    allowed = MAY_IMPORT[room] | {room}
    for name in imports_of(file):
        parts = name.split(".")
        if parts[0] == "talkconv" and len(parts) > 1 and (ROOT / parts[1]).is_dir():
            assert parts[1] in allowed, f"{file.name} in {room}/ imports {name}"


@pytest.mark.parametrize("room", sorted(TORCH_ALONE))
def test_the_operation_and_the_layers_need_torch_alone(room):
    import sys

    for file in (ROOT / room).rglob("*.py"):
        for name in imports_of(file):
            top = name.split(".")[0]
            known = top in STANDARD_OR_TORCH or top in sys.stdlib_module_names
            assert known, f"{file.name} imports {name}"


def test_only_the_gpu_files_import_triton():
    for file in ROOT.rglob("*.py"):
        if not file.name.startswith("gpu"):
            assert not any(name.split(".")[0] == "triton" for name in imports_of(file)), file
