# SPDX-License-Identifier: Apache-2.0
"""Run by any Python 3 as a script, without pybench: what this interpreter is, and which packages it finds.

The names of modules are the arguments. Prints one JSON object: `version`, `implementation`, `suffix` (of compiled
modules), `packages` (distribution -> version), and `missing` (those of the modules that it does not find).
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import platform
import re
import sys
import sysconfig


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
        "missing": [name for name in modules if importlib.util.find_spec(name) is None],
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main(sys.argv[1:])
