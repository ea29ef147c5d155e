# SPDX-License-Identifier: Apache-2.0
"""A case: one cell of the matrix with every factor fixed, and its identity.

Its id is the sha256 of its canonical JSON, in which factors at their default are left out: adding a factor later
orphans no run, while changing the meaning of a default raises `SCHEMA_VERSION`.

A factor that names a file of the user's (a model, a tokenizer, a corpus, images) is identified by that file's content
as well: `sources` holds the digests, so an edited file is another case.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pybench.case.factors import FACTORS, Factors
from pybench.catalogue.models import MODELS, Model
from pybench.catalogue.runtimes import RUNTIMES, Runtime
from pybench.catalogue.workloads import WORKLOADS, Workload

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Factors):
    """Every factor fixed.

    `sources`: (factor, sha256 of the content) for every factor that names a file of the user's.
    """

    sources: tuple[tuple[str, str], ...] = ()

    def factors(self) -> dict[str, Any]:
        """Every factor with its value, defaults included, in the order of `FACTORS`."""
        return {name: getattr(self, name) for name in FACTORS}

    def chosen(self) -> dict[str, Any]:
        """The factors that differ from their default, in the order of `FACTORS`; `sources` last when there are any."""
        stored = {name: value for name, value in self.factors().items() if value != FACTORS[name].default}
        if self.sources:
            stored["sources"] = dict(self.sources)
        return stored

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
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()

    @property
    def workload_row(self) -> Workload:
        """What is known of the case's workload. Raises UnknownNameError for one that the catalogue does not have."""
        return WORKLOADS[self.workload]

    @property
    def model_row(self) -> Model | None:
        """What is known of the case's model; None: there is no model, or it is a file of the user's."""
        return MODELS.get(self.model or "")

    @property
    def runtime_row(self) -> Runtime | None:
        """What is known of the case's runtime; None: nothing executes a model."""
        return None if self.runtime is None else RUNTIMES[self.runtime]

    def title(self, names: tuple[str, ...] | None = None) -> str:
        """A line for people: the given factors, or all chosen ones but the protocol's, as `value` or `name=value`."""
        shown = names or tuple(name for name in self.chosen() if name in FACTORS and not FACTORS[name].protocol)
        return " ".join(_word(name, getattr(self, name)) for name in shown)

    def with_factors(self, **changes: Any) -> Case:
        """A copy with some factors changed; raises TypeError for a name that is no factor."""
        return replace(self, **changes)


def runs_of(case: Case, repetitions: int) -> int:
    """How often a campaign of so many repetitions runs a case."""
    most = case.workload_row.most_runs
    return repetitions if most is None else min(repetitions, most)


def _word(name: str, value: Any) -> str:
    return str(value) if FACTORS[name].kind == "choice" or name == "model" else f"{name}={value}"


def case_to_json(case: Case) -> dict[str, Any]:
    """The stored form: id, schema version, every factor, sources."""
    return {"schema_version": SCHEMA_VERSION, "case_id": case.id, **case.factors(), "sources": dict(case.sources)}


def case_from_json(stored: Mapping[str, Any]) -> Case:
    """The inverse of `case_to_json`; factors that are not stored take their default.

    Raises ValueError when the schema version is another, a name is unknown, or the stored id does not fit the factors.
    """
    if stored.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"case of schema version {stored.get('schema_version')}, this pybench reads {SCHEMA_VERSION}")
    values = {name: value for name, value in stored.items() if name not in ("schema_version", "case_id", "sources")}
    unknown = set(values) - set(FACTORS)
    if unknown:
        raise ValueError(f"unknown factors: {', '.join(sorted(unknown))}")
    case = Case(**values, sources=tuple(sorted(stored.get("sources", {}).items())))
    if "case_id" in stored and stored["case_id"] != case.id:
        raise ValueError(f"case_id {stored['case_id'][:12]} does not fit its factors ({case.id[:12]})")
    return case
