# SPDX-License-Identifier: Apache-2.0
"""Campaign directories for tests of the reading half: the real format through `pybench.campaign`, seeded numbers, known
truth.

It stands in for the runner only where a test needs numbers whose true ratios are known, or failures made to order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from pybench.campaign import digests, extract
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.campaign.layout import (
    CASE,
    COMPLETE,
    ENVIRONMENT,
    GUARDED,
    ITERATIONS,
    PLAN,
    PLAN_RESOLVED,
    PREDICTIONS,
    PROFILE,
    RUN,
    SCHEMA_VERSION,
    STDERR,
    SUMMARY,
)
from pybench.campaign.storage import write_json, write_text
from pybench.case import Case, Repetitions, case_to_json, contrasts, service_levels
from pybench.case.repetitions import StoppingRule
from pybench.catalogue.cautions import Caution
from pybench.catalogue.validities import VALIDITIES
from pybench.kernels.profile import Profile, profile_to_json
from pybench.measure.quantity import Quantity
from pybench.measurement.result import Validity

TIMED = 100  # iterations of every timing window
ITERATIONS_CSV = "\n".join(["gap_ns,host_ns", *(["0,10000000"] * TIMED)]) + "\n"
START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
ENVIRONMENT_CONTENT = {
    "schema_version": SCHEMA_VERSION,
    "host": {"name": "bench-1", "kernel": "6.1.0"},
    "cpu": {"model": "Example CPU 9000", "logical": 8},
    "versions": {"python": "3.11.2", "onnxruntime": "1.23.0", "torch": "2.9.0"},
}


class CampaignBuilder:
    """Writes one campaign. Block order within a block is that of the calls; each run takes ten seconds of pretended
    time."""

    def __init__(
        self,
        folder: Path,
        cases: Sequence[Case],
        *,
        repetitions: int = 5,
        own: Mapping[Case, int] | None = None,
        rule: StoppingRule | None = None,
        declared: Any = None,
        name: str = "example",
        seed: int = 20260101,
        require: Sequence[str] = (),
        protocols: Sequence[str] = (),
        plan_text: str = "schema_version: 1\nname: example\n",
    ) -> None:
        self.campaign = CampaignDirectory(folder)
        self.cases = tuple(cases)
        self.repetitions = repetitions
        by_case = {case.id: number for case, number in (own or {}).items()}
        planned = Repetitions(repetitions, by_case) if rule is None else Repetitions.until(rule)
        self._clock = START
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / PLAN, plan_text)
        write_json(
            folder / PLAN_RESOLVED,
            {
                "schema_version": SCHEMA_VERSION,
                "name": name,
                "seed": seed,
                **planned.as_json(),
                "plan_sha256": hashlib.sha256(plan_text.encode()).hexdigest(),
                "cases": [case_to_json(case) for case in self.cases],
                **service_levels.to_json(self.cases),
                "criteria": contrasts.to_json(contrasts.parse(declared)),
                "require": list(require),
                "protocol": {"analysis": list(protocols)},
                "files": {},
            },
        )

    @property
    def path(self) -> Path:
        return self.campaign.path

    def run(
        self,
        case: Case,
        block: int,
        metrics: Mapping[str, float | Quantity] | None = None,
        *,
        outcome: str = "ok",
        reason: str | None = None,
        detail: str | None = None,
        valid: Mapping[str, Validity] | None = None,
        labels: Mapping[str, Any] | None = None,
        cautions: Iterable[Caution] = (),
        predictions: str | None = None,
        profile: Profile | None = None,
        artefacts: Mapping[str, str] | None = None,
        environment: Mapping[str, Any] = ENVIRONMENT_CONTENT,
        attempt: int = 1,
        complete: bool = True,
    ) -> RunDirectory:
        """One attempt of one run with everything that the worker and the runner would write."""
        # These campaigns outlive no power cut; without fsync a thousand runs are written in seconds.
        with patch("os.fsync"):
            return self._run(
                case, block, metrics, outcome, reason, detail, valid, labels, cautions, predictions, profile,
                artefacts or {}, environment, attempt, complete,
            )  # fmt: skip

    def _run(
        self,
        case: Case,
        block: int,
        metrics: Mapping[str, float | Quantity] | None,
        outcome: str,
        reason: str | None,
        detail: str | None,
        valid: Mapping[str, Validity] | None,
        labels: Mapping[str, Any] | None,
        cautions: Iterable[Caution],
        predictions: str | None,
        profile: Profile | None,
        artefacts: Mapping[str, str],
        environment: Mapping[str, Any],
        attempt: int,
        complete: bool,
    ) -> RunDirectory:
        folder = self.campaign.block(case.id, block) / f"attempt-{attempt:02d}"
        folder.mkdir(parents=True)
        directory = RunDirectory(folder, case.id, block, attempt)
        write_json(
            directory.file(CASE),
            {
                "schema_version": SCHEMA_VERSION,
                "case": case_to_json(case),
                "block": block,
                "attempt": attempt,
                "seed": 1,
                "artefacts": dict(artefacts),
                "files": {},
            },
        )
        write_text(directory.file(STDERR), "")
        if outcome == "ok":
            self._write_summary(case, directory, metrics or {}, labels or {}, environment)
        if predictions is not None:
            write_text(directory.file(PREDICTIONS), predictions)
        if profile is not None:
            write_json(directory.file(PROFILE), {"schema_version": SCHEMA_VERSION, **profile_to_json(profile)})
        if complete:
            extract.finish(directory, self._run_json(directory, outcome, reason, detail, valid or {}, cautions))
        return directory

    def _write_summary(
        self,
        case: Case,
        directory: RunDirectory,
        metrics: Mapping[str, float | Quantity],
        labels: Mapping[str, Any],
        environment: Mapping[str, Any],
    ) -> None:
        rows = case.catalogue.metrics
        measured = {
            name: value if isinstance(value, Quantity) else Quantity(value=value, window="timing")
            for name, value in metrics.items()
        }
        write_json(
            directory.file(SUMMARY),
            {
                "schema_version": SCHEMA_VERSION,
                "metrics": {name: value.as_json(rows[name].unit) for name, value in measured.items()},
                "windows": {"timing": {"begin_ns": 0, "end_ns": 10**9, "iterations": TIMED}},
                "labels": {"device": "cpu", **labels},
            },
        )
        write_text(directory.file(ITERATIONS), ITERATIONS_CSV)
        write_json(directory.file(ENVIRONMENT), environment)

    def _run_json(
        self,
        directory: RunDirectory,
        outcome: str,
        reason: str | None,
        detail: str | None,
        valid: Mapping[str, Validity],
        cautions: Iterable[Caution],
    ) -> dict[str, Any]:
        started, self._clock = self._clock, self._clock + timedelta(seconds=10)
        return {
            "case_id": directory.case_id,
            "block": directory.block,
            "attempt": directory.attempt,
            "outcome": outcome,
            "reason": reason,
            "detail": detail,
            "exit_status": 0 if outcome == "ok" else 1,
            "signal": None,
            "valid": {
                name: valid.get(name, Validity(True if name == "timing" and outcome == "ok" else None)).as_json()
                for name in VALIDITIES
            },
            "cautions": [caution.as_json() for caution in cautions],
            "started_utc": started.isoformat(),
            "finished_utc": self._clock.isoformat(),
            "duration_s": 10.0,
            "parts_s": {"python_start": 0.02, "imports": 1.0, "workload": 8.9, "writing": 0.01, "harness": 0.07},
        }


def finish_again(folder: Path) -> None:
    """Stores the digests of a finished run's files as they are now, as if pybench had written these files."""
    (folder / COMPLETE).write_bytes(digests.render(digests.of_folder(folder)))


