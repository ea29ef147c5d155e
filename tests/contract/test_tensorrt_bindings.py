# SPDX-License-Identifier: Apache-2.0
"""pybench's use of TensorRT against the real bindings of 10 and 11: every name, every argument, every attribute set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.contract.tensorrt_names import fed_types, used
from tests.contract.tensorrt_wheels import ROOT, WHEELS, Bindings, provide, run

# `library` itself, over each version of the bindings, in a process of its own.
USE_LIBRARY = """
import json, sys
sys.path[:0] = sys.argv[1:]
from pybench.runtimes.tensorrt import library
trt = library.load()
log, messages = library.listen()
assert library.listen()[0] is log  # TensorRT keeps the first one that it is given
for severity, text in ((trt.ILogger.ERROR, "wrong"), (trt.ILogger.WARNING, "odd"), (trt.ILogger.INFO, "chatter")):
    log.log(severity, text)
print(json.dumps({
    "installed": library.installed(), "flags": library.strongly_typed(trt),
    "errors": messages.errors, "warnings": messages.warnings,
}))
"""

# What `pybench doctor` asks a worker.
ASK_WORKER = """
import json, sys
sys.path[:0] = sys.argv[1:]
from pybench.worker.probe import probe
print(json.dumps(probe(["tensorrt"])["tensorrt"]))
"""


@pytest.fixture(scope="module", params=WHEELS)
def bindings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bindings:
    provided = provide(request.param, tmp_path_factory.mktemp("tensorrt"))
    if isinstance(provided, str):
        pytest.skip(provided)
    return provided


def test_the_uses_are_found_in_the_source() -> None:
    """Were nothing found, the tests below would hold of any bindings."""
    names = {(use.owner, use.name, use.arguments, use.is_set) for use in used()}
    assert names >= {
        ("", "Builder", 1, False),
        ("Builder", "build_serialized_network", 2, False),
        ("BuilderFlag", "TF32", -1, False),
        ("EngineInspector", "get_engine_information", 1, False),
        ("IBuilderConfig", "clear_flag", 1, False),
        ("IBuilderConfig", "builder_optimization_level", -1, True),
        ("IExecutionContext", "execute_async_v3", 1, False),
        ("ILogger", "log", 2, False),
        ("ITimingCache", "serialize", 0, False),
    }
    assert len(fed_types()) > 3


def test_every_name_exists(bindings: Bindings) -> None:
    missing = [use for use in used() if not use.may_be_missing and not bindings.has(use.owner, use.name)]
    assert not missing, f"TensorRT {bindings.version} has no {', '.join(map(str, missing))}"
    assert fed_types() <= bindings.members["DataType"].keys()


def test_every_call_fits_a_signature(bindings: Bindings) -> None:
    calls = [use for use in used() if use.arguments >= 0]
    unfit = [use for use in calls if not any(use.arguments in each for each in bindings.arities(use.owner, use.name))]
    assert len(calls) > 25
    assert not unfit, f"TensorRT {bindings.version} takes other arguments: {', '.join(map(str, unfit))}"


def test_what_is_set_can_be_set(bindings: Bindings) -> None:
    fixed = [use for use in used() if use.is_set and not bindings.settable(use.owner, use.name)]
    assert not fixed, f"TensorRT {bindings.version} does not let one set {', '.join(map(str, fixed))}"


def test_a_wrong_name_and_a_wrong_number_of_arguments_would_be_found(bindings: Bindings) -> None:
    assert not bindings.has("BuilderFlag", "TF31")
    assert not bindings.has("IBuilderConfig", "int8_mode")
    assert bindings.arities("IBuilderConfig", "set_timing_cache") == [range(2, 3)]
    assert bindings.arities("", "OnnxParser") == [range(2, 3)]
    assert not bindings.settable("ICudaEngine", "num_io_tensors")


def test_precision_flags_are_gone_from_11_and_tf32_is_not(bindings: Bindings) -> None:
    """Why the ONNX file has the precision: a builder's flag for FP16 exists in one major only."""
    is_11 = bindings.version.startswith("11.")
    assert bindings.has("BuilderFlag", "FP16") is not is_11
    assert bindings.has("BuilderFlag", "TF32")


def test_the_module_is_loaded_and_flags_are_numbered_by_it(bindings: Bindings) -> None:
    """STRONGLY_TYPED is number 1 in major 10 and number 0 in major 11: a stored number would ask for something else."""
    said = json.loads(run(USE_LIBRARY, bindings.folder, str(ROOT)))
    assert said["installed"] == {"version": bindings.version}
    assert said["flags"] == (1 << 0 if bindings.version.startswith("11.") else 1 << 1)
    assert (said["errors"], said["warnings"]) == (["wrong"], ["odd"])


def test_no_name_is_asked_for_only_in_case(tmp_path: Path) -> None:
    """What may be missing must be there in some version, or it is misspelt."""
    optional = {use for use in used() if use.may_be_missing}
    assert {(use.owner, use.name) for use in optional} == {("ICudaEngine", "device_memory_size_v2")}
    provided = provide("11.4.0.106", tmp_path)
    if isinstance(provided, str):
        pytest.skip(provided)
    assert all(provided.has(use.owner, use.name) for use in optional)


def test_doctor_finds_bindings_and_touches_no_builder(bindings: Bindings) -> None:
    """A `Builder` over null, as one without a GPU, would have ended the asking process."""
    said = json.loads(run(ASK_WORKER, bindings.folder, str(ROOT)))
    assert said == {"available": True, "version": bindings.version}
