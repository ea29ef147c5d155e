# SPDX-License-Identifier: Apache-2.0
"""What is asked of a user's files before any run: whether runtimes open an ONNX file, and whether weights fit.

Rules of the catalogue first, which cost nothing; then a runtime that takes ONNX files opens it, in a process of its
own. An engine is not built for the question: that takes longer than most people wait.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pybench.case import Case, case_to_json
from pybench.catalogue.runtimes import RUNTIMES, opening
from pybench.errors import InputError, PybenchError, RefusedValue, UnsupportedError
from pybench.launcher import LOCAL, FileAccess, Launcher
from pybench.machine.asking import NOTHING, ask_worker
from pybench.machine.facts import ask, needed_facts
from pybench.machine.support import unsupported

OPENING_TIMEOUT_S = 300.0  # a file of gigabytes from a slow disk
SHA_OF_NOTHING = "0" * 64  # of a file that only has to be told from a built-in model
_WORKLOAD = "infer"
AS_IT_IS = "fp32"  # the precision in which a runtime opens any file as it is

Says = Literal["yes", "no", "not asked"]


@dataclass(frozen=True, slots=True)
class Opening:
    """What one runtime says.

    provider: of a runtime that has several; None: it has one
    says: whether it opens the model
    why: what it said, or why it was not asked
    hint: what to do about a no
    """

    runtime: str
    provider: str | None
    says: Says
    why: str
    hint: str | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def ask_runtimes(path: Path, unfit: str | None = None) -> list[Opening]:
    """One answer for each runtime and provider that takes ONNX files, in the order of the catalogue.

    `unfit`: why no case can have the file; then no runtime is asked.
    """
    cases = list(_cases(path))
    if unfit is not None:
        return [_said(case, "no", unfit) for case in cases]
    facts = ask(needed_facts(cases))
    found = []
    for case in cases:
        refusal = unsupported(case, facts)
        if refusal is not None:
            found.append(_said(case, "no", refusal.message, refusal.hint))
        elif case.runtime_row is not None and case.runtime_row.opens == "onnx":
            found.append(_opened(case, path))
        else:
            found.append(_said(case, "not asked", "it would have to build an engine: a run does"))
    return found


def ask_before_runs(
    cases: Sequence[Case], files: Mapping[str, str], launcher: Launcher = LOCAL
) -> tuple[dict[str, UnsupportedError], list[RefusedValue]]:
    """Case's id -> why its runtime does not take its ONNX file here, and the broken files.

    There is one question for each file, runtime and provider; a file that is broken for one is not asked about again.
    `files`: value of a factor -> absolute path. The runs will tell what a worker cannot answer.
    """
    refused: dict[str, UnsupportedError] = {}
    broken: dict[str | None, RefusedValue] = {}
    asked: dict[tuple[str | None, ...], UnsupportedError | None] = {}
    for case in cases:
        if not _opens_at_once(case) or case.model in broken:
            continue
        question = (case.model, case.runtime, case.provider, case.device)
        if question not in asked:
            try:
                asked[question] = _refusal(case, files, launcher)
            except InputError as error:
                broken[case.model] = refused_value("model", str(case.model), error.message, error.hint, files)
                continue
        if (refusal := asked[question]) is not None:
            refused[case.id] = refusal
    return refused, list(broken.values())


def ask_libraries(cases: Sequence[Case], files: Mapping[str, str], launcher: Launcher = LOCAL) -> list[RefusedValue]:
    """Models that their library does not have, or that cannot be fed.

    Also those that take no images where a case has images, or shorter sequences than a case has, and those that
    continue no text where a case generates.
    Each library is asked once, which takes the seconds of its import. `files`: value of a factor -> absolute path.
    What a worker cannot answer, the making of the model will tell.
    """
    wanted: dict[str, dict[tuple[str, bool], dict[str, Any]]] = {}
    for case in cases:
        if case.library is not None:
            model, cached = str(case.model), case.workload_row.generates
            nothing = {"of_images": False, "seq_len": 0, "new_tokens": 0}
            asked = wanted.setdefault(case.library.name, {}).setdefault(
                (model, cached), {"model": model, "config": files.get(model), "cached": cached, **nothing}
            )
            asked["of_images"] |= case.images is not None
            sizes = case.seq_len, case.new_tokens if cached else 0
            if sum(sizes) > asked["seq_len"] + asked["new_tokens"]:
                asked["seq_len"], asked["new_tokens"] = sizes
    wrong = []
    for library, models in wanted.items():
        folders = {Path(one["config"]).parent for one in models.values() if one["config"] is not None}
        question = {"job": "models", "models": list(models.values())}
        for index, what, hint in _refused(question, f"models of {library}", launcher, folders):
            wrong.append(refused_value("model", list(models)[index][0], what, hint, files))
    return wrong


def ask_weights(cases: Sequence[Case], files: Mapping[str, str], launcher: Launcher = LOCAL) -> list[RefusedValue]:
    """Weights that do not fit their model, by their names and shapes: one question for all.

    `files`: value of a factor -> absolute path. What a worker cannot answer, the making of the model will tell.
    """
    wanted = {
        (case.model, case.checkpoint, case.image_size, *case.shaping().values()): case
        for case in cases
        if case.names_file("checkpoint") and not case.names_onnx
    }
    if not wanted:
        return []
    paths = [files[str(case.checkpoint)] for case in wanted.values()]
    configs = {str(case.model): files[str(case.model)] for case in wanted.values() if case.names_file("model")}
    cases_json = [case_to_json(case) for case in wanted.values()]
    question = {"job": "weights", "cases": cases_json, "paths": paths, "configs": configs}
    folders = {Path(path).parent for path in (*paths, *configs.values())}
    named = [str(case.checkpoint) for case in wanted.values()]
    refused = _refused(question, "whether weights fit", launcher, folders)
    return [refused_value("checkpoint", named[index], what, hint, files) for index, what, hint in refused]


def refused_value(factor: str, value: str, what: str, hint: str | None, files: Mapping[str, str]) -> RefusedValue:
    """With paths as the plan writes them."""
    return RefusedValue(factor, value, what.replace(files.get(value, value), value), hint)


def _refused(
    question: Mapping[str, Any], what: str, launcher: Launcher, folders: Collection[Path]
) -> list[tuple[int, str, str | None]]:
    """Index, fault and hint of what a worker refuses; nothing where it cannot answer."""
    try:
        found = _ask(question, what, launcher, FileAccess(reads=tuple(sorted(folders))))["refused"]
    except PybenchError:
        return []
    return [(one["index"], one["what"], one["hint"]) for one in found]


def _opens_at_once(case: Case) -> bool:
    """Whether the case's runtime opens the user's file itself, without building anything."""
    row = case.runtime_row
    backend = None if row is None else row.backend(case.provider, has_gpu=True)
    return row is not None and row.opens == "onnx" and case.names_onnx and not (backend and backend.builds)


def _refusal(case: Case, files: Mapping[str, str], launcher: Launcher) -> UnsupportedError | None:
    """Raises InputError for a broken file."""
    path = Path(files[str(case.model)])
    question = {"job": "open", "path": str(path), "case": case_to_json(replace(case, precision=AS_IT_IS))}
    try:
        _ask(question, f"{case.runtime}'s opinion of {case.model}", launcher, FileAccess(reads=(path,), onnx=path))
    except UnsupportedError as error:
        return error
    except InputError:
        raise
    except PybenchError:
        return None
    return None


def count_flops(path: Path, fed: Mapping[str, Sequence[int]]) -> int:
    """Floating-point operations of one pass at these sizes of the inputs: convolutions and matrix products.

    Raises PybenchError where they cannot be counted.
    """
    question = {"job": "flops", "path": str(path.absolute()), "fed": {name: list(sizes) for name, sizes in fed.items()}}
    return int(_ask(question, "the operations of the model")["flops"])


def time_pass(path: Path | None, case: Case, fed: Mapping[str, Sequence[int]]) -> float | InputError:
    """Seconds of one pass of a file, or of a built-in model (None), roughly: the best of a few, in the case's runtime.
    Nothing is stored. An error is returned where the runtime opened the file and refused these inputs.

    Raises InputError for a file that the runtime does not open, and PybenchError where it cannot answer.
    """
    question = {
        "job": "time",
        "path": None if path is None else str(path.absolute()),
        "case": case_to_json(case),
        "fed": {name: list(sizes) for name, sizes in fed.items()},
    }
    answer = _ask(question, f"a first pass in {case.runtime}")
    refused = answer.get("refused")
    return float(answer["seconds"]) if refused is None else InputError(refused["what"], hint=refused["hint"])


def time_library(case: Case, config: Path | None) -> float:
    """Seconds of one pass of a library's model in torch on the CPU, roughly, at the case's batch and sequence.

    `config`: the config.json that the case names. Raises InputError for a model that its library does not have or that
    cannot be fed, and PybenchError where a worker cannot answer.
    """
    path = None if config is None else str(config.absolute())
    folders = () if config is None else (config.absolute().parent,)
    question = {"job": "time_library", "case": case_to_json(case), "config": path}
    return float(_ask(question, f"a first pass of {case.model}", access=FileAccess(reads=folders))["seconds"])


def _cases(path: Path) -> Iterator[Case]:
    sources = (("model", SHA_OF_NOTHING),)
    for name in opening("onnx"):
        row = RUNTIMES[name]
        providers: list[str | None] = [backend.name for backend in row.backends]
        for provider in providers or [None]:
            yield Case(workload=_WORKLOAD, model=str(path), runtime=row.name, provider=provider, sources=sources)


def _opened(case: Case, path: Path) -> Opening:
    question = {"job": "open", "path": str(path.absolute()), "case": case_to_json(case)}
    try:
        labels = _ask(question, f"{case.runtime}'s opinion of the file")["labels"]
    except PybenchError as error:
        return _said(case, "no", error.message.replace(str(path.absolute()), path.name), error.hint)
    said = f"{case.runtime} {labels.get('runtime_version', '')} opens it".replace("  ", " ")
    backend = None if case.runtime_row is None else case.runtime_row.backend(case.provider, has_gpu=True)
    if backend is None or not backend.needs_gpu:  # the CPU's takes whatever is left
        return _said(case, "yes", said)
    parts = ", ".join(f"{count} on {name}" for name, count in sorted(labels.get("partitions", {}).items()))
    return _said(case, "yes", f"{said} (parts of the graph: {parts})")


def _said(case: Case, says: Says, why: str, hint: str | None = None) -> Opening:
    return Opening(str(case.runtime), case.provider, says, why, hint)


def _ask(
    question: Mapping[str, Any], what: str, launcher: Launcher = LOCAL, access: FileAccess = NOTHING
) -> dict[str, Any]:
    return ask_worker(launcher, ["--opening", json.dumps(question)], what, timeout_s=OPENING_TIMEOUT_S, access=access)
