# SPDX-License-Identifier: Apache-2.0
"""The search of nodes that stay in FP32, on files that the quantisers write, against all sets of nodes there are."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from pybench import artefacts
from pybench.artefacts.samples import CalibrationSamples
from pybench.artefacts.stored_trials import FILE
from pybench.campaign.recipe import Recipe, in_making_order, recipes_of
from pybench.case import Case
from pybench.errors import InputError
from pybench.measurement.result import Result
from pybench.precision import int8
from pybench.precision.execution import compare
from pybench.precision.keeping import search
from pybench.precision.notes import read_notes
from tests.artefacts.test_precisions import made
from tests.precision import graphs
from tests.support.making import store
from tests.workloads.test_sensitivity import fragile

DIGITS = Case(
    workload="infer", model="digits-cnn", runtime="onnxruntime", precision="int8", calibration_images=20,
    quantiser="pybench",
)  # fmt: skip
QUANTISERS = ["pybench", "onnxruntime"]


def searched(case: Case, folder: Path, files: dict[str, Path] | None = None) -> tuple[Result, dict[str, Any]]:
    """The search of a case, made here, and what its file says."""
    recipe = dict(recipes_of(case)["model"].needs)["kept"]
    result = artefacts.make(recipe.as_json(), inputs_of(recipe, files), files or {}, folder)
    content: dict[str, Any] = json.loads((folder / recipe.file).read_text())
    return result, content


def inputs_of(recipe: Recipe, files: dict[str, Path] | None) -> dict[str, Path]:
    for needed in in_making_order(dict(recipe.needs)):
        place = store() / needed.digest
        if not (place / needed.file).exists():
            place.mkdir(exist_ok=True)
            sources = {name: store() / each.digest / each.file for name, each in needed.needs}
            artefacts.make(needed.as_json(), sources, files or {}, place)
    return {role: store() / needed.digest / needed.file for role, needed in recipe.needs}


@pytest.mark.parametrize("quantiser", QUANTISERS)
def test_it_keeps_as_few_nodes_as_the_smallest_of_all_sets(
    quantiser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every set is quantised and run by the same function as the search's."""
    errors: dict[frozenset[str], float] = {}

    def exhaustive(units: Any, run: Any, error_max: float) -> Any:
        for size in range(len(units)):
            for some in combinations(units, size):
                names = frozenset(unit.name for unit in some)
                errors[names] = run(frozenset().union(*(unit.nodes for unit in some))).signal_error
        return search(units, run, error_max)

    monkeypatch.setattr("pybench.artefacts.kept.search", exhaustive)
    case = DIGITS.with_factors(quantiser=quantiser, keep_error_max=0.0075)
    result, content = searched(case, tmp_path)
    assert len(errors) == 2**4 - 1
    meeting = [names for names, error in errors.items() if error <= 0.0075]
    assert frozenset(content["found"]) in meeting
    assert len(content["found"]) == min(map(len, meeting)) > 0
    tried = {frozenset(trial["kept"]) for trial in content["trials"]}
    assert {frozenset(content["found"]) - {name} for name in content["found"]} <= tried - set(meeting)
    for trial in content["trials"]:
        assert trial["signal_error"] == errors[frozenset(trial["kept"])]
    assert result.labels["kept_search"]["after"]["signal_error"] == errors[frozenset(content["found"])]


@pytest.mark.parametrize("quantiser", QUANTISERS)
def test_a_layer_made_fragile_is_what_stays(quantiser: str, tmp_path: Path) -> None:
    files = {"model": fragile(tmp_path / "fragile.onnx", "b1")}
    case = Case(
        workload="infer", model="fragile.onnx", runtime="onnxruntime", precision="int8", quantiser=quantiser,
        granularity="tensor", calibration_images=20, keep_error_max=0.2, sources=(("model", "b1" * 32),),
    )  # fmt: skip
    result, content = searched(case, tmp_path, files)
    found = result.labels["kept_search"]
    assert found["kept"] == content["found"] == ["b1"]
    assert found["before"]["signal_error"] > 0.5
    assert found["after"]["signal_error"] < 0.2
    assert next(iter(found["alone"])) == "b1"
    assert found["samples"] == 20
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["fragile.onnx", "kept.json"]


