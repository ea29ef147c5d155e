# SPDX-License-Identifier: Apache-2.0
"""A case: one cell of the matrix with every factor fixed, and its identity.

Its id is the sha256 of its canonical JSON, in which factors at their default are left out. So adding a factor later
orphans no run, while changing the meaning of a default raises `SCHEMA_VERSION`.

A factor that names a file of the user's (a model, a tokenizer, a corpus, images) is identified by the file's content,
too. `sources` contains the digests, so an edited file is another case.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar

from pybench.case.data import task_of
from pybench.case.factor import Factor
from pybench.case.factors import FACTORS, USUAL, Factors, factor_named, factors_of, idle_factors
from pybench.catalogue.catalogue import BUILT_IN, Catalogue, Row
from pybench.catalogue.code import named_code
from pybench.catalogue.heads import ModelParts
from pybench.catalogue.metrics import Metric
from pybench.catalogue.models import Model
from pybench.catalogue.plugins import Plugin
from pybench.catalogue.runtimes import Runtime
from pybench.catalogue.stored import row_from_json, row_to_json
from pybench.catalogue.workloads import Workload
from pybench.catalogue.zoo import Library, is_named, library_of
from pybench.errors import UnknownNameError

SCHEMA_VERSION = 1
ROWS = "rows"
Derived = TypeVar("Derived")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Factors):
    """Every factor fixed.

    `sources`: (factor, sha256 of the content) for every factor that names a file of the user's.
    `options`: (name, value) of every option of its rows that is not at its default, sorted.
    `catalogue`: the rows that its names are looked up in. It is no part of the id, of equality or of the hash.
    """

    sources: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    catalogue: Catalogue = field(default=BUILT_IN, compare=False, repr=False)
    _derived: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What follows from the factors and was asked for before, such as the id, the idle factors, and all of them."""

    def __post_init__(self) -> None:
        for name, usual in self._usual().items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, usual)
        own = self.catalogue.models.get(self.model or "")
        if self.image_size is not None and own is not None and own.shape[-1:] == (self.image_size,):
            object.__setattr__(self, "image_size", None)  # one case, whether a plan writes the model's own size or not

    def value(self, name: str) -> Any:
        """The value of a factor, or of an option of the case's rows. Raises UnknownNameError for another name."""
        if name in FACTORS:
            return getattr(self, name)
        return dict(self.options).get(name, factor_named(name, self).default)

    def own_factors(self) -> Mapping[str, Factor]:
        """All factors, then the options of the case's rows."""
        if self.catalogue is BUILT_IN:
            return FACTORS
        rows = (self.workload_row, self.runtime_row, self.model_row)
        own = {option.name for row in rows if row is not None for option in row.options}
        known = factors_of(self.catalogue)
        return {name: factor for name, factor in known.items() if name in FACTORS or name in own}

    def factors(self) -> dict[str, Any]:
        """Every factor and option with its value, defaults included, in the order of `FACTORS`."""
        return dict(self.remembered("factors", _factors_of))

    def chosen(self) -> dict[str, Any]:
        """The factors that differ from their default, in the order of `FACTORS`; `sources` last when there are any."""
        return dict(self.remembered("chosen", _chosen_of))

    def _usual(self) -> dict[str, Any]:
        """The defaults that its workload's row has."""
        row = self.catalogue.workloads.get(self.workload)
        return {} if row is None else {name: getattr(row, usual) for name, usual in USUAL.items()}

    def canonical_json(self) -> str:
        """The text whose sha256 is the id: sorted keys, no spaces, defaults left out, with the schema version."""
        return json.dumps(
            {"schema_version": SCHEMA_VERSION, **self.chosen()},
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        )

    @property
    def id(self) -> str:
        """64 hexadecimal digits."""
        return self.remembered("id", _id_of)

    @property
    def idle(self) -> frozenset[str]:
        """Factors that change nothing about the case because of another factor."""
        return self.remembered("idle", idle_factors)

    @property
    def meant(self) -> Mapping[str, Any]:
        """Every factor and option that is not idle, with its value, in the order of `FACTORS`."""
        return self.remembered("meant", _meant_of)

    def remembered(self, name: str, find: Callable[[Case], Derived]) -> Derived:
        """What `find` says of the case, which is asked once. `name`: of what is found, for this case."""
        if name not in self._derived:
            self._derived[name] = find(self)
        found: Derived = self._derived[name]
        return found

    def names_file(self, name: str) -> bool:
        """Whether a factor's value is a file of the user's, and neither built in nor added by a package or library."""
        factor, value = factors_of(self.catalogue)[name], getattr(self, name)
        if factor.kind != "file" or value is None or value in factor.choices:
            return False
        return name != "model" or not is_named(value)

    @property
    def library(self) -> Library | None:
        """The library that builds the case's model; None: none does."""
        return library_of(self.model)

    @property
    def names_onnx(self) -> bool:
        """Whether its model is an ONNX file of the user's."""
        return self.names_file("model") and self.library is None

    @property
    def workload_row(self) -> Workload:
        """What is known of the case's workload. Raises UnknownNameError for one that the catalogue does not have."""
        return self.catalogue.workloads[self.workload]

    @property
    def model_row(self) -> Model | None:
        """What is known of the case's model at its size and shape; None: there is no model, or it is a file of the
        user's."""
        row = self.catalogue.models.get(self.model or "")
        return None if row is None else row.at_size(self.image_size).shaped(self.shaping())

    def shaping(self) -> dict[str, Any]:
        """The factors that the layers of its model follow; empty for models that have none."""
        row = self.catalogue.models.get(self.model or "")
        return {} if row is None else {name: getattr(self, name) for name in row.shaped_by}

    @property
    def parts(self) -> ModelParts | None:
        """What its runtime opens of its model one by one and dispatches; None: the model is opened whole."""
        model, runtime = self.model_row, self.runtime_row
        if model is None or model.parts is None or runtime is None or runtime.parts is None:
            return None
        parts: ModelParts | None = named_code(model.parts)(model.arguments)
        return parts

    @property
    def runtime_row(self) -> Runtime | None:
        """What is known of the case's runtime; None: nothing executes a model. Raises UnknownNameError for one that the
        catalogue does not have."""
        return None if self.runtime is None else self.catalogue.runtimes[self.runtime]

    @property
    def headline(self) -> str | None:
        """The metric that the case is judged by where a plan does not say."""
        row, model = self.workload_row, self.model_row
        task = task_of(self)
        if task is not None:
            return task.headline
        takes_ids = model is None or model.takes_ids
        return row.headline if takes_ids or row.headline_without_ids is None else row.headline_without_ids

    def plugins(self) -> tuple[Plugin, ...]:
        """The packages outside pybench that add rows of the case, each once."""
        return tuple(dict.fromkeys(row.plugin for row in _added_rows(self) if row.plugin is not None))

    def title(self, names: tuple[str, ...] | None = None) -> str:
        """A line for people: the given factors, or all chosen ones but the protocol's, as `value` or `name=value`. What
        shapes a model is always among them. `distinct_titles` tells cases apart that only differ in the protocol."""
        known = [*FACTORS, *(name for name in self.own_factors() if name not in FACTORS)]
        told = {*self.chosen(), *self.shaping()}
        shown = names or tuple(name for name in known if name in told and not factor_named(name, self).protocol)
        return " ".join(_word(name, self.value(name)) for name in shown)

    def with_factors(self, **changes: Any) -> Case:
        """A copy with some factors changed; raises TypeError for a name that is no factor."""
        options = {name: value for name, value in changes.items() if name not in FACTORS and "." in name}
        if not options:
            return replace(self, **changes)
        others = {name: value for name, value in changes.items() if name not in options}
        return replace(self, **others, options=options_of(dict(self.options) | options, self.catalogue))


