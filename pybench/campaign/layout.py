# SPDX-License-Identifier: Apache-2.0
"""What the files of a campaign are called, and the closed words in them.

docs/formats/rundir.md describes the format.
"""

from __future__ import annotations

from pathlib import Path

SCHEMA_VERSION = 1

RESULTS = Path("results")  # where campaigns lie, by their names, unless one says otherwise

PLAN = "plan.yaml"
PLAN_RESOLVED = "plan.resolved.json"
STOPPED = "stopped.json"
ENVIRONMENTS = "environments"
ARTEFACTS = "artefacts"
RUNS = "runs"
REPORT = "report"
SENSORS = "sensors"
CLUSTER = "cluster"
PUBLICATION = "publication.json"  # of a campaign that was published

CASE = "case.json"
RECIPE = "recipe.json"
ENVIRONMENT = "environment.json"
RUN = "run.json"
SUMMARY = "summary.json"
SUBMISSION = "submission.json"
ITERATIONS = "iterations.csv"
ITERATIONS_ALONE = "iterations_depth1.csv"
CORE_PROBES = "core_probes.csv"
PREDICTIONS = "predictions.csv"
SENSITIVITY = "sensitivity.csv"
TENSOR_ERRORS = "tensor_errors.csv"
LEARNING_CURVE = "learning_curve.csv"
POWER_SAMPLES = "power_samples.csv"
POWER_POLLED = "power_polled.csv"
POWER_DRAINS = "power_drains.csv"
ENERGY_COUNTER = "energy_counter.csv"
CLOCKS = "clocks.csv"
GPU_PROCESSES = "gpu_processes.csv"
POWER_RAILS = "power_rails.csv"
ENERGY = "energy.json"
PROFILE = "profile.json"
STDOUT = "stdout.log"
STDERR = "stderr.log"
COMPLETE = "complete"
OF_EVERY_MAKING = frozenset({RECIPE, ENVIRONMENT, RUN, SUMMARY, STDOUT, STDERR, COMPLETE})  # beside what was made
CLAIM_SUFFIX = ".claim"
UNFINISHED_SUFFIX = ".unfinished"
MAKING = 0  # the block of an artefact's making, which has none

OUTCOMES = ("ok", "oom", "timeout", "unsupported", "build_failed", "crashed", "killed", "interrupted")
COVERING = frozenset({"ok", "oom", "unsupported"})
GUARDED = "guarded"  # in run.json: `complete` has the digests of the run's files
