# SPDX-License-Identifier: Apache-2.0
"""Runs inside modelopt's own environment, as a script: `python modelopt_process.py REQUEST`, a JSON file.

The request names the graph, the samples (npz, an array an input), where to write, and modelopt's options; what came of
it is written to the file that it names. Imports nothing of pybench, which that environment does not have.
"""

import json
import sys
import time
from pathlib import Path


def main(request_path: str) -> None:
    import numpy as np
    from modelopt.onnx.quantization import quantize

    request = json.loads(Path(request_path).read_text())
    samples = np.load(request["samples"])
    begin = time.monotonic()
    quantize(
        request["source"],
        calibration_data={name: samples[name] for name in samples.files},
        calibration_eps=["cpu"],
        output_path=request["destination"],
        log_level="ERROR",
        **request["options"],
    )
    answer = {"quantise_s": time.monotonic() - begin, "versions": _versions()}
    Path(request["answer"]).write_text(json.dumps(answer))


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("nvidia-modelopt", "onnx", "onnxruntime-gpu")}


if __name__ == "__main__":
    main(sys.argv[1])