@pytest.mark.parametrize("quantiser", QUANTISERS)
def test_the_file_is_the_one_that_a_keep_list_of_these_nodes_gives(quantiser: str, tmp_path: Path) -> None:
    case = DIGITS.with_factors(quantiser=quantiser, keep_error_max=0.0075)
    (tmp_path / "named").mkdir()
    result, path = made(case, tmp_path)
    names = read_notes(path).kept or result.labels["kept"]
    assert names
    named, other = made(case.with_factors(keep_error_max=None, keep_fp32="|".join(names)), tmp_path / "named")
    assert path.read_bytes() == other.read_bytes()
    assert named.labels["kept"] == result.labels["kept"]
    assert result.valid["precision"].value is True


@pytest.mark.parametrize(("precision", "bound"), [("fp8", 0.05), ("fp8+fp16", 0.05), ("int8+fp16", 0.0075)])
def test_other_types_are_searched_too(precision: str, bound: float, tmp_path: Path) -> None:
    case = DIGITS.with_factors(precision=precision, keep_error_max=bound)
    before = searched(case.with_factors(keep_error_max=1.0), tmp_path)[0].labels["kept_search"]["after"]
    found = searched(case, tmp_path)[0].labels["kept_search"]
    assert found["after"]["signal_error"] <= bound
    assert (found["after"] == before) == (before["signal_error"] <= bound) == (found["kept"] == [])


def test_nodes_that_the_plan_names_are_kept_beside_those_that_are_found(tmp_path: Path) -> None:
    free = searched(DIGITS.with_factors(keep_error_max=0.0075), tmp_path)[1]
    other = next(name for name in free["signal_error_alone"] if name not in free["found"])
    content = searched(DIGITS.with_factors(keep_error_max=0.0075, keep_fp32=other), tmp_path)[1]
    assert other in content["kept"]
    assert other not in {*content["found"], *content["signal_error_alone"]}


def test_equal_recipes_give_equal_searches_of_samples_that_do_not_judge(tmp_path: Path) -> None:
    case = DIGITS.with_factors(keep_error_max=0.0075)
    first, second = (searched(case, tmp_path) for _ in range(2))
    assert first[1] == second[1]
    assert first[0].labels["kept_search"]["held_out"] is True


