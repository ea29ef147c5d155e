# SPDX-License-Identifier: Apache-2.0
"""What a site file says: how jobs of one cluster have to be requested. docs/user/clusters.md explains every key.

It is YAML, read as plans are: all problems at once, each with its place and the nearest valid name.
"""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pybench.document import FileKind, Node, parse_text, read_text
from pybench.document.keys import Form, choice, read_table, table, text, texts, truth, variables, whole
from pybench.errors import Problem, SiteError

A_SITE_FILE = FileKind("site file", "`pybench submit --example-site slurm` prints one", SiteError)

# sbatch(1), --time: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]
_TIME = Form(
    re.compile(r"\d+(:[0-5]?\d){0,2}|\d+-\d{1,2}(:[0-5]?\d){0,2}"), "a time of Slurm, such as 01:30:00 or 2-12:00:00"
)
_MEMORY = Form(re.compile(r"\d+[KMGT]?"), "a memory size of Slurm, such as 32G")
_SHA256 = Form(re.compile(r"[0-9a-f]{64}"), "a sha256: 64 hexadecimal digits in lower case")
_REFERENCE = Form(re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}"), "an image by digest: NAME@sha256:64 hexadecimal digits")
_VARIABLE = Form(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), "a name of a variable")
_OPTION = Form(re.compile(r"--[a-z][^\n]*"), "an option of sbatch, such as --gpu-freq=high")
_QUANTITY = Form(re.compile(r"\d+(\.\d+)?(m|[KMGTP]i?)?"), "a quantity of Kubernetes, such as 32Gi or 500m")
_LABEL = Form(re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"), "a name of Kubernetes: lower case, digits, - and .")
_WORD = Form(re.compile(r"[^\x00-\x1f]+"), "one line of text")
_SHELL_PATH = Form(re.compile(r"[^\x00-\x1f\"`]+"), "a path that a shell can expand in quotes")
_ANY_NAME = Form(re.compile(r"[^\x00-\x1f]+"), "one line of text")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteImage:
    """A file (SIF or archive) that `pybench run --container` takes, and the sha256 of its bytes."""

    path: str = text(_WORD)
    sha256: str = text(_SHA256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """Node-local disk. `path` is expanded by the job's shell."""

    path: str = text(_SHELL_PATH, "${SLURM_TMPDIR:-${TMPDIR:-/tmp}}")
    stage_image: bool = truth(default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one task of the array requests; names are those of sbatch's options."""

    time: str = text(_TIME)
    partition: str | None = text(_WORD, None)
    account: str | None = text(_WORD, None)
    qos: str | None = text(_WORD, None)
    constraint: str | None = text(_WORD, None)
    reservation: str | None = text(_WORD, None)
    nodelist: str | None = text(_WORD, None)
    exclude: str | None = text(_WORD, None)
    gres: str | None = text(_WORD, None)
    gpus: str | None = text(_WORD, None)
    cpus_per_task: int | None = whole(1, default=None)
    mem: str | None = text(_MEMORY, None)
    exclusive: bool = truth(default=True)
    export: Literal["NONE", "ALL"] = choice("NONE", "ALL", default="NONE")
    checkpoint_s: int = whole(1, 65535, default=300)
    max_requeues: int = whole(0, default=20)
    throttle: int | None = whole(1, default=None)
    array_max: int = whole(1, default=1000)
    options: tuple[str, ...] = texts(_OPTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What the dependent job requests that settles, checks and reports."""

    time: str = text(_TIME, "00:30:00")
    partition: str | None = text(_WORD, None)
    qos: str | None = text(_WORD, None)
    cpus_per_task: int = whole(1, default=1)
    mem: str = text(_MEMORY, "8G")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSite:
    """A cluster with Slurm."""

    kind: Literal["slurm"] = choice("slurm", default="slurm")
    job: Job = table(Job)
    check: Check = table(Check, Check())
    pybench: str | None = text(_WORD, None)
    prelude: str = text(default="")
    environment: Mapping[str, str] = variables(_VARIABLE, _WORD)
    image: SiteImage | None = table(SiteImage, None)
    scratch: Scratch = table(Scratch, Scratch())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """What one pod of an Indexed Job requests. `directory`: the campaign's, as pods see it on the volume."""

    image: str = text(_REFERENCE)
    volume_claim: str = text(_LABEL)
    mount: str = text(_WORD)
    directory: str = text(_WORD)
    namespace: str | None = text(_LABEL, None)
    cpu: str = text(_QUANTITY)
    memory: str = text(_QUANTITY)
    gpus: int = whole(0, default=0)
    throttle: int | None = whole(1, default=None)
    retries: int = whole(0, default=6)
    checkpoint_s: int = whole(1, default=300)
    deadline_s: int | None = whole(1, default=None)
    service_account: str | None = text(_LABEL, None)
    priority_class: str | None = text(_LABEL, None)
    node_selector: Mapping[str, str] = variables(_ANY_NAME, _WORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSite:
    """A cluster with Kubernetes."""

    kind: Literal["kubernetes"] = choice("kubernetes", default="kubernetes")
    pod: Pod = table(Pod)
    pybench: str = text(_WORD, "pybench")
    environment: Mapping[str, str] = variables(_VARIABLE, _WORD)


Site = SlurmSite | KubernetesSite
_SITES: Mapping[str, type[Site]] = {"slurm": SlurmSite, "kubernetes": KubernetesSite}
KINDS = tuple(_SITES)


def read_site(path: Path) -> Site:
    """Reads and judges a site file. Raises SiteError with every problem, each with its file, line and column."""
    written = read_text(path, A_SITE_FILE)
    _refuse_toml(written, str(path))
    root, found = parse_text(written, str(path), kind=A_SITE_FILE)
    problems = list(found)
    kind = root.children["kind"].plain() if root.children and "kind" in root.children else None
    if root.children is not None and kind not in KINDS:
        what = "`kind` is missing" if kind is None else f"`kind` is {kind!r}"
        problems.append(root.at(("kind",)).place.problem(what, f"one of {', '.join(KINDS)}"))
        raise SiteError(str(path), problems)
    site = read_table(_SITES.get(str(kind), SlurmSite), root, problems)
    if isinstance(site, SlurmSite):
        problems += _clashes(site, root)
    if problems or site is None:
        raise SiteError(str(path), problems)
    return site


def example_site(kind: str = "slurm") -> str:
    """A site file with comments, to start from."""
    return resources.files("pybench.cluster").joinpath(f"example-{kind}.yaml").read_text(encoding="utf-8")


def seconds(time: str) -> int:
    """A time of Slurm in seconds: a lone number is minutes, two are minutes and seconds."""
    days, dash, rest = time.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if dash:  # days-hours:minutes:seconds, of which the last two may be left out
        hours, minutes, last = [*parts, 0, 0][:3]
    else:
        hours, minutes, last = ([0, *parts, 0] if len(parts) == 1 else [0, *parts][-3:])[:3]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + last


def _clashes(site: SlurmSite, root: Node) -> list[Problem]:
    """What is wrong with two keys together."""

    def problem(key: str, what: str, hint: str, table: str = "job") -> Problem:
        return root.key_place((table, key)).problem(what, hint)

    job, found = site.job, []
    if job.gres and job.gpus:
        hint = "keep the option that your site documents"
        found.append(problem("gpus", "`gres` and `gpus` both request GPUs", hint))
    if not job.exclusive and job.mem is None:
        hint = "without it a site may give each task a whole node's memory, and tasks wait for each other"
        found.append(problem("exclusive", "`mem` is missing, which a job that is not exclusive needs", hint))
    if site.scratch.stage_image and site.image is None:
        found.append(problem("stage_image", "`stage_image` has no image to copy", "add `image`", "scratch"))
    if job.checkpoint_s >= seconds(job.time):
        what = f"`checkpoint_s`: {job.checkpoint_s} s before its end, a job of {job.time} has not begun"
        found.append(problem("checkpoint_s", what, "set it to the longest run plus one minute, and raise `time`"))
    return found


# --- TOML, which site files were ------------------------------------------------------------------------------------


def _refuse_toml(written: str, file: str) -> None:
    """Raises SiteError with the same content as YAML where a text is TOML. A site file in YAML never is."""
    try:
        values = tomllib.loads(written.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    if values:
        problem = Problem("is TOML; a site file is YAML")
        raise SiteError(file, [problem], hint=f"write this to a YAML file:\n{_as_yaml(values)}")


def _as_yaml(values: Mapping[str, Any]) -> str:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 10_000  # no line is folded
    yaml.indent(mapping=2, sequence=4, offset=2)
    buffer = io.StringIO()
    yaml.dump(_yaml_value(values), buffer)
    return buffer.getvalue().rstrip("\n")


def _yaml_value(value: Any) -> Any:
    """A value of TOML as site files take it: dates and times are texts, several lines are a block."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    if isinstance(value, Mapping):
        return {key: _yaml_value(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_yaml_value(inner) for inner in value]
    if isinstance(value, bool | int | float):
        return value
    said = str(value)
    if "\n" in said.strip("\n"):
        return LiteralScalarString(said.lstrip("\n"))
    return DoubleQuotedScalarString(said)
