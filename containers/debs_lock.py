# SPDX-License-Identifier: Apache-2.0
"""The names of Debian packages (debs.txt) and what they last resolved to (debs.lock).

A Debian archive moves with every point release, and the image's digest with it. The lock says which packages a
published digest stands for, and `compare` names those that have moved since. It does not fetch old versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from debian_root import Package

FOLDER = Path(__file__).resolve().parent
Sections = Mapping[str, Sequence[Package]]


def names_in(section: str, path: Path = FOLDER / "debs.txt") -> list[str]:
    """The package names in one section of debs.txt."""
    names: dict[str, list[str]] = {}
    current = names.setdefault("", [])
    for line in path.read_text().splitlines():
        if line.startswith("["):
            current = names.setdefault(line.strip("[] "), [])
        elif line and not line.startswith("#"):
            current.append(line.strip())
    return names[section]


def read(path: Path) -> dict[str, list[Package]]:
    """The locked packages by section; nothing when there is no lock yet."""
    sections: dict[str, list[Package]] = {}
    lines = path.read_text().splitlines() if path.exists() else []
    for line in lines:
        if line and not line.startswith("#"):
            section, name, version, architecture, sha256 = line.split()
            sections.setdefault(section, []).append(Package(name, version, architecture, sha256))
    return sections


def write(path: Path, sections: Sections) -> None:
    """Write the lock, one package a line, sorted."""
    header = "# What debs.txt resolved to: section, package, version, architecture, sha256 of the .deb. Generated.\n"
    lines = [
        f"{section} {package.name} {package.version} {package.architecture} {package.sha256}\n"
        for section, packages in sorted(sections.items())
        for package in packages
    ]
    path.write_text(header + "".join(lines))


def compare(locked: Sections, resolved: Sections) -> list[str]:
    """What differs, in words, for the sections that were resolved."""
    differences = []
    for section, packages in resolved.items():
        before = {package.name: package for package in locked.get(section, [])}
        after = {package.name: package for package in packages}
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name), after.get(name)
            if old != new:
                was, now = old.version if old else "absent", new.version if new else "absent"
                differences.append(f"{section} {name}: {was} -> {now}" if was != now else f"{section} {name}: sha256")
    return differences
