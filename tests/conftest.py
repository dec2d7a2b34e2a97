import importlib.util
import os
from pathlib import Path

import pytest
import torch

from talkconv.ops import implementations, library
from talkconv.training import freed_memory

# The workers of pytest-xdist share the cores: with more than one thread each they would wait for
# each other. Tests of threads ask for their own number.
torch.set_num_threads(1)

# `make sanitize` runs the tests on another build of the kernel
_OTHER_LIBRARY = os.environ.get("TALKCONV_TEST_LIBRARY")
if _OTHER_LIBRARY:
    _other = library.Kernel(Path(_OTHER_LIBRARY))
    library.find_kernel = lambda: _other

_KERNEL = library.find_kernel()
_ISAS = _KERNEL.available_isas() if _KERNEL else []


@pytest.fixture(autouse=True, scope="session")
def _commands_leave_the_allocator_alone():
    """Keep the C library as it is when a test runs `talkconv train` in the process of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(freed_memory, "keep", lambda: False)
        yield


@pytest.fixture(params=[*_ISAS, "eager"])
def implementation(request, monkeypatch):
    """Run a test with every instruction set of this machine, and without a kernel."""
    if request.param == "eager":
        monkeypatch.setattr(library, "find_kernel", lambda: None)
        monkeypatch.setattr(implementations, "_warn_no_kernel", lambda: None)
        yield request.param
        return
    best = _KERNEL.isa
    _KERNEL.isa = request.param
    yield request.param
    _KERNEL.isa = best


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder with real text and with outputs of other programs."""
    folder = os.environ.get("TALKCONV_SHARED")
    if not folder:
        pytest.skip("TALKCONV_SHARED is not set: it names the folder with texts and fixtures")
    return Path(folder)


@pytest.fixture(scope="session")
def fixtures(shared) -> Path:
    """Return the folder with outputs of other programs."""
    return shared / "fixtures"


@pytest.fixture(scope="session")
def authors(fixtures) -> Path:
    """Return the folder with checkpoints of the authors' networks and their outputs."""
    return fixtures / "authors"


# Looking for examples in docstrings imports every file, and these need Triton.
if importlib.util.find_spec("triton") is None:
    collect_ignore = [
        f"ops/{name}.py" for name in ("compiled_kernels", "interpreter", "ptx_launches")
    ]
