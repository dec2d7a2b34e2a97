# Everything works from a bare clone: each target builds .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SHELL := /bin/bash

.PHONY: setup demo test test-slow test-eager sanitize lint settings bench bench-check results clean

setup: $(READY)

# torch first and alone: its exact version decides which build of it is taken
$(READY): pyproject.toml constraints.txt CMakeLists.txt $(wildcard src/talkconv/ops/csrc/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing PyTorch, then the other packages and our compiled kernel. This takes some minutes."
	$(BIN)/python -m pip install --disable-pip-version-check $$(grep '^torch==' constraints.txt)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[dev,gpu]'
	touch $(READY)

demo: setup
	$(BIN)/talkconv demo

test: setup lint
	$(BIN)/python -m pytest -n auto --dist worksteal

# the long grids
test-slow: setup
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow

# the same tests as on a machine without a compiler
test-eager:
	test -x build/eager/bin/python || $(PYTHON) -m venv build/eager
	build/eager/bin/python -m pip install --quiet --disable-pip-version-check $$(grep '^torch==' constraints.txt)
	build/eager/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  -C cmake.define.TALKCONV_KERNEL=OFF -C build-dir=build/eager-kernel '.[dev]'
	build/eager/bin/python -m pytest -n auto --dist worksteal tests

# the kernel's tests under AddressSanitizer and UndefinedBehaviorSanitizer
sanitize: setup
	bash tests/sanitize.sh $(BIN)/python

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# the tables of docs/settings.md and the comments of recipes/toy.toml, from the code
settings: setup
	$(BIN)/python -m talkconv.training.recipe_manual

# every measured table, with pictures: results/MACHINE
bench: setup
	$(BIN)/talkconv bench all

# two minutes against the last committed result; fails if speed was lost
bench-check: setup
	$(BIN)/talkconv bench check

# trains and scores every run behind results/README.md; it resumes, and can be stopped at any time
results: setup
	@test -n "$(RAW)" || { echo "say where the raw text is: make results RAW=folder"; exit 1; }
	$(BIN)/talkconv reproduce "$(RAW)"

clean:
	rm -rf $(VENV) build demo
