# SPDX-License-Identifier: Apache-2.0
"""What is asked about a model before any run: whether a runtime opens it, and how much one pass computes.

`open`: {path, case} -> {providers, partitions, seconds}; a runtime that opens no ONNX file by itself is not asked.
`time`: {path, case, fed} -> {seconds}: the best of a few passes, to plan how long a run has to be. Without a path it is
of a built-in model. {refused}: the file was opened, and does not run on these inputs.
`time_library`: {case, config} -> {seconds}, of a library's model in torch.
`models`: {models: [{model, config, of_images, cached, seq_len, new_tokens}]} -> {refused}: what a library does not
have, and what cannot be fed: at all, with images, or with sequences so long. A model that is `cached` continues text.
`weights`: {cases, paths, configs} -> {refused}: weights that do not fit the model of their case.
In `refused` each one has its index, what is wrong, and a hint.
`flops`: {path, fed} -> {flops}, at the sizes of each input. Each question is a process of its own. So one file that a
runtime dies of ends no other answer, and no more than one of them holds the file.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.case import case_from_json
from pybench.errors import InputError

if TYPE_CHECKING:
    from pybench.runtimes.session import Session

MOST_PASSES, ENOUGH_S = 6, 1.0  # a first look: one pass to warm up, then five, or as many as a second has
LONG_PASS_S = 5.0  # of a model whose first pass takes this long a second pass would tell nothing new


def answer(request: str) -> dict[str, Any]:
    """The answer to one question, which is JSON. Raises what the job raises."""
    question = json.loads(request)
    return {"outcome": "ok", **_JOBS[question["job"]](question)}


def _open(question: dict[str, Any]) -> dict[str, Any]:
    session = _session(question)
    shown = ("runtime_version", "provider", "partitions")
    return {"labels": {name: session.labels[name] for name in shown if name in session.labels}}


def _time(question: dict[str, Any]) -> dict[str, Any]:
    from pybench.measurement.inputs import arrays_of, file_ranges

    session = _session(question)
    shapes = {name: tuple(sizes) for name, sizes in question["fed"].items()}
    inputs = arrays_of(session.inputs, shapes, 0, file_ranges(question["path"] and Path(question["path"])))
    try:
        return {"seconds": _best_of_a_few(lambda: session.run(inputs))}
    except InputError as error:
        return {"refused": {"what": error.message, "hint": error.hint}}


def _time_library(question: dict[str, Any]) -> dict[str, Any]:
    import torch

    from pybench.measurement.inputs import arrays_of, library_ranges
    from pybench.measurement.model import check_longest, specs_of
    from pybench.models.zoo.build import build, inputs_of

    case, config = case_from_json(question["case"]), question["config"] and Path(question["config"])
    feeds = inputs_of(str(case.model), config)
    check_longest(str(case.model), feeds, case.seq_len)
    module = build(str(case.model), config=config, fused=True).module
    sizes = (case.batch, case.seq_len)
    shapes = {
        feed.name: tuple(sizes[place] if size is None else size for place, size in enumerate(feed.shape))
        for feed in feeds.inputs
    }
    arrays = arrays_of(specs_of(feeds), shapes, 0, library_ranges(feeds))
    tensors = [torch.from_numpy(arrays[feed.name]) for feed in feeds.inputs]
    with torch.inference_mode():
        return {"seconds": _best_of_a_few(lambda: module(*tensors))}


def _best_of_a_few(run_once: Callable[[], object]) -> float:
    """Seconds. The first pass allocates and prepares kernels, which may take fifty times as long as the next."""
    from pybench.measure import monotonic_ns, seconds_since

    seconds: list[float] = []
    while len(seconds) < MOST_PASSES and sum(seconds[1:]) < ENOUGH_S and sum(seconds[:1]) < LONG_PASS_S:
        begin_ns = monotonic_ns()
        run_once()
        seconds.append(seconds_since(begin_ns))
    return min(seconds)


def _session(question: dict[str, Any]) -> Session:
    from pybench.measurement.doubts import allowed_threads
    from pybench.measurement.model import open_model
    from pybench.measurement.result import RunRequest

    case = case_from_json(question["case"])
    if question["path"] is None:
        return open_model(RunRequest(case, block=0, attempt=0, seed=0, artefacts={}, files={})).session
    row = case.runtime_row
    if row is None:
        raise ValueError("the case has no runtime")
    open_case = importlib.import_module(row.module).open_case
    session: Session = open_case(Path(question["path"]), None, case, allowed_threads(case), deterministic=False)
    return session


def _flops(question: dict[str, Any]) -> dict[str, Any]:
    from pybench.precision.flops import count_flops

    fed = {name: tuple(sizes) for name, sizes in question["fed"].items()}
    return {"flops": sum(count_flops(Path(question["path"]), 1, 1, fed).values())}


def _models(question: dict[str, Any]) -> dict[str, Any]:
    from pybench.measurement.model import check_longest, specs_of
    from pybench.measurement.supply import shape_of_images_for
    from pybench.models.zoo.build import inputs_of

    def ask(one: dict[str, Any]) -> None:
        config = None if one["config"] is None else Path(one["config"])
        feeds = inputs_of(one["model"], config, cached=one["cached"])
        if one["of_images"]:
            shape_of_images_for(one["model"], specs_of(feeds))
        check_longest(one["model"], feeds, one["seq_len"], one["new_tokens"])

    return {"refused": _refused(ask, question["models"])}


def _weights(question: dict[str, Any]) -> dict[str, Any]:
    from pybench.models import building
    from pybench.models.zoo.build import build

    def ask(given: tuple[Any, str]) -> None:
        case, path = case_from_json(given[0]), Path(given[1])
        if case.model_row is not None:
            building.check_weights(case.model_row, path)
        elif case.library is not None:
            config = question["configs"].get(str(case.model))
            build(str(case.model), config=None if config is None else Path(config), weights=path)

    return {"refused": _refused(ask, list(zip(question["cases"], question["paths"], strict=True)))}


def _refused(ask: Callable[[Any], None], asked: Sequence[Any]) -> list[dict[str, Any]]:
    """What is an error of the user's, of several things that are asked for."""
    refused = []
    for index, one in enumerate(asked):
        try:
            ask(one)
        except InputError as error:
            refused.append({"index": index, "what": error.message, "hint": error.hint})
    return refused


_JOBS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "open": _open,
    "time": _time,
    "time_library": _time_library,
    "flops": _flops,
    "models": _models,
    "weights": _weights,
}