@pytest.mark.parametrize("quantiser", QUANTISERS)
def test_a_search_that_was_ended_goes_on_and_finds_the_same(
    quantiser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    recipe = dict(recipes_of(DIGITS.with_factors(quantiser=quantiser, keep_error_max=0.0075))["model"].needs)["kept"]
    whole, unfinished = making(recipe, tmp_path / "whole"), tmp_path / "unfinished"
    trials = json.loads(whole)["trials"]
    done: list[Any] = []
    most = [3]

    def compared(*values: Any) -> Any:
        if len(done) == most[0]:
            raise KeyboardInterrupt
        done.append(values)
        return compare(*values)

    monkeypatch.setattr("pybench.artefacts.kept.compare", compared)
    with pytest.raises(KeyboardInterrupt):
        making(recipe, tmp_path / "ended", unfinished)
    with open(unfinished / FILE, "a") as file:
        file.write('{"kept": ["half')  # of a line
    capfd.readouterr()
    done.clear()
    most[0] = len(trials)
    assert making(recipe, tmp_path / "continued", unfinished) == whole
    assert len(done) == len(trials) - 2  # with nothing kept the graph is run again, for its units
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "goes on from 2 trials of an earlier search"
    assert said[1] == f"trial 1: signal error {trials[0]['signal_error']:.3g}, 0 nodes kept"
    assert len(said) == 1 + len(trials)


def test_trials_of_another_version_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = dict(recipes_of(DIGITS.with_factors(keep_error_max=0.0075))["model"].needs)["kept"]
    whole = making(recipe, tmp_path / "first", tmp_path)
    smaller = (tmp_path / FILE).read_text().replace('"signal_error": 0.0', '"signal_error": 0.00')
    (tmp_path / FILE).write_text(smaller)
    assert making(recipe, tmp_path / "same", tmp_path) != whole
    others = (tmp_path / FILE).read_text().replace('"cosine"', '"sine"')
    (tmp_path / FILE).write_text(others)
    assert making(recipe, tmp_path / "fields", tmp_path) == whole
    (tmp_path / FILE).write_text(smaller)
    monkeypatch.setattr("pybench.artefacts.kept.__version__", "0.2")
    assert making(recipe, tmp_path / "other", tmp_path) == whole


def making(recipe: Recipe, folder: Path, unfinished: Path | None = None) -> str:
    """The content of kept.json."""
    folder.mkdir()
    artefacts.make(recipe.as_json(), inputs_of(recipe, {}), {}, folder, unfinished=unfinished)
    return (folder / recipe.file).read_text()


def test_a_bound_that_cannot_be_met_says_what_was_reached(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"signal error is 0\.00\d+ with at most one of 4 nodes quantised") as raised:
        searched(DIGITS.with_factors(keep_error_max=0.0001), tmp_path)
    assert "raise keep_error_max" in str(raised.value.hint)
    assert list(tmp_path.iterdir()) == []


def test_one_sample_tells_no_signal(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is one sample"):
        searched(DIGITS.with_factors(keep_error_max=0.1, calibration_images=1), tmp_path)


def test_of_large_outputs_fewer_samples_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = DIGITS.with_factors(keep_error_max=0.0075, calibration_images=30)
    assert searched(case, tmp_path)[0].labels["kept_search"]["samples"] == 30
    monkeypatch.setattr("pybench.artefacts.kept.SEARCHED_VALUES", 20 * 10)  # ten classes a sample
    assert searched(case, tmp_path)[0].labels["kept_search"]["samples"] == 20


def test_samples_are_not_read_for_each_trial_of_onnxruntime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, item = [], CalibrationSamples.__getitem__

    def counted(samples: CalibrationSamples, index: int | slice) -> Any:
        if isinstance(index, int):
            read.append(index)
        return item(samples, index)

    monkeypatch.setattr(CalibrationSamples, "__getitem__", counted)
    result, _ = searched(DIGITS.with_factors(quantiser="onnxruntime", keep_error_max=0.0075), tmp_path)
    assert result.labels["kept_search"]["trials"] > 4 >= max(map(read.count, read))


def test_a_search_is_shared_by_workloads_and_batches_and_absent_from_other_recipes() -> None:
    case = DIGITS.with_factors(keep_error_max=0.01)
    others = [case.with_factors(batch=7), case.with_factors(workload="accuracy", images="digits")]
    digests = {dict(recipes_of(one)["model"].needs)["kept"].digest for one in (case, *others)}
    assert len(digests) == 1
    assert "kept" not in dict(recipes_of(DIGITS)["model"].needs)
    assert "keep_error_max" not in dict(recipes_of(DIGITS)["model"].parameters)


def test_ranges_that_were_kept_give_the_same_file(tmp_path: Path) -> None:
    source = graphs.saved(graphs.residual_block(), tmp_path / "block.onnx")
    feeds = [graphs.images((4, 3, 8, 8), seed) for seed in range(3)]
    for method in ("minmax", "percentile"):
        paths = [tmp_path / f"{method}{number}.onnx" for number in range(3)]
        int8.quantise(source, paths[0], method, feeds, {})
        for path in paths[1:]:  # the first of these finds the ranges
            int8.quantise(source, path, method, feeds, {}, ranges=tmp_path / f"{method}.json")
        assert paths[0].read_bytes() == paths[1].read_bytes() == paths[2].read_bytes()
