# SPDX-License-Identifier: Apache-2.0
"""Search of the nodes that have to stay in FP32, as JSON: what is kept, and each graph that was tried.

Each trial is the file that the quantiser writes with these nodes kept, so what fuses or shares a pair is in its error.
It is run on onnxruntime's CPU provider, pairs as they stand, on the samples that ranges are found on. They judge no
accuracy, unless the plan's data has no split for training. Trials are stored as they are made, and one that an earlier
process made is not made again.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from pybench import __version__
from pybench.artefacts.quantised import FOUND_RANGES
from pybench.artefacts.request import MakeRequest
from pybench.artefacts.samples import CalibrationSamples
from pybench.artefacts.stored_trials import StoredTrials
from pybench.catalogue.code import named_code
from pybench.catalogue.quantisers import QUANTISERS
from pybench.errors import InputError
from pybench.measurement.labelled import file_sha256
from pybench.measurement.result import Result
from pybench.onnx_file.graph import read_graph
from pybench.precision.audit import require_fp32
from pybench.precision.conversion import matching_nodes
from pybench.precision.execution import Agreement, compare, outputs_of
from pybench.precision.keeping import KeepSearch, Trial, keepable_units, search
from pybench.precision.network import open_network
from pybench.words import counted

SCHEMA_VERSION = 1
_TRIAL = "trial.onnx"
SEARCHED_SAMPLES = 128  # at most: they are held in memory, and each trial runs all of them
SEARCHED_VALUES = 2**25  # of the first output, of all samples: comparing takes 50 bytes each, and a text has millions


def make(request: MakeRequest, path: Path) -> Result:
    """Writes {schema_version, kept, found, signal_error_alone, trials}; `kept` also has what the plan's keep-list
    names. Raises InputError where the bound is not met, or samples are too few to tell."""
    parameters, source = request.parameters, request.needed("onnx", "model")
    require_fp32(source)
    network = open_network(source)
    named = matching_nodes(network, parameters["keep_fp32"])
    samples = CalibrationSamples.of_file(source, request, parameters)
    if samples.total < 2:
        raise InputError(
            "keep_error_max bounds the error against what samples change in the outputs, and there is one sample",
            hint="raise calibration_images",
        )
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".trials-") as folder:
        run = _stored(_running(request, source, samples, named, Path(folder)), request, samples)
        nothing_kept = run(frozenset())
        rounds_others = QUANTISERS[parameters["quantiser"]].rounds_others
        units = keepable_units(network, read_graph(Path(folder) / _TRIAL), named, rounds_others=rounds_others)
        found = search(units, lambda nodes: run(nodes) if nodes else nothing_kept, parameters["keep_error_max"])
    kept = sorted(named.union(*(unit.nodes for unit in found.kept)))
    _write(path, kept, found)
    return Result(labels={"kept_search": _summary(found, len(units), samples)})


def _running(
    request: MakeRequest, source: Path, samples: CalibrationSamples, named: set[str], folder: Path
) -> Callable[[frozenset[str]], Agreement]:
    """What quantises the model with some nodes kept, leaves the file in the folder, and compares it with FP32."""
    precision = request.parameters["precision"]
    write = named_code(QUANTISERS[request.parameters["quantiser"]].make)
    of_batch = outputs_of(source, "fp32", samples[:1])[0].size
    most = max(min(SEARCHED_SAMPLES, SEARCHED_VALUES * samples.batch // max(of_batch, 1)), 2)
    feeds = samples[: max(most // samples.batch, 1)]
    reference, _ = outputs_of(source, "fp32", feeds)
    kept, trial = folder / "kept.json", folder / _TRIAL
    inputs = {**request.inputs, "kept": kept, FOUND_RANGES: folder / "ranges.json"}

    def run(nodes: frozenset[str]) -> Agreement:
        kept.write_text(json.dumps({"kept": sorted(named | nodes)}))
        write(replace(request, inputs=inputs), source, trial, samples)
        return compare(reference, outputs_of(trial, precision, feeds, pairs_apart=True)[0])

    return run


def _stored(
    run: Callable[[frozenset[str]], Agreement], request: MakeRequest, samples: CalibrationSamples
) -> Callable[[frozenset[str]], Agreement]:
    """The same, of which each trial is said in the log and stored. Only the graph that keeps nothing is not stored: it
    is always run, because the units are read from it."""
    stored = None if request.unfinished is None else StoredTrials(request.unfinished, _depends_on(request, samples))
    number = 0
    if stored is not None and len(stored) > 0:
        print(f"goes on from {counted(len(stored), 'trial')} of an earlier search", file=sys.stderr, flush=True)

    def tried(nodes: frozenset[str]) -> Agreement:
        nonlocal number
        number += 1
        found = stored.get(nodes) if stored is not None and nodes else None
        agreement = run(nodes) if found is None else found
        if stored is not None and found is None and nodes:
            stored.add(nodes, agreement)
        error = agreement.signal_error
        said = "no number" if error is None else f"{error:.3g}"
        print(f"trial {number}: signal error {said}, {counted(len(nodes), 'node')} kept", file=sys.stderr, flush=True)
        return agreement

    return tried


def _depends_on(request: MakeRequest, samples: CalibrationSamples) -> dict[str, Any]:
    """What the error of a trial depends on, beside the recipe, which is in the folder's name."""
    files = {"onnx": request.needed("onnx", "model"), **request.inputs}
    return {
        "files": {role: file_sha256(path) for role, path in files.items()},
        "samples": samples.sha256,
        "versions": {"pybench": __version__, "onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__},
    }


def _write(path: Path, kept: list[str], found: KeepSearch) -> None:
    content = {
        "schema_version": SCHEMA_VERSION,
        "kept": kept,
        "found": [unit.name for unit in found.kept],
        "signal_error_alone": found.errors_alone,
        "trials": [{"step": trial.step, "kept": trial.kept, **_errors(trial)} for trial in found.trials],
    }
    path.write_text(json.dumps(content, indent=1))


def _summary(found: KeepSearch, units: int, samples: CalibrationSamples) -> dict[str, Any]:
    """What tables show. `alone`: the signal error with one node quantised, the largest first."""
    alone = found.errors_alone
    return {
        "kept": [unit.name for unit in found.kept],
        "units": units,
        "before": _errors(found.trials[0]),
        "after": _errors(found.found),
        "trials": len(found.trials),
        "samples": found.found.agreement.samples,
        "source": samples.source,
        "held_out": samples.held_out,
        "alone": dict(
            sorted(alone.items(), key=lambda entry: math.inf if entry[1] is None else entry[1], reverse=True)
        ),
    }


def _errors(trial: Trial) -> dict[str, float | None]:
    agreement = trial.agreement
    return {"signal_error": agreement.signal_error, "top1_agreement_ratio": agreement.top1_agreement_ratio}
