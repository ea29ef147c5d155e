# SPDX-License-Identifier: Apache-2.0
"""The user's files that a plan names: whether they are there, and the digest of their content.

A file's digest is the sha256 of its bytes. Where an ONNX file has weights in other files, they are hashed after it, as
a folder of these files would be. The digest of a folder is the sha256 over one line for each file in it, in the order
of their names. A line has the name inside the folder, the size and the sha256 of the file's bytes. Links to folders are
followed among images alone, as they are when these files are read. Class folders that number classes and contain no
file have a line with their name at the end. Larger folders of images or text than `WHOLE_BYTES` (ImageNet's validation
images are 6.7 GB) are told apart by names and sizes only, and say so. Weights are always read whole: other weights of
the same model have the same names and sizes.

Of these files, models and pictures are looked into. Whatever keeps every runtime from running an ONNX file is told here
(`pybench.onnx_file`), and a `config.json` has to name its type. Pictures are opened without being decoded
(`pybench.image_files`), as long as their content is hashed. What is in the others is for the workload that reads them.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.campaign.storage import sha256_of
from pybench.case import Case
from pybench.case.factor import Factor
from pybench.case.factors import FACTORS
from pybench.catalogue.zoo import CONFIG, FORMS, LIBRARIES
from pybench.document import Unplaced
from pybench.errors import InputError
from pybench.image_files.layout import layout_of
from pybench.image_files.tree import check_tree, classes_without_files, files_under, is_picture
from pybench.onnx_file.facts import weight_files
from pybench.onnx_file.faults import Fault, opened
from pybench.onnx_file.graph import OnnxModel
from pybench.plan.values import nearest, nearest_row

WHOLE_BYTES = 1_000_000_000  # of images or text: reading this much takes seconds; a plan is loaded often
MOST_FILES = 2_000_000
CONTENT = "content"  # what a digest covers

_FOLDERS = frozenset({"checkpoint", "corpus", "images"})
_ARRAYS = frozenset({"inputs", "data"})


@dataclass(frozen=True, slots=True)
class UserFile:
    """A file or folder of the user's. `covers`: what the digest is over, `content` or `names and sizes`."""

    path: Path
    sha256: str
    bytes: int
    covers: str

    def as_json(self) -> dict[str, str | int]:
        return {"path": str(self.path), "sha256": self.sha256, "bytes": self.bytes, "covers": self.covers}


class FileProblem(Unplaced):
    """What is wrong with a file."""


class UserFiles:
    """The files of one plan, each looked at once. Paths are relative to the plan's folder."""

    def __init__(self, folder: Path, factors: Mapping[str, Factor] = FACTORS) -> None:
        self._folder = folder
        self._factors = factors
        self._seen: dict[tuple[str, str], UserFile | FileProblem] = {}
        self._models: dict[str, OnnxModel] = {}
        self._configs: dict[str, dict[str, Any]] = {}

    def find(self, factor: str, value: str) -> UserFile:
        """The file that a factor names; raises FileProblem."""
        key = (factor, value)
        if key not in self._seen:
            try:
                self._seen[key] = found = _inspect(self._factors[factor], value, self._folder)
                if factor == "model" and found.path.name == CONFIG:
                    self._configs[value] = _config_in(value, found.path)
                elif factor == "model":
                    self._models[value] = model = _model_in(value, found.path)
                    self._seen[key] = found = _with_weights(found, weight_files(model))
            except FileProblem as problem:
                self._seen[key] = problem
            except InputError as error:
                self._seen[key] = FileProblem(f"`{factor}`: {error.message}", error.hint)
            except OSError as error:
                what = f"`{factor}`: {error.filename or value} cannot be read: {error.strerror}"
                hint = "let this user read it (chmod)" if isinstance(error, PermissionError) else None
                self._seen[key] = FileProblem(what, hint)
        known = self._seen[key]
        if isinstance(known, FileProblem):
            raise known
        return known

    def configured(self, value: str) -> str:
        """The `config.json` of a folder that has one; any other value as it is."""
        is_folder = (self._folder / value / CONFIG).is_file()
        return posixpath.join(value, CONFIG) if is_folder else value

    def is_folder(self, value: str) -> bool:
        """Whether a value names a folder."""
        return (self._folder / value).is_dir()

    def config(self, value: str) -> Mapping[str, Any]:
        """What a config.json of the user's says; nothing where none is named, or something is wrong with it."""
        return self._configs.get(value, {})

    def model(self, value: str) -> OnnxModel:
        """What an ONNX file of the user's says of itself; raises FileProblem."""
        self.find("model", value)
        return self._models[value]


def refuse_changed(cases: Iterable[Case], paths: Mapping[str, str]) -> None:
    """Raises InputError where a file that these cases were made of is another file now: that makes other cases.

    `paths`: value of a `file` factor -> absolute path. What is not there is left to the runs: what was made of it may
    do for them, on another machine too. Raises InputError as well where something is wrong with a file.
    """
    files, changed = UserFiles(Path()), set()
    for case in cases:
        factors = case.factors()
        for name, digest in case.sources:
            path = paths[factors[name]]
            if not os.path.exists(path):  # noqa: PTH110, as Path.exists raises for folders of other users
                continue
            try:
                found = files.find(name, path)
            except FileProblem as problem:
                raise InputError(problem.what, hint=problem.hint) from problem
            if found.sha256 != digest:
                changed.add(path)
    if changed:
        raise InputError(
            f"{', '.join(sorted(changed))} {'has' if len(changed) == 1 else 'have'} changed since the plan was read",
            hint="give the plan's file in place of the campaign's folder: a file that has changed makes other cases; "
            "or restore what was there",
        )


