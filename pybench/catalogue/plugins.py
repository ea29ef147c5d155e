# SPDX-License-Identifier: Apache-2.0
"""Packages outside pybench that add rows: what is kept of each, and the digest of its code.

How they are found is `pybench.catalogue.installed`, which only reading a plan needs.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pybench.errors import UsageError

_NOT_CODE = "__pycache__"  # what Python writes there depends on who imported the package first


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One installed package that adds rows.

    name: of its entry point
    distribution: what was installed
    version: of the distribution
    package: the Python package that contains its rows and its code
    sha256: of all files of that package
    """

    name: str
    distribution: str
    version: str
    package: str
    sha256: str

    @property
    def fact(self) -> str:
        """Under which name a machine is asked whether it has the package: `plugin:acme-bench:acme_bench`."""
        return f"{FACT}{self.distribution}:{self.package}"


FACT = "plugin:"


def refuse_change(began: Iterable[Plugin], now: Iterable[Plugin]) -> None:
    """Raises UsageError where a package that a campaign began with is another one now."""
    by_name = {plugin.name: plugin for plugin in began}
    for plugin in now:
        former = by_name.get(plugin.name, plugin)
        if former.sha256 != plugin.sha256:
            refuse_other(former, plugin.version, plugin.sha256)


def refuse_other(plugin: Plugin, version: str, sha256: str) -> NoReturn:
    """Raises UsageError: the installed package is not the one that a campaign began with."""
    was = f"{plugin.version}, sha256 {plugin.sha256[:12]}"
    raise UsageError(
        f"{plugin.distribution} ({was}) has changed since this campaign began: it is {version}, sha256 {sha256[:12]}",
        hint="choose another folder with --out, or install the former one",
    )


def sha256_of_package(package: str) -> str:
    """The sha256 over the files of an installed package: one line each with path and sha256, in the order of paths.

    The package is not imported. Raises ModuleNotFoundError where it is not installed.
    """
    found = importlib.util.find_spec(package)
    if found is None or (found.origin is None and not found.submodule_search_locations):
        raise ModuleNotFoundError(f"no module named {package!r}", name=package)
    folders = [Path(folder) for folder in found.submodule_search_locations or ()]
    files = {path.relative_to(folder).as_posix(): path for folder in folders for path in _files_in(folder)}
    if not folders and found.origin is not None:
        files = {Path(found.origin).name: Path(found.origin)}
    digest = hashlib.sha256()
    for name in sorted(files):
        content = hashlib.sha256(files[name].read_bytes()).hexdigest()
        digest.update(f"{content} {name}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and _NOT_CODE not in path.parts]