def _factors_of(case: Case) -> dict[str, Any]:
    found = {name: getattr(case, name) for name in FACTORS}
    return found | {name: case.value(name) for name in case.own_factors() if name not in FACTORS}


def _meant_of(case: Case) -> dict[str, Any]:
    return {name: value for name, value in case.factors().items() if name not in case.idle}


def _chosen_of(case: Case) -> dict[str, Any]:
    defaults = {name: factor.default for name, factor in case.own_factors().items()} | case._usual()
    chosen = {name: value for name, value in case.factors().items() if value != defaults[name]}
    return chosen | ({"sources": dict(case.sources)} if case.sources else {})


def _id_of(case: Case) -> str:
    return hashlib.sha256(case.canonical_json().encode()).hexdigest()


def options_of(values: Mapping[str, Any], catalogue: Catalogue) -> tuple[tuple[str, Any], ...]:
    """Options as a case keeps them: those that are not at their default. Raises UnknownNameError for another name."""
    known = factors_of(catalogue)
    for name in values:
        if name not in known:
            raise UnknownNameError("option", name, [one for one in known if one not in FACTORS])
    return tuple(sorted((name, value) for name, value in values.items() if value != known[name].default))


def _word(name: str, value: object) -> str:
    return str(value) if name == "model" or (name in FACTORS and FACTORS[name].kind == "choice") else f"{name}={value}"


