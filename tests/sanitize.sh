#!/usr/bin/env bash
# Builds the kernel with AddressSanitizer and UndefinedBehaviorSanitizer and runs its tests on it.
set -euo pipefail
python=$1
build=build/sanitize
cmake -S . -B "$build" -DTALKCONV_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo > /dev/null
cmake --build "$build"
# torch reports leaks of its own at exit; the sanitizer's library must come before all others
export TALKCONV_TEST_LIBRARY="$PWD/$build/libtalkconv_kernel.so"
export ASAN_OPTIONS=detect_leaks=0
export UBSAN_OPTIONS=print_stacktrace=1
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)" \
  "$python" -m pytest -q -p no:cacheprovider tests/ops/test_talk_conv.py tests/ops/test_step.py \
  tests/ops/test_checks.py -k "not eager and not compiled"
