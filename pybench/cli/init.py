# SPDX-License-Identifier: Apache-2.0
"""`pybench init`."""

from __future__ import annotations

import re
import shlex
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from pybench.cli.show import say
from pybench.errors import UsageError
from pybench.words import is_utf_8

LONGEST_NAME = 64  # characters, as the plan's schema has it


def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Where to write it.")] = Path("plan.yaml"),
) -> None:
    """Write a first plan, with comments.

    Its campaign is named after the file. An existing file is never overwritten.
    """
    target = path / "plan.yaml" if path.is_dir() else path
    if not is_utf_8(target):
        raise UsageError(f"{target}: its path is not UTF-8", hint="give another name")
    name = _campaign_name(target)
    text = resources.files("pybench.plan").joinpath("starter.yaml").read_text(encoding="utf-8")
    try:
        with open(target, "x", encoding="utf-8") as file:
            file.write(text.replace("PLAN", shlex.quote(str(target))).replace("NAME", name))
    except FileExistsError as error:
        raise UsageError(
            f"{target} exists, and `pybench init` does not overwrite files", hint="give another name"
        ) from error
    except OSError as error:
        is_absent = isinstance(error, FileNotFoundError | NotADirectoryError)
        hint = f"give a name in a folder that {'exists' if is_absent else 'can be written to'}"
        raise UsageError(f"cannot write {target}: {error.strerror}", hint=hint) from error
    print(target)
    say(f"next: pybench run {shlex.quote(str(target))}, then pybench report results/{name}")


def _campaign_name(path: Path) -> str:
    """The file's name without its ending, as far as a campaign may be called so."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem)[:LONGEST_NAME].strip("-._") or "campaign"
