# SPDX-License-Identifier: Apache-2.0
"""What a site file says: how jobs of one cluster have to be asked for. docs/user/clusters.md explains every key.

pydantic judges the shape; here its findings get the place in the file and the nearest valid name, all at once.
"""

from __future__ import annotations

import difflib
import re
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from pybench.cluster.toml_text import TomlText, read_toml
from pybench.errors import Problem, SiteError

KINDS = ("slurm", "kubernetes")
MAXIMUM_BYTES = 100_000

# sbatch(1), --time: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]
_TIME = re.compile(r"\d+(:[0-5]?\d){0,2}|\d+-\d{1,2}(:[0-5]?\d){0,2}")
_MEMORY = re.compile(r"\d+[KMGT]?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REFERENCE = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPTION = re.compile(r"--[a-z][^\n]*")
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|[KMGTP]i?)?")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def _matching(pattern: re.Pattern[str], what: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise PydanticCustomError("form", "{what}", {"what": f"`{value}` is not {what}"})
        return value

    return AfterValidator(check)


Word = Annotated[str, _matching(re.compile(r"[^\x00-\x1f]+"), "one line of text")]
ShellPath = Annotated[str, _matching(re.compile(r"[^\x00-\x1f\"`]+"), "a path that a shell can expand in quotes")]
Time = Annotated[str, _matching(_TIME, "a time of Slurm's, such as 01:30:00 or 2-12:00:00")]
Memory = Annotated[str, _matching(_MEMORY, "a memory of Slurm's, such as 32G")]
Sha256 = Annotated[str, _matching(_SHA256, "a sha256: 64 hexadecimal digits in lower case")]
Option = Annotated[str, _matching(_OPTION, "an option of sbatch, such as --gpu-freq=high")]
Quantity = Annotated[str, _matching(_QUANTITY, "a quantity of Kubernetes, such as 32Gi or 500m")]
Label = Annotated[str, _matching(_LABEL, "a name of Kubernetes: lower case, digits, - and .")]
Environment = dict[Annotated[str, _matching(_VARIABLE, "a name of a variable")], Word]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Image(_Table):
    """A file (SIF or archive) that `pybench run --container` takes, and what its bytes have to be."""

    path: Word
    sha256: Sha256


class Scratch(_Table):
    """Node-local disk. `path` is expanded by the job's shell."""

    path: ShellPath = "${SLURM_TMPDIR:-${TMPDIR:-/tmp}}"
    stage_image: bool = False


class Job(_Table):
    """What one task of the array asks for; names are those of sbatch's options."""

    time: Time
    partition: Word | None = None
    account: Word | None = None
    qos: Word | None = None
    constraint: Word | None = None
    reservation: Word | None = None
    nodelist: Word | None = None
    exclude: Word | None = None
    gres: Word | None = None
    gpus: Word | None = None
    cpus_per_task: Annotated[int, Field(ge=1)] | None = None
    mem: Memory | None = None
    exclusive: bool = True
    export: Literal["NONE", "ALL"] = "NONE"
    checkpoint_s: Annotated[int, Field(ge=1, le=65535)] = 300
    max_requeues: Annotated[int, Field(ge=0)] = 20
    throttle: Annotated[int, Field(ge=1)] | None = None
    array_max: Annotated[int, Field(ge=1)] = 1000
    options: tuple[Option, ...] = ()


class Check(_Table):
    """What the dependent job asks for that settles, checks and reports."""

    time: Time = "00:30:00"
    partition: Word | None = None
    qos: Word | None = None
    cpus_per_task: Annotated[int, Field(ge=1)] = 1
    mem: Memory = "8G"


class SlurmSite(_Table):
    kind: Literal["slurm"]
    job: Job
    check: Check = Check()
    pybench: Word | None = None
    prelude: str = ""
    environment: Environment = {}
    image: Image | None = None
    scratch: Scratch = Scratch()


class Pod(_Table):
    """What one pod of an Indexed Job asks for. `directory`: the campaign's, as pods see it on the volume."""

    image: Annotated[str, _matching(_REFERENCE, "an image by digest: NAME@sha256:64 hexadecimal digits")]
    volume_claim: Label
    mount: Word
    directory: Word
    namespace: Label | None = None
    cpu: Quantity
    memory: Quantity
    gpus: Annotated[int, Field(ge=0)] = 0
    throttle: Annotated[int, Field(ge=1)] | None = None
    retries: Annotated[int, Field(ge=0)] = 6
    checkpoint_s: Annotated[int, Field(ge=1)] = 300
    deadline_s: Annotated[int, Field(ge=1)] | None = None
    service_account: Label | None = None
    priority_class: Label | None = None
    node_selector: dict[str, Word] = {}


class KubernetesSite(_Table):
    kind: Literal["kubernetes"]
    pod: Pod
    pybench: Word = "pybench"
    environment: Environment = {}


Site = SlurmSite | KubernetesSite