def _model_in(value: str, path: Path) -> OnnxModel:
    found = opened(path)
    if isinstance(found, Fault):
        raise FileProblem(f"`model`: {value}: {found.what}", found.hint)
    return found


def _config_in(value: str, path: Path) -> dict[str, Any]:
    """A config.json, which has to say of which type the model is; raises FileProblem. Its library judges the rest."""
    try:
        config = json.loads(path.read_bytes())
    except ValueError as error:
        raise FileProblem(f"`model`: {value} is no JSON: {error}", "export it again with save_pretrained") from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        named = config.get("architecture") if isinstance(config, dict) else None  # as timm writes it
        hint = f"write `model: timm/{named}`, and give the weights as `checkpoint`" if isinstance(named, str) else None
        raise FileProblem(f"`model`: {value} has no `model_type`", hint or 'as in `"model_type": "bert"`')
    return config


def _inspect(kind: Factor, value: str, folder: Path) -> UserFile:
    path, factor = (folder / value).absolute(), kind.name
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _absent(kind, value, folder) from error
    if stat.S_ISDIR(mode):
        if factor == "model":
            hint = f"give an ONNX file, or a folder with the {CONFIG} of transformers"
            raise FileProblem(f"`model`: {value} is a folder without {CONFIG}", hint)
        if factor not in _FOLDERS:
            raise FileProblem(f"`{factor}`: {value} is a folder", "give the file in it")
        return _folder_digest(factor, value, path)
    if factor == "images" and path.suffix != ".npz":
        raise FileProblem(f"`{factor}`: {value} is a file", "give a folder of class folders, or an .npz")
    if factor in _ARRAYS and path.suffix != ".npz":
        raise FileProblem(f"`{factor}`: {value} is no .npz", "write it with numpy.savez, one array for each input")
    if not stat.S_ISREG(mode):
        raise FileProblem(f"`{factor}`: {value} is not a regular file")
    size = path.stat().st_size
    if size == 0:
        raise FileProblem(f"`{factor}`: {value} is empty", "copy, download or export it again")
    return UserFile(path, sha256_of(path), size, CONTENT)


def _absent(kind: Factor, value: str, folder: Path) -> FileProblem:
    """What is said of a value that is neither a name nor a file. A bare word may be a name that a package adds."""
    relative = f"paths are relative to the plan's folder, {folder}"
    of_library = f"a library's model is {', '.join(FORMS)}; {relative}"
    if kind.name == "model" and value in LIBRARIES:
        return FileProblem(f"`model`: {value} is a library, and names none of its models", of_library)
    if kind.rows is not None and not Path(value).suffix and Path(value).name == value:
        what = f"`{kind.name}`: no {kind.name} and no file is called {value}; built-in: {', '.join(kind.choices)}"
        return FileProblem(what, f"{nearest_row(kind, value)}; {relative}")
    names = f"; built-in: {', '.join(kind.choices)}" if kind.choices else ""
    if kind.name == "model" and not Path(value).suffix:
        return FileProblem(f"`model`: no such file: {value}", of_library)
    return FileProblem(f"`{kind.name}`: no such file: {value}{names}", nearest(value, kind.choices) or relative)


def _folder_digest(factor: str, value: str, folder: Path) -> UserFile:
    sizes = {}
    for path in files_under(folder) if factor == "images" else _unlinked(folder):
        if path.is_file():  # not sockets, pipes and broken links
            sizes[path.relative_to(folder).as_posix()] = path.stat().st_size
        if len(sizes) > MOST_FILES:
            raise FileProblem(f"`{factor}`: {value} contains more than {MOST_FILES} files", "check the path")
    total = sum(sizes.values())
    if total == 0:
        raise FileProblem(f"`{factor}`: {value} contains no files")
    digest = hashlib.sha256()
    covers = _add_files(digest, folder, sizes, is_whole=factor == "checkpoint" or total < WHOLE_BYTES)
    if factor == "images" and layout_of(folder) == "tree" and any(map(is_picture, sizes)):
        check_tree(folder, headers=covers == CONTENT)
        for name in classes_without_files(folder):
            digest.update(f"{name}/\n".encode("utf-8", "surrogateescape"))
    return UserFile(folder, digest.hexdigest(), total, covers)


def _unlinked(folder: Path) -> Iterator[Path]:
    """The files of a folder as text and weights are read: links to folders are not followed."""
    for parent, _, names in os.walk(folder, onerror=_raise):
        yield from (Path(parent, name) for name in names)


def _with_weights(model: UserFile, names: Sequence[str]) -> UserFile:
    """An ONNX file together with the files beside it in which its weights lie."""
    if not names:
        return model
    sizes = {name: (model.path.parent / name).stat().st_size for name in names}
    digest = hashlib.sha256(model.sha256.encode())
    covers = _add_files(digest, model.path.parent, sizes, is_whole=True)
    return UserFile(model.path, digest.hexdigest(), model.bytes + sum(sizes.values()), covers)


def _add_files(digest: hashlib._Hash, folder: Path, sizes: Mapping[str, int], *, is_whole: bool) -> str:
    """Adds files of a folder, by name and size, to a digest; returns what it covers of them."""
    for name in sorted(sizes):
        content = sha256_of(folder / name) if is_whole else ""
        digest.update(f"{name}\0{sizes[name]}\0{content}\n".encode("utf-8", "surrogateescape"))
    return CONTENT if is_whole else "names and sizes"


def _raise(error: OSError) -> None:
    raise error
