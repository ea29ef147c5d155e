# SPDX-License-Identifier: Apache-2.0
"""The machine that a campaign runs on, as the campaign sees it: what it can do with a case, and what it does for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self

from pybench.campaign.environments import KnownEnvironment, PlannedEnvironment
from pybench.campaign.recipe import Recipe, recipes_of
from pybench.case import Case
from pybench.errors import RefusedValue, RefusedValuesError, UnsupportedError
from pybench.launcher import LOCAL, Container, Launcher
from pybench.machine.environments import Environment, open_environments, open_quietly
from pybench.machine.estimate import CampaignEstimate, estimate
from pybench.machine.facts import ENERGY, Facts, ask, needed_facts
from pybench.machine.opening import ask_before_runs, ask_libraries, ask_weights, refused_value
from pybench.machine.profiles import Profile
from pybench.machine.sensor import Board, boards_of, measure_profile
from pybench.machine.support import gpus_of, platform_of, refuse_changed, unsupported, why_no_energy


@dataclass(frozen=True)
class Machine:
    """One machine. A container on it is another machine: its launcher starts workers there, and its facts differ."""

    facts: Facts
    """What a worker told about the machine and the packages that the cases need."""
    launcher: Launcher = LOCAL
    """What starts workers."""
    refused: Mapping[str, UnsupportedError] = field(default_factory=dict)
    """Case's id -> why its runtime does not take its ONNX file."""
    environments: Mapping[str, Environment] = field(default_factory=dict)
    """Those of the plan that the cases name."""

    @classmethod
    def ask(
        cls,
        cases: Sequence[Case],
        launcher: Launcher = LOCAL,
        planned: Mapping[str, PlannedEnvironment] = MappingProxyType({}),
        open_image: Callable[[str], Container] = open_quietly,
    ) -> Self:
        """Asks a worker for the facts that these cases need, in each environment that they name.

        `planned` and `open_image` are as of `open_environments`. Raises what that and `pybench.machine.facts.ask`
        raise, and UsageError where a package that adds rows of a case has changed."""
        own = _in_environment(None, cases)
        facts = ask(needed_facts(own), launcher)
        environments = open_environments(cases, planned, facts["machine"]["native_build_id"], open_image)
        refuse_changed(own, facts)
        return cls(facts, launcher, environments=environments)

    def facts_in(self, environment: str | None) -> Facts:
        """What was told in an environment; None: in that of pybench itself."""
        return self.facts if environment is None else self.environments[environment].facts

    def launcher_in(self, environment: str | None) -> Launcher:
        """What starts workers in an environment; None: in that of pybench itself."""
        return self.launcher if environment is None else self.environments[environment].launcher

    def known_environments(self) -> dict[str, KnownEnvironment]:
        """What the environments have installed, by their names."""
        return {name: one.known for name, one in self.environments.items()}

    def asked_too(self, cases: Sequence[Case]) -> Self:
        """This machine with the facts that these cases need, too. A worker is asked only for those that are not known:
        it imports frameworks, which takes seconds. Raises what `ask` raises."""
        missing = [name for name in needed_facts(cases) if name not in self.facts]
        facts = {**self.facts, **ask(missing, self.launcher)}
        refuse_changed(cases, facts)
        return replace(self, facts=facts)

    def with_sensors(self) -> Self:
        """This machine with the facts of everything that measures energy, too. Raises what `ask` raises."""
        missing = [name for name in ENERGY if name not in self.facts]
        return replace(self, facts={**self.facts, **ask(missing, self.launcher)})

    def open_files(self, cases: Sequence[Case], pending: Collection[str], files: Mapping[str, str]) -> Self:
        """This machine after its runtimes were asked for the users' ONNX files of these cases.

        Libraries were asked for their models, too. Of the cases only the pending ones (their ids) were asked for.
        `files`: value of a factor -> absolute path.

        Raises RefusedValuesError for broken files, for models that their library does not have or that cannot be fed,
        and for weights that do not fit. It is also raised where every case that could run is refused."""
        runnable = [case for case in cases if self.unsupported(case) is None]
        asked = [case for case in runnable if case.id in pending]
        wrong: list[RefusedValue] = []
        refused: dict[str, UnsupportedError] = {}
        for name in dict.fromkeys(case.environment for case in asked):
            inside, launcher = _in_environment(name, asked), self.launcher_in(name)
            wrong += ask_libraries(inside, files, launcher)
            unknown = {one.value for one in wrong}
            wrong += ask_weights([case for case in inside if case.model not in unknown], files, launcher)
            refused_here, broken = ask_before_runs(inside, files, launcher)
            refused |= refused_here
            wrong += broken
        if wrong:
            raise RefusedValuesError(list(dict.fromkeys(wrong)))
        if refused and len(refused) == len(runnable):
            raise RefusedValuesError(_first_of_each(runnable, refused, files))
        return replace(self, refused=refused)

    def unsupported(self, case: Case) -> UnsupportedError | None:
        """None when the case can run here, else why not and what to do."""
        return unsupported(case, self.facts_in(case.environment)) or self.refused.get(case.id)

    def why_no_energy(self, case: Case) -> str | None:
        """Why no sensor here measures the energy that a case is about; None: one does. Of a machine `with_sensors`."""
        return why_no_energy(self.facts, on_gpu=bool(self.gpus(case)))

    def recipes(self, case: Case) -> Mapping[str, Recipe]:
        """Role -> recipe of what the case opens here. An engine is bound to this machine."""
        environment = None if case.environment is None else self.environments[case.environment].known.sha256
        return recipes_of(case, platform_of(case, self.facts_in(case.environment)), environment)

    def gpus(self, case: Case) -> Sequence[str]:
        """UUIDs of the GPUs that the case would use here."""
        return gpus_of(case, self.facts_in(case.environment))

    def cpus(self, case: Case) -> int | None:
        """How many CPUs a run may use here; None: the case names them, or nobody knows."""
        if case.affinity is not None:
            return None
        found: int | None = self.facts_in(case.environment).get("machine", {}).get("cpu_count")
        return found

    def boards(self, cases: Sequence[Case]) -> Sequence[Board]:
        """The boards that the cases would use, as far as NVML knows them."""
        return boards_of({uuid for case in cases for uuid in self.gpus(case)}, self.launcher)

    def measure_sensor(self, board: Board) -> Profile:
        """Measures a board's power sensor, about a minute. Raises UnsupportedError where that cannot be done."""
        return measure_profile(board, launcher=self.launcher)

    def estimate(
        self,
        runs: Mapping[Case, int],
        artefacts: Sequence[Recipe],
        known_s: Mapping[str, float],
        counted: Mapping[str, float] = MappingProxyType({}),
    ) -> CampaignEstimate:
        """How long so many runs of these cases take and how much they write (see `pybench.machine.estimate`)."""
        return estimate(runs, artefacts, self.facts_in, known_s, counted)


def _in_environment(name: str | None, cases: Sequence[Case]) -> list[Case]:
    return [case for case in cases if case.environment == name]


def _first_of_each(
    cases: Sequence[Case], refused: Mapping[str, UnsupportedError], files: Mapping[str, str]
) -> list[RefusedValue]:
    """For each file what the first runtime says of it that refuses it."""
    found: dict[str, RefusedValue] = {}
    for case in cases:
        error, model = refused[case.id], str(case.model)
        found.setdefault(model, refused_value("model", model, error.message, error.hint, files))
    return list(found.values())
