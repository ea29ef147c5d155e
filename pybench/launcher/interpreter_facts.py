# SPDX-License-Identifier: Apache-2.0
"""Run by any Python 3 as a script, without pybench: what this interpreter is, and which packages it finds.

The names of modules are the arguments. Prints one JSON object: `version`, `implementation`, `suffix` (of compiled
modules), `packages` (distribution -> version), and `missing` (those of the modules that it does not find). `code` in it
is the `code_sha256` of the pybench that it finds.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import re
import sys
import sysconfig
from pathlib import Path


def main(modules: list[str]) -> None:
    sys.path.pop(0)  # the folder of this script
    packages: dict[str, str] = {}
    for found in importlib.metadata.distributions():
        name = found.metadata["Name"]
        if name:  # a damaged one has none
            packages.setdefault(re.sub(r"[-_.]+", "-", name).lower(), found.version)  # the first is what is imported
    facts = {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "suffix": sysconfig.get_config_var("EXT_SUFFIX"),
        "packages": dict(sorted(packages.items())),
        "code": code_sha256(),
        "missing": [name for name in modules if importlib.util.find_spec(name) is None],
    }
    print(json.dumps(facts))


def code_sha256() -> str | None:
    """The sha256 over pybench's Python files, a line with sha256 and path for each; None where there is no pybench.

    What a build writes into the package is no part of it: `_native*`, whose sources have an id of their own.
    """
    found = importlib.util.find_spec("pybench")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
    digest = hashlib.sha256()
    for name in sorted(files):
        if not name.startswith("_native"):
            digest.update(f"{hashlib.sha256(files[name].read_bytes()).hexdigest()}  {name}\n".encode())
    return digest.hexdigest()


if __name__ == "__main__":
    main(sys.argv[1:])
