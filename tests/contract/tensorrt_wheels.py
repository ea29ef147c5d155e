# SPDX-License-Identifier: Apache-2.0
"""Real Python bindings of TensorRT over libraries of nothing, and what those bindings say of themselves.

The bindings are wheels of a few megabytes, the libraries behind them gigabytes that need a GPU. Nine symbols connect
the two, so nine functions that return null are enough to import the bindings, and every class, enumerator and signature
can be asked. Nothing can be built: a `Builder` or `Runtime` over null aborts the process, and nothing here makes one.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOWNLOAD_S = 180  # 1 to 2 MB, from whatever index the machine is set up with

# The oldest that pybench takes, the last of major 10, the first and the newest known of major 11.
WHEELS = {
    "10.6.0": "tensorrt-cu12-bindings",
    "10.16.1.11": "tensorrt-cu13-bindings",
    "11.0.0.114": "tensorrt-cu13-bindings",
    "11.4.0.106": "tensorrt-cu13-bindings",
}
LIBRARIES = ("nvinfer", "nvinfer_plugin", "nvonnxparser")
SYMBOLS = (
    "createInferBuilder_INTERNAL", "createInferRuntime_INTERNAL", "createInferRefitter_INTERNAL",
    "createNvOnnxParser_INTERNAL", "createNvOnnxParserRefitter_INTERNAL", "getBuilderPluginRegistry",
    "getPluginRegistry", "getNvOnnxParserVersion", "initLibNvInferPlugins",
)  # fmt: skip

# What the vendor's own package does, without its search for libraries.
MODULE = "from tensorrt_bindings import *\nfrom tensorrt_bindings import __version__\n"

# Printed as JSON by a process of its own: module attribute -> member -> {doc, settable}.
DESCRIBE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import tensorrt

def described(thing):
    doc = getattr(thing, "__doc__", None)
    settable = isinstance(thing, property) and thing.fset is not None
    return {"doc": doc if isinstance(doc, str) else "", "settable": settable}

print(json.dumps({
    name: {"": described(thing), **{member: described(getattr(thing, member)) for member in dir(thing)}}
    for name in dir(tensorrt) for thing in [getattr(tensorrt, name)]
}))
"""


@dataclass(frozen=True, slots=True)
class Bindings:
    """`folder`: what to put on the module path; `members`: module attribute -> member -> what is known of it, with the
    attribute itself under the empty name."""

    version: str
    folder: Path
    members: dict[str, dict[str, dict[str, Any]]]

    def has(self, owner: str, name: str) -> bool:
        return name in self.members if not owner else name in self.members.get(owner, {})

    def settable(self, owner: str, name: str) -> bool:
        return bool(self.members[owner][name]["settable"])

    def arities(self, owner: str, name: str) -> list[range]:
        """How many arguments each overload takes, without `self`; of a class, its constructors'."""
        members = self.members[owner or name]
        entry = members[name] if owner else members.get("__init__", members[""])
        return [_arity(parameters) for parameters in _signatures(entry)] or [
            _arity(parameters) for parameters in _signatures(members[""])
        ]


def provide(version: str, folder: Path) -> Bindings | str:
    """Installs one version into an empty folder; a sentence where this machine cannot."""
    if shutil.which("cc") is None:
        return "cc is not installed"
    why = _download(f"{WHEELS[version]}=={version}", folder)
    if why is not None:
        return why
    _stub(folder / "tensorrt_bindings", int(version.partition(".")[0]))
    (folder / "tensorrt").mkdir()
    (folder / "tensorrt" / "__init__.py").write_text(MODULE)
    return Bindings(version, folder, json.loads(run(DESCRIBE, folder)))


def run(program: str, folder: Path, *arguments: str) -> str:
    """Output of a Python program that is given the folder first; it aborts alone if it aborts."""
    command = [sys.executable, "-P", "-c", program, str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _download(requirement: str, folder: Path) -> str | None:
    installer = _installer()
    if installer is None:
        return "neither uv nor pip is here to download TensorRT's bindings"
    command = [*installer, "--no-deps", "--only-binary", ":all:", "--target", str(folder), requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_S)
    except subprocess.TimeoutExpired:
        return f"{requirement} was not downloaded within {DOWNLOAD_S} s"
    return None if done.returncode == 0 else f"{requirement} cannot be downloaded: {done.stderr.strip()[-300:]}"


def _installer() -> list[str] | None:
    """uv, where `make` put it or on the path, else pip."""
    own = sorted(ROOT.glob(".bootstrap/uv-*/bin/uv"))
    uv = str(own[-1]) if own else shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--quiet"]
    return None


def _stub(folder: Path, major: int) -> None:
    """Libraries of nothing, beside the bindings, which look there first."""
    source = folder / "nothing.c"
    source.write_text("".join(f"void *{symbol}(void) {{ return 0; }}\n" for symbol in SYMBOLS))
    for name in LIBRARIES:
        library = folder / f"lib{name}.so.{major}"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)


def _signatures(entry: dict[str, Any]) -> list[str]:
    """The parameters of each overload, as the bindings' docstrings begin with them."""
    found = re.findall(r"^(?:\d+\. )?\w+\((.*)\) ->", entry["doc"], re.MULTILINE)
    return [parameters for parameters in found if parameters != "*args, **kwargs"]


def _arity(parameters: str) -> range:
    depth, parts = 0, [""]
    for letter in parameters:
        depth += (letter in "[(<") - (letter in "])>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    own = [part for part in map(str.strip, parts) if part and not part.startswith("self:")]
    return range(sum(" = " not in part for part in own), len(own) + 1)
