# SPDX-License-Identifier: Apache-2.0
# Two commands do everything on a fresh machine: `make campaign` and `make test`. `make help` lists the rest.

SHELL := /bin/sh
.DEFAULT_GOAL := setup
.PHONY: help setup campaign test quick plans lint native-test python-test rust-test go-test documents bench container container-verify wheels clean

# --- versions come from pyproject.toml, [tool.pybench.toolchain] ---
version = $(shell sed -n '/^\[tool.pybench.toolchain\]/,/^\[/s/^$(1) *= *"\([^"]*\)".*/\1/p' pyproject.toml)
UV_VERSION := $(call version,uv)
RUST_MINIMUM := $(call version,rust)

BOOTSTRAP := .bootstrap/uv-$(UV_VERSION)
UV := $(BOOTSTRAP)/bin/uv
BIN := $(CURDIR)/.venv/bin

PLAN := plans/quickstart.yaml
CAMPAIGN = results/$(basename $(notdir $(PLAN)))

# Nothing fetches a toolchain of its own, and uv builds wheels rather than links into this folder.
export UV_NO_EDITABLE := 1
# Every run is a process of its own, and importing torch takes twice as long where its modules have to be compiled first.
export UV_COMPILE_BYTECODE := 1
export UV_PYTHON_DOWNLOADS := never
export MATURIN_NO_INSTALL_RUST := 1
export GOTOOLCHAIN := local
export CGO_ENABLED := 0
# uv comes last: what needs it by name (modelopt's environment, the contract tests of TensorRT) finds it there.
# Ubuntu keeps its newer Rust beside the old one.
export PATH := $(BIN):$(PATH):$(CURDIR)/$(BOOTSTRAP)/bin:/usr/lib/rust-$(RUST_MINIMUM)/bin

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 16

setup: $(UV) ## install and build everything (a second time takes seconds)
	@[ -d .venv ] || echo "setting up: about 5 GB of packages and three builds, some minutes the first time" >&2
	@.ci/system-packages $(RUST_MINIMUM)
	@rm -rf tokenizer-rs/python/pybench_tokenizer/pybench_tokenizer # an editable install leaves it, and maturin then refuses
	@$(UV) sync --locked --inexact --quiet # what a user has added, such as TensorRT, stays

$(UV):
	@.ci/system-packages $(RUST_MINIMUM)
	@python3 -m venv $(BOOTSTRAP)
	@$(BOOTSTRAP)/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

campaign: setup ## run plans/quickstart.yaml and write its report; PLAN=... for another plan
	@$(BIN)/pybench run $(PLAN) --out $(CAMPAIGN); status=$$?; \
	  [ $$status -ge 2 ] || $(BIN)/pybench report $(CAMPAIGN) || exit; exit $$status

# The recipe first installs the real programs that tests drive, where it can.
test: setup ## lint and every test; CI (.ci/run) runs them in a fresh Debian, and `plans` after them
	@.ci/system-packages $(RUST_MINIMUM) tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint native-test rust-test go-test
	@$(MAKE) --no-print-directory python-test

lint: setup ## formatting, lint, types, import layers
	@.ci/lint

native-test: setup ## the C++ tests under the address, undefined-behaviour and thread sanitizers
	@.ci/native-test

rust-test: setup ## the tokenizer's own tests: plain, and under the address sanitizer
	@.ci/rust-test

go-test: setup ## the orchestrator's own tests, against the installed tokenizer and ONNX Runtime
	@cd orchestrator-go && PYBENCH_TOKENIZER_OBJECT=$$($(BIN)/python -P -c 'import pybench_tokenizer; print(pybench_tokenizer.object_path())') \
	  PYBENCH_TOKENIZER_JSON=$(CURDIR)/pybench/preprocess/tok32k_gpt2.json \
	  PYBENCH_ONNXRUNTIME_LIBRARY=$$($(BIN)/python -P -c 'from pybench.runtimes.native import find_library; print(find_library())') \
	  $(BIN)/go test ./...

# Without --max-worker-restart 0, pytest-xdist 3.8 waits for ever after a process of tests has died (its issue 1378).
python-test: setup ## the tests of everything else; ARGS="-k name" for some
	@$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadscope --no-loadscope-reorder --max-worker-restart 0 $(ARGS)

quick: lint ## lint, and the tests that start no process and no container, in three minutes
	@$(BIN)/pytest -m quick --numprocesses auto --maxprocesses 2 --max-worker-restart 0 $(ARGS)

plans: setup ## every ready plan at its smallest (tests/plans/small.yaml): run, check, report
	@$(BIN)/pytest -m plans --numprocesses auto --maxprocesses 2 --max-worker-restart 0 --durations 0 tests/plans $(ARGS)

documents: setup ## write what in docs/ and schemas/ is made of rows, and docs/results and campaigns/reports.sha256 of campaigns/
	@$(BIN)/python -m documents.pages

bench: setup ## measurements of pybench itself, not tests
	@$(BIN)/python -P bench/harness/seconds_per_run.py

container: ## the pinned image (OCI archive and SIF), checked by running the quickstart in it; TIER=slim for a small one without torch
	@python3 containers/build.py $(if $(TIER),--tier $(TIER))
	@containers/run $(if $(TIER),--tier $(TIER))

container-verify: ## the image built again in a hostile environment, compared bit for bit; TIER=slim for the small one
	@python3 containers/verify.py $(if $(TIER),--tier $(TIER))

wheels: setup ## what users install, into dist/: manylinux wheels; PYTHONS="3.12" for some, ARCH=aarch64 for ARM (experimental)
	@ARCH=$(ARCH) .ci/wheels dist $(PYTHONS)
	@ls dist/*.whl

clean: ## remove what was built; results/ stays
	rm -rf .venv .bootstrap build dist tokenizer-rs/target .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
