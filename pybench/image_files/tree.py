# SPDX-License-Identifier: Apache-2.0
"""A folder of class folders, as torchvision's ImageFolder reads it: `root/<class>/**/<picture>`.

With `train` beside `val` in it, each has class folders of its own, and those of `train` number the classes of both.
`classes.txt` names all classes that a model tells apart, one a line, in the order of its outputs: a part of ImageNet
keeps ImageNet's numbers. Folders whose names begin with a dot are those of tools, and no part of a tree.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pybench.errors import InputError
from pybench.image_files.header import check_picture
from pybench.image_files.layout import SPLITS

EXTENSIONS = frozenset({".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})
CLASSES_FILE = "classes.txt"


@dataclass(frozen=True, slots=True)
class ImageTree:
    """Pictures in one folder for each class.

    base: the folder of the class folders
    classes: names, whose numbers are labels
    pictures: (label, file), in the order of the classes' folders and, in each, of the names
    """

    base: Path
    classes: tuple[str, ...]
    pictures: tuple[tuple[int, Path], ...]


def is_picture(name: str) -> bool:
    """Whether a file is one by its ending."""
    return Path(name).suffix.lower() in EXTENSIONS


def files_under(folder: Path, above: tuple[str, ...] = ()) -> Iterator[Path]:
    """Whatever is no folder, at any depth, also behind links to folders, but in no hidden folder. What is read of
    images and what is digested are thus the same. `above`: the real paths of the folders in which it is. Raises
    OSError for a folder that cannot be read, and InputError for a link to one of those above: it has no end."""
    real = os.path.realpath(folder)
    if real in above:
        raise InputError(f"{folder} is a link to a folder that contains it", hint="remove the link")
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir():
                yield Path(entry.path)
            elif not _is_hidden(entry.name):
                yield from files_under(Path(entry.path), (*above, real))


def has_splits(root: Path) -> bool:
    """Whether a folder is laid out as ImageNet is: `train` beside `val`, or another name of it."""
    return _split_folder(root, "train") is not None and _split_folder(root, "validation") is not None


def read_tree(root: Path, split: str) -> ImageTree:
    """`split`, `train` or `validation`, chooses where there are both; else they are the same pictures. Raises
    InputError for a folder that tells no two classes apart, has one that nothing numbers, or contains no pictures."""
    base, names = _base(root, split), _class_names(root)
    numbers = {name: number for number, name in enumerate(names)}
    folders = _class_folders(base)
    strange = next((folder.name for folder in folders if folder.name not in numbers), None)
    if strange is not None and _listed_classes(root):
        raise InputError(f"{root / CLASSES_FILE} does not name the folder {strange}", hint="one name a line")
    if strange is not None:
        raise InputError(
            f"{base} has the class folder {strange}, which {_base(root, 'train')} lacks",
            hint=f"give both the same class folders, or name all classes in {CLASSES_FILE} next to train/ and val/",
        )
    pictures = tuple((numbers[folder.name], path) for folder in folders for path in _pictures_in(folder))
    if not pictures:
        raise InputError(f"{base} contains no images", hint=f"known endings: {' '.join(sorted(EXTENSIONS))}")
    return ImageTree(base, names, pictures)


def check_tree(root: Path, *, headers: bool) -> None:
    """Raises InputError for the first thing that keeps a tree from being read. `headers`: of all pictures, too, which
    takes some 0.1 ms for each."""
    for split in ("train", "validation") if has_splits(root) else ("validation",):
        tree = read_tree(root, split)
        for _, path in tree.pictures if headers else ():
            check_picture(path)


def classes_without_files(root: Path) -> list[str]:
    """Class folders, inside `root`, whose names alone number those after them, as no file tells that they are there."""
    if _listed_classes(root):
        return []
    folders = _class_folders(_base(root, "train"))
    empty = [folder for folder in folders if not any(path.is_file() for path in files_under(folder))]
    return [folder.relative_to(root).as_posix() for folder in empty]


def count_training(root: Path, most: int) -> int:
    """How many pictures of a tree train; no more are counted when there are `most`, as ImageNet has a million."""
    count = 0
    for folder in _class_folders(_base(root, "train")):
        count += len(_pictures_in(folder))
        if count >= most:
            break
    return count


def _class_names(root: Path) -> tuple[str, ...]:
    """Whose numbers are labels, in both splits."""
    base, listed = _base(root, "train"), _listed_classes(root)
    names = listed or tuple(folder.name for folder in _class_folders(base))
    if len(names) == 1:
        raise InputError(
            f"{base} has one class folder, {names[0]}, and images are told apart by two classes or more",
            hint=f"lay images out as folder/<class>/<image>, or name all classes in {CLASSES_FILE}",
        )
    if len(set(names)) < len(names):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise InputError(f"{root / CLASSES_FILE} names {twice} twice", hint="give each class a name of its own")
    return names


def _listed_classes(root: Path) -> tuple[str, ...]:
    try:
        lines = (root / CLASSES_FILE).read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{root / CLASSES_FILE} cannot be read ({error})") from error
    return tuple(line.strip() for line in lines if line.strip())


def _base(root: Path, split: str) -> Path:
    """The folder of the class folders of a split. Raises InputError for a split without the other, whose classes would
    be taken for one class. A folder of pictures alone is a class, such as a train among other vehicles."""
    found = {name: folder for name in SPLITS if (folder := _split_folder(root, name)) is not None}
    if len(found) == len(SPLITS):
        return found[split]
    for folder in found.values():
        if _folders_in(folder):
            [other] = SPLITS.keys() - found.keys()
            raise InputError(
                f"{root} has {folder.name}/ but no {' or '.join(f'{name}/' for name in SPLITS[other])}",
                hint=f"put both into it, give {folder} instead, or rename {folder.name}/ if it is a class",
            )
    return root


def _split_folder(root: Path, split: str) -> Path | None:
    return next((root / name for name in SPLITS[split] if (root / name).is_dir()), None)


def _class_folders(root: Path) -> list[Path]:
    folders = _folders_in(root)
    if not folders:
        raise InputError(f"{root} contains no class folders", hint="lay images out as folder/<class>/<image>")
    return folders


def _folders_in(root: Path) -> list[Path]:
    try:
        entries = sorted(entry for entry in root.iterdir() if not _is_hidden(entry.name))
    except OSError as error:
        raise InputError(f"{root} is not a readable folder ({error.strerror})") from error
    _check_links(entries)
    return [entry for entry in entries if entry.is_dir()]


def _pictures_in(folder: Path) -> list[Path]:
    try:
        files = sorted(files_under(folder))
    except OSError as error:
        raise InputError(f"{error.filename} is not a readable folder ({error.strerror})") from error
    _check_links(path for path in files if not (is_picture(path.name) or _is_hidden(path.name)))
    return [path for path in files if is_picture(path.name)]


def _check_links(paths: Iterable[Path]) -> None:
    """Raises InputError for a link to what is not here: in a container, or on another machine, it may have been a
    folder of pictures, which would be passed over. A missing picture is found as it is read."""
    lost = next((path for path in paths if path.is_symlink() and not path.exists()), None)
    if lost is not None:
        what = f"{lost} is a link to {lost.readlink()}, which is not here"
        raise InputError(what, hint="copy what it leads to into its place, or remove the link")


def _is_hidden(name: str) -> bool:
    """Whether a folder or a link is a tool's, such as .ipynb_checkpoints with copies of pictures that were opened."""
    return name.startswith(".")