def unguard(folder: Path) -> None:
    """Leaves a finished run as pybench did before it stored digests."""
    run = json.loads((folder / RUN).read_text())
    write_json(folder / RUN, {name: value for name, value in run.items() if name != GUARDED})
    (folder / COMPLETE).write_bytes(b"")


# --- a campaign with every kind of finding, whose truth is known --------------------------------------------------

TRUE_LATENCY_RATIO = {"int8": 0.55, "fp32": 1.0}  # of onnxruntime at batch 8; at batch 1 int8 makes no difference
TRUE_TOKEN_RATE = {"python": 30_000.0, "hf": 900_000.0, "rust": 3_000_000.0, "go_rust": 2_900_000.0}
IMAGES = 360
INT8_ONLY_WRONG = 4  # images that fp32 gets right and int8 wrong
INT8_ONLY_RIGHT = 1

DECLARED = [
    {
        "name": "int8 in place of fp32",
        "baseline": {"precision": "fp32"},
        "accept": {"speedup_min": 1.15, "top1_delta_pp_min": -3.0},
    },
    {
        "name": "tokenizer paths",
        "baseline": {"path": "hf"},
        "where": {"workload": "tokenize"},
        "accept": {"tokens_per_s_ratio_min": 1.0},
    },
    {"name": "runtimes", "baseline": {"runtime": "onnxruntime"}, "where": {"workload": "infer"}},
]


