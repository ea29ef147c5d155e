# SPDX-License-Identifier: Apache-2.0
"""Keys of the mappings of a plan that have more than factors, with their meanings."""

from __future__ import annotations

from pybench.case.repetitions import UNTIL
from pybench.catalogue.protocols import PROTOCOLS

ENVIRONMENTS = "environments"
ENVIRONMENT_KEYS = {
    "python": "the path of an interpreter, such as that of a virtual environment",
    "image": "a container image with its digest: the path of an OCI archive or layout or of a SIF, or HOST/NAME, and "
    "@sha256:DIGEST",
}
IMAGE_DIGEST = "@sha256:[0-9a-f]{64}"  # how the name of an image ends
PLAN_KEYS = {
    "schema_version": "the version of this format, 1",
    "name": "the campaign's folder and title",
    "description": "what the campaign is for",
    "seed": "of the order of runs, synthetic input and resampling",
    "repetitions": "runs of every case, one a block: a number, or when to stop",
    ENVIRONMENTS: "interpreters and container images with packages of their own, by the names that `environment` has",
    "defaults": "factors of every entry that they apply to",
    "matrix": "what is measured: products of factors",
    "criteria": "comparisons with a baseline, and bounds on them",
    "curves": "what is drawn over which numeric factor, in place of the curves that a report draws by itself",
    "require": "what must be valid in every run for exit code 0",
    "protocol": "how the analysis compares; paired-blocks is always there. "
    + ". ".join(f"{protocol.name}: {protocol.meaning}" for protocol in PROTOCOLS.values()),
}
STOPPING_KEYS = {
    "until": f"`{UNTIL}`: no further block is run once every comparison of `criteria` is decided",
    "at_most": "the largest number of blocks",
    "within_s": "how long all runs together may take, in s; the block that is going on then is the last",
}
ENTRY_KEYS = {
    "repetitions": "runs of each case of this entry, in place of the plan's number",
    "slo_ms": "bounds of latency in ms: the share of iterations within each, and the samples a second in these",
    "data": "as a mapping it is another way to write images, corpus and tokenizer",
    "zip": "lists that advance together",
    "include": "single cells next to the product; factors that have one value in the entry apply here too",
    "exclude": "cells to leave out",
}
CRITERIA_KEYS = {
    "name": "how the report calls this comparison",
    "baseline": "the cases that others are compared with, as in {precision: fp32}",
    "where": "compare only these cases",
    "accept": "bounds; without them the comparison is only reported",
    "reference": "published values of the same comparison; they are shown next to the plan's own, and judge nothing",
}
REFERENCE_KEYS = {
    "value": "the published number, in the unit of the metric",
    "source": 'where it was published, such as "Precision trade-offs, table 2"',
    "device": "what it was measured on",
    "slo_ms": "the bound of latency that it was published for; only of numbers at a bound",
    "where": "the cases that it was published for",
    "over_cells": "true: it is the mean over all of these cases, and not a value of each",
}
CURVE_KEYS = {
    "over": "the numeric factor of the horizontal axis",
    "metric": "a metric, or a criterion without `_min` or `_max` for the ratio to a baseline",
}
MEANINGS = ENVIRONMENT_KEYS | STOPPING_KEYS | ENTRY_KEYS | CRITERIA_KEYS | REFERENCE_KEYS | CURVE_KEYS | PLAN_KEYS
