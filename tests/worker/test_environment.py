# SPDX-License-Identifier: Apache-2.0
"""What environment.json says of packages: those that took part, by the version that did."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ASK = """
import json, sys
sys.path[:0] = sys.argv[2:]
for name in filter(None, sys.argv[1].split(",")):
    __import__(name)
from pybench.worker.environment import loaded_packages
print(json.dumps(loaded_packages()))
"""


def loaded(*imported: str, path: Path | None = None) -> dict[str, str]:
    """What a process says that has imported these; `path`: searched first."""
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-P", "-c", ASK, ",".join(imported), *([str(path)] if path else []), root]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


def test_only_what_is_imported_is_named() -> None:
    assert "onnx" not in loaded("numpy")
    found = loaded("onnx", "cuda.bindings.driver", "ml_dtypes")
    names = ("cuda-bindings", "ml-dtypes", "numpy", "onnx")
    assert {name: found[name] for name in names} == {name: metadata.version(name) for name in names}
    assert "torch" not in found


def test_every_package_that_was_imported_is_named_by_its_distribution(tmp_path: Path) -> None:
    """Also one that pybench does not know: a difference of its version is a difference of software."""
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "__init__.py").write_text("")
    (tmp_path / "acme-2.5.dist-info").mkdir()
    (tmp_path / "acme-2.5.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 2.5\n")
    found = loaded("acme", "json", "yaml", path=tmp_path)
    assert found["acme"] == "2.5"
    assert found["PyYAML"] == metadata.version("PyYAML")
    assert found.keys().isdisjoint({"json", "pybench", "yaml"})


def test_a_module_without_a_distribution_of_its_name_tells_its_own_version(tmp_path: Path) -> None:
    """TensorRT as its archive installs it: no distribution is called `tensorrt`, the module says what it is."""
    (tmp_path / "tensorrt.py").write_text("__version__ = '10.6.0'\n")
    assert loaded("tensorrt", path=tmp_path)["tensorrt"] == "10.6.0"
