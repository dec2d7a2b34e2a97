import os
from pathlib import Path

# Triton reads this when it is imported, whoever imports it first: the GPU kernels run in its
# interpreter here. What needs its compiler runs in a process of its own.
os.environ["TRITON_INTERPRET"] = "1"

import pytest

from talkconv.ops import cpu

# `make sanitize` runs the tests on another build of the kernel
_OTHER_LIBRARY = os.environ.get("TALKCONV_TEST_LIBRARY")
if _OTHER_LIBRARY:
    _other = cpu.Kernel(Path(_OTHER_LIBRARY))
    cpu.find_kernel = lambda: _other

_KERNEL = cpu.find_kernel()
_ISAS = _KERNEL.available_isas() if _KERNEL else []


@pytest.fixture(params=[*_ISAS, "eager"])
def implementation(request, monkeypatch):
    """Each way the operation can run here: every instruction set, and no kernel at all."""
    if request.param == "eager":
        monkeypatch.setattr(cpu, "find_kernel", lambda: None)
        monkeypatch.setattr(cpu, "_warn_no_kernel", lambda: None)
        yield request.param
        return
    best = _KERNEL.isa
    _KERNEL.isa = request.param
    yield request.param
    _KERNEL.isa = best
