#!/usr/bin/env bash
# Tests and times the GPU kernels on the GPU of this machine, in about ten minutes:
#
#     bash benchmarks/on_a_gpu.sh            # uses .venv, and makes it first if it is not there
#     bash benchmarks/on_a_gpu.sh python3    # uses a Python in which talkconv[dev,gpu] is installed
#
# At the end it names one file to send back. It exits with an error if a test failed, and writes
# the file all the same.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "on_a_gpu.sh: $*" >&2
  exit 1
}

if command -v nvidia-smi > /dev/null; then
  nvidia-smi -L | grep -q . || fail "nvidia-smi lists no GPU; run this on a machine with one."
elif ! command -v rocm-smi > /dev/null; then
  fail "no GPU was found: there is neither nvidia-smi nor rocm-smi. Run this on a machine with an" \
    "NVIDIA GPU (A100 or later) or an AMD GPU, with its driver installed."
fi

python=${1:-.venv/bin/python}
if [ $# -eq 0 ] && ! [ -x "$python" ]; then
  echo "making .venv; this takes some minutes"
  make setup
fi
"$python" -c 'import pytest, talkconv, torch, triton' ||
  fail "$python must have talkconv, torch, triton and pytest: pip install -e '.[dev,gpu]'"
"$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
  fail "torch in $python finds no GPU: install a build of torch for this GPU's driver," \
    "see https://pytorch.org/get-started/locally."

out=build/on_a_gpu
rm -rf "$out" && mkdir -p "$out"
status=0
{ nvidia-smi || rocm-smi; git log -1 --oneline; git status --short; } > "$out/machine.txt" 2>&1 || true
"$python" -m pip freeze > "$out/packages.txt" 2>&1 || true

echo "1 of 2: the tests of the GPU kernels, on the GPU"
TALKCONV_TEST_DEVICE=cuda "$python" -m pytest -q -p no:cacheprovider -m "" \
  tests/ops/test_gpu_accuracy.py | tee "$out/accuracy.txt" || status=1
TALKCONV_TEST_DEVICE=cuda "$python" -m pytest -q -p no:cacheprovider \
  tests/ops/test_gpu.py tests/ops/test_gpu_special.py | tee "$out/tests.txt" || status=1

echo "2 of 2: times against fused attention"
"$python" -m talkconv bench gpu --out "$out/times.json" | tee "$out/times.txt" || status=1

tar -czf on_a_gpu.tar.gz -C build on_a_gpu
[ $status -eq 0 ] || echo "on_a_gpu.sh: something above failed; the file says what" >&2
echo "send back: $PWD/on_a_gpu.tar.gz"
exit $status
