# SPDX-License-Identifier: Apache-2.0
"""Makes the corpus `stdlib-packages`: the beginnings of source files of ten packages of Python's standard library.

    python bench/text/freeze.py LIB pybench/models/text/stdlib_packages.jsonl.xz

`LIB`: the folder of the standard library of CPython 3.11.7. Each line is a file: its path, the sha256 of its text, and
its text, cut at the last line end within TEXT_BYTES. Tests of a package and files that are not UTF-8 are left out.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import sys
from pathlib import Path

PACKAGES = (
    "asyncio", "distutils", "email", "encodings", "idlelib", "importlib", "lib2to3", "multiprocessing", "unittest",
    "xml",
)  # fmt: skip
TEXT_BYTES = 8_000
SHORTEST_BYTES = 500
FILES = 48  # of a package at most, evenly spaced over their names
TESTS = {"test", "tests", "idle_test"}


def main(library: Path, target: Path) -> None:
    lines = [line for package in PACKAGES for line in lines_of(package, library)]
    target.write_bytes(lzma.compress(b"".join(lines), preset=9 | lzma.PRESET_EXTREME))
    print(len(lines), "files,", sum(map(len, lines)), "bytes,", hashlib.sha256(b"".join(lines)).hexdigest())


def lines_of(package: str, library: Path) -> list[bytes]:
    texts = {}
    for file in sorted((library / package).rglob("*.py")):
        path = file.relative_to(library)
        content = file.read_bytes()
        if TESTS.isdisjoint(path.parts) and len(content) >= SHORTEST_BYTES and _is_utf8(content):
            cut = content if len(content) <= TEXT_BYTES else content[: content.rindex(b"\n", 0, TEXT_BYTES) + 1]
            texts[path.as_posix()] = cut
    names = sorted(texts)
    kept = [names[i * len(names) // FILES] for i in range(FILES)] if len(names) > FILES else names
    return [_line(name, texts[name]) for name in kept]


def _line(path: str, content: bytes) -> bytes:
    record = {"path": path, "sha256": hashlib.sha256(content).hexdigest(), "text": content.decode()}
    return json.dumps(record).encode() + b"\n"


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
