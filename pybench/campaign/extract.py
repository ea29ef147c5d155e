# SPDX-License-Identifier: Apache-2.0
"""What tables take of a finished run, stored once in `.extract` when the run ends, so that a reader opens one file.

The file has three parts:

    pybench extract <format> <sha256 of the run's `complete`> <sha256 of all that follows>
    <one line of JSON>
    <one line of CSV for each metric>

An extract saves time. It is used only next to the `complete` that it names, and only after the run's files were found
as `complete` lists them. Its digests find damage; forgery is found where every byte is hashed, as by `pybench check`.
Without it, or with another format, the files are read.
It is a hidden file, so it is no part of the run: nothing hashes, publishes or reports it, and it may be removed.
`pybench check` reads the files, and compares the extract with them.

FORMAT counts up with each change of what is stored, of how it follows from a run's files, or of what
`read_finished_run` refuses.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from pybench.campaign import storage
from pybench.campaign.directory import RunDirectory
from pybench.campaign.finished_run import FinishedRun, read_finished_run
from pybench.campaign.layout import COMPLETE
from pybench.catalogue.validities import VALIDITIES
from pybench.errors import CorruptError

EXTRACT = ".extract"
FORMAT = 2
METRIC_KINDS: Mapping[str, type] = {
    "unit": str,
    "window": str,
    "value": float,
    "u_standard": float,
    "u_absolute": float,
    "lower": float,
    "upper": float,
    "samples": int,
    "method": str,
    "reason": str,
}
"""What is kept of a metric, in this order; each may be null."""
OPENED = "measuring"
"""The object of environment.json whose entries are kept one by one: its clocks differ in each run, the rest is shared
by many."""
_OF_RUN = ("reason", "detail", "started_utc", "finished_utc", "duration_s")
_OF_LABELS = ("device", "ids_sha256")
_OF_CAUTION = ("code", "detail", "metric", "advice")
_MOST_BYTES = 1 << 16  # ten times what most runs have; a larger buffer costs more than it saves
_LARGEST = 2**63 - 1


def finish(run: RunDirectory, record: Mapping[str, Any]) -> None:
    """`RunDirectory.complete`, and the extract."""
    run.complete(record)
    store(run)


def store(run: RunDirectory) -> None:
    """Stores the extract of a complete run. Nothing is stored where the run's files are not as they must be, which
    readers tell, nor where there is no space."""
    with contextlib.suppress(Exception):
        body = _body(read_finished_run(run))
        content = _head(run.read(COMPLETE), body) + body
        if len(content) <= _MOST_BYTES:
            storage.write_bytes(run.file(EXTRACT), content, is_lasting=False)


def read(run: RunDirectory) -> tuple[bytes, bytes] | None:
    """JSON and CSV of the extract of a complete run; None where it has none of this `FORMAT` for its `complete`."""
    try:
        listed = run.read(COMPLETE)
        descriptor = os.open(f"{run.path}/{EXTRACT}", os.O_RDONLY | os.O_NONBLOCK)  # a pipe has no writer
        try:
            content = os.read(descriptor, _MOST_BYTES)
        finally:
            os.close(descriptor)
    except OSError:
        return None
    head, _, body = content.partition(b"\n")
    if head + b"\n" != _head(listed, body):
        return None
    line, _, metrics = body.partition(b"\n")
    return line, metrics


def check(run: FinishedRun) -> None:
    """Raises `CorruptError` where the run has an extract that is valid and says something else than its files do."""
    parts = read(run.directory)
    if parts is None:
        return
    with contextlib.suppress(ValueError, OverflowError):
        if b"\n".join(parts) == _body(run):
            return
    raise CorruptError(
        f"{run.directory.file(EXTRACT)} does not say what the run's files say: remove it and the campaign's "
        "`.reported.json`, then make the report again; the run itself is whole"
    )


def run_values(run: FinishedRun) -> list[Any]:
    """Outcome, validities, their reasons, then `_OF_RUN` and `_OF_LABELS`."""
    verdicts = [run.run["valid"].get(name, {}) for name in VALIDITIES]
    labels = [run.summary["labels"].get(name) for name in _OF_LABELS]
    return [
        run.run["outcome"],
        *(verdict.get("value") for verdict in verdicts),
        *(list(verdict.get("reasons", ())) for verdict in verdicts),
        *(run.run.get(name) for name in _OF_RUN),
        *(None if label is None else str(label) for label in labels),
    ]


def caution_values(run: FinishedRun) -> list[list[Any]]:
    """Of each caution: `_OF_CAUTION`."""
    return [[caution.get(name) for name in _OF_CAUTION] for caution in run.run.get("cautions", ())]


def _head(listed: bytes, body: bytes) -> bytes:
    return b"pybench extract %d %s %s\n" % (FORMAT, _digest(listed), _digest(body))


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _body(run: FinishedRun) -> bytes:
    """Raises ValueError where a value is not what it should be: such a run is read as its files tell it."""
    energy = run.energy
    metrics = "".join(_metric_lines(run.summary["metrics"]))
    kept = [
        run.run["case_id"],
        run.run["block"],
        run.run["attempt"],
        run_values(run),
        caution_values(run),
        run.summary["labels"],
        dict(_environment_parts(run.environment)),
        None if energy is None else energy.sensor,
        None if energy is None else [energy.windows, energy.spans, energy.power_limit_w],
        len(run.summary["metrics"]),
        run.predicts,
    ]
    line = json.dumps(kept, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"{line}\n{metrics}".encode()


def _environment_parts(environment: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name -> value of environment.json, with the entries of `OPENED` as `measuring.name`. Clocks are left out."""
    for name, value in environment.items():
        if name == OPENED and isinstance(value, dict):
            yield from ((f"{name}.{inner}", found) for inner, found in value.items() if not inner.endswith("_ns"))
        elif "." in name:
            raise ValueError(name)
        elif not name.endswith("_ns"):
            yield name, value


def _metric_lines(metrics: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, metric in metrics.items():
        cells = (_cell(metric.get(column), kind) for column, kind in METRIC_KINDS.items())
        yield ",".join((_cell(name, str), *cells)) + "\n"


def _cell(value: object, kind: type) -> str:
    """A text is quoted, so the empty one differs from null, which is empty."""
    if value is None:
        return ""
    if kind is str and isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    if kind is float and type(value) in (int, float):
        return repr(float(value))  # type: ignore[arg-type]
    if kind is int and type(value) is int and abs(value) <= _LARGEST:
        return str(value)
    raise ValueError(f"{value!r} is no {kind.__name__}")