def distinct_titles(cases: Sequence[Case]) -> dict[str, str]:
    """Id of each case -> its title, followed by the factors of the protocol in which cases of one title differ."""
    alike: dict[str, list[Case]] = {}
    for case in cases:
        alike.setdefault(case.title(), []).append(case)
    titles = {}
    for title, group in alike.items():
        differing = [name for name in FACTORS if len({repr(case.value(name)) for case in group}) > 1]
        for case in group:
            titles[case.id] = " ".join([title, *(_word(name, case.value(name)) for name in differing)])
    return titles


def catalogue_of(cases: Iterable[Case]) -> Catalogue:
    """Pybench's own rows with those that any of these cases adds."""
    several = dict.fromkeys(case.catalogue for case in cases)
    return BUILT_IN.with_rows(row for catalogue in several for row in catalogue.added())


def case_to_json(case: Case) -> dict[str, Any]:
    """The stored form: id, schema version, every factor, sources, and the rows of the case that are not pybench's."""
    stored = {"schema_version": SCHEMA_VERSION, "case_id": case.id, **case.factors(), "sources": dict(case.sources)}
    rows = _added_rows(case)
    return {**stored, ROWS: [row_to_json(row) for row in rows]} if rows else stored


def case_from_json(stored: Mapping[str, Any]) -> Case:
    """The inverse of `case_to_json`; factors that are not stored take their default. A stored row counts, whatever this
    pybench has of its name.

    Raises ValueError when the schema version is another, a name is unknown, a row is malformed, or the stored id does
    not fit the factors.
    """
    if stored.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"case of schema version {stored.get('schema_version')}, this pybench reads {SCHEMA_VERSION}")
    beside = ("schema_version", "case_id", "sources", ROWS)
    given = {name: value for name, value in stored.items() if name not in beside}
    rows = stored.get(ROWS) or ()
    catalogue = catalogue_of_rows(rows)
    unknown = set(given) - set(factors_of(catalogue))
    if unknown:
        raise ValueError(f"unknown factors: {', '.join(sorted(unknown))}")
    values = {name: value for name, value in given.items() if name in FACTORS}
    options = options_of({name: value for name, value in given.items() if name not in FACTORS}, catalogue)
    case = Case(
        **values, sources=tuple(sorted(stored.get("sources", {}).items())), options=options, catalogue=catalogue
    )
    if stored.get("case_id", case.id) == case.id:
        return case
    older = case.with_factors(**dict.fromkeys(USUAL))  # before `fed` was a factor of training, it stored false
    if stored["case_id"] != older.id:
        raise ValueError(f"case_id {stored['case_id'][:12]} does not fit its factors ({case.id[:12]})")
    return older


def catalogue_of_rows(stored: Sequence[Mapping[str, Any]]) -> Catalogue:
    """Pybench's own rows with stored ones. Raises ValueError where one is malformed."""
    return _read_catalogue(json.dumps(stored)) if stored else BUILT_IN


def _added_rows(case: Case) -> list[Row]:
    """The rows that the case uses and that pybench itself does not have."""
    if case.catalogue is BUILT_IN:
        return []
    metrics = case.workload_row.metrics()
    names = {case.workload, case.runtime, case.model, *metrics}
    return [row for row in case.catalogue.added() if row.name in names or _is_evaluated(row, metrics)]


def _is_evaluated(row: Row, metrics: Collection[str]) -> bool:
    """Whether a row is of a metric at bounds, which no workload yields by itself but these metrics lead to."""
    return isinstance(row, Metric) and row.is_per_bound and (row.share_of is None or row.share_of in metrics)


@lru_cache(maxsize=64)
def _read_catalogue(rows: str) -> Catalogue:
    """The catalogue of stored rows. Cases of a campaign share theirs: it is made once for each text of rows."""
    return BUILT_IN.with_rows(row_from_json(row) for row in json.loads(rows))