def read_site(path: Path) -> Site:
    """Reads and judges a site file. Raises SiteError with every problem, each with its file, line and column."""
    content = read_toml(_text(path), str(path))
    kind = content.values.get("kind")
    if kind not in KINDS:
        what = f"`kind` is {kind!r}" if "kind" in content.values else "`kind` is missing"
        place = content.place(("kind",))
        raise SiteError(str(path), [Problem(what, place.line, place.column, f"one of {', '.join(KINDS)}")])
    model: type[SlurmSite | KubernetesSite] = SlurmSite if kind == "slurm" else KubernetesSite
    try:
        site = model.model_validate(_tuples(content.values))
    except ValidationError as error:
        problems = [_problem(found, content, model) for found in error.errors(include_url=False)]
        raise SiteError(str(path), problems) from error
    if isinstance(site, SlurmSite) and (clashes := _clashes(site, content)):
        raise SiteError(str(path), clashes)
    return site


def example_site(kind: str = "slurm") -> str:
    """A site file with comments, to start from."""
    return resources.files("pybench.cluster").joinpath(f"example-{kind}.toml").read_text(encoding="utf-8")


def seconds(time: str) -> int:
    """A time of Slurm's in seconds: a lone number is minutes, two are minutes and seconds."""
    days, dash, rest = time.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if dash:  # days-hours:minutes:seconds, of which the last two may be left out
        hours, minutes, last = [*parts, 0, 0][:3]
    else:
        hours, minutes, last = ([0, *parts, 0] if len(parts) == 1 else [0, *parts][-3:])[:3]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + last


def _text(path: Path) -> str:
    def refuse(what: str, hint: str) -> SiteError:
        return SiteError(str(path), [Problem(what, hint=hint)])

    first = "`pybench submit --example-site` prints one to start from"
    try:
        with path.open("rb") as file:
            source = file.read(MAXIMUM_BYTES + 1)
    except (OSError, ValueError) as error:
        raise refuse(f"cannot be read: {getattr(error, 'strerror', None) or error}", first) from error
    if len(source) > MAXIMUM_BYTES:
        raise refuse(f"is larger than {MAXIMUM_BYTES} bytes", "check that this is a site file")
    try:
        return source.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = source[: error.start]
        place = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise SiteError(str(path), [Problem("is not UTF-8", *place, "save the file as UTF-8")]) from error


def _tuples(value: Any) -> Any:
    """Lists as tuples, which strict models take, through all tables."""
    if isinstance(value, dict):
        return {key: _tuples(inner) for key, inner in value.items()}
    return tuple(_tuples(inner) for inner in value) if isinstance(value, list) else value


def _clashes(site: SlurmSite, content: TomlText) -> list[Problem]:
    """What is wrong with two keys together."""

    def problem(key: str, what: str, hint: str, table: str = "job") -> Problem:
        place = content.place((table, key))
        return Problem(what, place.line, place.column, hint)

    job, found = site.job, []
    if job.gres and job.gpus:
        found.append(problem("gpus", "`gres` and `gpus` both request GPUs", "keep the option that your site documents"))
    if not job.exclusive and job.mem is None:
        hint = "without it a site may give each task a whole node's memory, and tasks wait for each other"
        found.append(problem("exclusive", "`mem` is missing, which a job that is not exclusive needs", hint))
    if site.scratch.stage_image and site.image is None:
        found.append(problem("stage_image", "`stage_image` has no image to copy", "add an [image] table", "scratch"))
    if job.checkpoint_s >= seconds(job.time):
        what = f"`checkpoint_s`: {job.checkpoint_s} s before its end, a job of {job.time} has not begun"
        found.append(problem("checkpoint_s", what, "set it to the longest run plus one minute, and raise `time`"))
    return found


def _problem(found: ErrorDetails, content: TomlText, model: type[BaseModel]) -> Problem:
    location = tuple(step for step in found["loc"] if step != "[key]")
    place = content.place(location)
    key = ".".join(str(step) for step in location)
    match found["type"]:
        case "extra_forbidden":
            return Problem(f"unknown key `{key}`", place.line, place.column, _nearest(location, model))
        case "missing":
            return Problem(f"`{key}` is missing", place.line, place.column)
        case "form":
            return Problem(f"`{key}`: {found['ctx']['what']}", place.line, place.column)
        case "string_type":
            return Problem(f"`{key}` takes text; not {found['input']}", place.line, place.column, "put it in quotes")
    return Problem(f"`{key}`: {found['msg']}; not {found['input']!r}", place.line, place.column)


def _nearest(location: tuple[str | int, ...], model: type[BaseModel]) -> str:
    names = _names(location[:-1], model)
    given = str(location[-1]).lower().replace("-", "_")
    close = difflib.get_close_matches(given, names, 1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    tables = [table for table in model.model_fields if given in _names((table,), model)]
    return f"write it in [{tables[0]}]" if tables else f"valid keys here: {', '.join(names)}"


def _names(location: tuple[str | int, ...], model: type[BaseModel]) -> list[str]:
    """The keys of the table at a location; none where that holds free names."""
    for step in location:
        kind = model.model_fields[str(step)].annotation
        kinds = [kind, *getattr(kind, "__args__", ())]
        tables = [one for one in kinds if isinstance(one, type) and issubclass(one, BaseModel)]
        if not tables:
            return []
        model = tables[0]
    return list(model.model_fields)