def typical_cases() -> tuple[Case, ...]:
    """infer (two precisions, two batches, two runtimes), accuracy, tokenize through four paths."""
    infer = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
    return (
        *(infer.with_factors(precision=precision, batch=batch) for precision in ("fp32", "int8") for batch in (1, 8)),
        infer.with_factors(runtime="torch", batch=8),
        infer.with_factors(runtime="torch", batch=8, precision="int8"),
        *(infer.with_factors(workload="accuracy", precision=precision, batch=32) for precision in ("fp32", "int8")),
        *(
            Case(workload="tokenize", model="tinylm-small", runtime="torch", batch=8, seq_len=128, path=path)
            for path in ("python", "hf", "rust", "go_rust")
        ),
    )


def build_typical(
    folder: Path,
    *,
    repetitions: int = 6,
    seed: int = 7,
    slowdown: float = 1.0,
    declared: Any = DECLARED,
    protocols: Sequence[str] = (),
) -> CampaignBuilder:
    """The campaign of `typical_cases` with 2 % noise between runs and 3 % drift common to a block."""
    cases = typical_cases()
    builder = CampaignBuilder(folder, cases, repetitions=repetitions, declared=declared, protocols=protocols)
    rng = np.random.default_rng(seed)
    for block in range(1, repetitions + 1):
        drift = float(np.exp(rng.normal(0, 0.03)))
        for index in rng.permutation(len(cases)):
            case = cases[int(index)]
            _typical_run(builder, case, block, drift * slowdown * float(np.exp(rng.normal(0, 0.02))))
    return builder


def _typical_run(builder: CampaignBuilder, case: Case, block: int, noise: float) -> None:
    if case.workload == "infer" and case.runtime == "torch" and case.precision == "int8":
        builder.run(
            case, block, outcome="unsupported", reason="no_int8_kernels", detail="torch runs no int8 graph here"
        )
    elif case.workload == "infer":
        builder.run(case, block, infer_metrics(case, noise), valid={"precision": Validity(True)})
    elif case.workload == "accuracy":
        predictions = predictions_csv(case.precision)
        builder.run(
            case,
            block,
            {**accuracy_metrics(predictions), "model_bytes": model_bytes(case)},
            valid={"accuracy": Validity(True)},
            predictions=predictions,
        )
    else:
        rate = TRUE_TOKEN_RATE[case.path] / noise
        metrics = {"throughput_tokens_per_s": rate, "text_mb_per_s": rate * 3.6e-6, "latency_mean_ms": 1024e3 / rate}
        builder.run(case, block, metrics, labels={"ids_sha256": f"{block:064d}"})


def infer_metrics(case: Case, noise: float) -> dict[str, float | Quantity]:
    ratio = TRUE_LATENCY_RATIO[case.precision] if case.batch > 1 else 1.0
    latency = 0.5 * case.batch * ratio * (1.4 if case.runtime == "torch" else 1.0) * noise
    return {
        "latency_mean_ms": Quantity(value=latency, window="timing", u_standard=latency * 0.002, samples=100),
        "latency_p50_ms": latency * 0.98,
        "latency_p95_ms": latency * 1.1,
        "latency_p99_ms": latency * 1.3,
        "throughput_samples_per_s": case.batch * 1e3 / latency,
        "peak_host_bytes": 180e6 * (1 + 0.01 * noise),
        "model_bytes": model_bytes(case),
        "cpu_energy_per_sample_j": Quantity(window="timing", reasons=("no_rapl",)),
        "cpu_energy_per_sample_estimate_j": Quantity(window="timing", interval=(0.01 * latency, 0.06 * latency)),
    }


def model_bytes(case: Case) -> float:
    return 400_000.0 if case.precision == "fp32" else 110_000.0


def predictions_csv(precision: str) -> str:
    """`IMAGES` images of ten classes; fp32 has every tenth wrong, int8 differs from it in a known number of images."""
    lines = ["image_id,label,top1,top5_hit"]
    for image in range(IMAGES):
        label = image % 10
        right = image % 10 != 3
        if precision == "int8" and image in (0, 1, 2, 4):
            right = False
        if precision == "int8" and image == 3:
            right = True
        lines.append(f"digits-{image:04d},{label},{label if right else (label + 1) % 10},true")
    return "\n".join(lines) + "\n"


def accuracy_metrics(predictions: str) -> dict[str, float]:
    rows = [line.split(",") for line in predictions.splitlines()[1:]]
    return {
        "top1_percent": 100 * sum(row[1] == row[2] for row in rows) / len(rows),
        "top5_percent": 100 * sum(row[3] == "true" for row in rows) / len(rows),
    }
