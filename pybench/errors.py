# SPDX-License-Identifier: Apache-2.0
"""Every error that pybench raises on purpose, and the exit code each one means.

    PybenchError                     1   something asked for could not be done
    ├── UsageError                   2   the command line asks for something impossible
    │   ├── MalformedError           2   a file is malformed: all of its problems, each with file, line and column
    │   │   ├── PlanError            2   a plan
    │   │   ├── SiteError            2   a site file, which describes a cluster
    │   │   └── ScenarioError        2   a scenario, which describes a fleet
    │   ├── PluginError              2   an installed package adds rows that cannot be used
    │   └── InputError               2   a file of the user's (model, tokenizer, corpus, images) is missing or malformed
    │       └── RefusedValuesError   2   values of a plan that only a library or a runtime could judge
    ├── ClusterError                 1   the batch system refused, or does not answer
    ├── UnknownNameError             1   the catalogue has no row of that name
    ├── UnsupportedError             1   this machine or runtime cannot do that: the run's outcome is `unsupported`
    ├── DeviceMemoryError            1   memory ran out, by evidence: the run's outcome is `oom`
    ├── CoverageError                3   the runs do not cover the plan
    ├── CorruptError                 4   stored files are unreadable or contradict each other
    └── RegressionError              5   `compare` found a regression

The text says what failed and on what; `hint` says what to do about it. Only `pybench.cli` prints them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pybench.catalogue.reason_rows import ReasonRow

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_COVERAGE = 3
EXIT_CORRUPT = 4
EXIT_REGRESSION = 5
EXIT_CHECKPOINTED = 75  # EX_TEMPFAIL of sysexits.h, which batch scripts take for "start me again"
EXIT_INTERRUPTED = 130


def in_short(said: object, most: int = 200) -> str:
    """What a library says, such as its exception, on one line of at most `most` characters."""
    text = " ".join(str(said).split())
    return text if len(text) <= most else text[: most - 1] + "…"


class PybenchError(Exception):
    """Root of the tree. `message`: what failed, on what. `hint`: what to do about it, or None."""

    exit_code = EXIT_FAILED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickles, which processes pass on: the default would call each constructor with the message alone."""
        return Exception.__new__, (type(self), *self.args), vars(self)

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  hint: {self.hint}"

    def in_one_line(self) -> str:
        """For tables, and for the outcome of a case that cannot run."""
        return self.message if self.hint is None else f"{self.message}; {self.hint}"


class UsageError(PybenchError):
    """The command line, or a value given to the library, asks for something impossible."""

    exit_code = EXIT_USAGE


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file that people write.

    Line and column count from 1; None where the problem has no place.
    """

    what: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None

    def render(self, file: str) -> str:
        """`file:line:column: what (hint)`."""
        place = ":".join(str(part) for part in (file, self.line, self.column) if part is not None)
        return f"{place}: {self.what}" + (f" ({self.hint})" if self.hint else "")


class MalformedError(UsageError):
    """A file with at least one problem; `problems` lists them all, in the order of the file."""

    def __init__(self, file: str, problems: Sequence[Problem], *, hint: str | None = None) -> None:
        self.file = file
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0)))
        super().__init__("\n".join(problem.render(file) for problem in self.problems), hint=hint)


class PlanError(MalformedError):
    """A plan with at least one problem."""


class SiteError(MalformedError):
    """A site file, which describes a cluster, with at least one problem."""


class ScenarioError(MalformedError):
    """A scenario, which describes a fleet, with at least one problem."""


class InputError(UsageError):
    """A file of the user's is missing, unreadable, malformed, truncated or too large."""


@dataclass(frozen=True, slots=True)
class RefusedValue:
    """A value of a factor that does not name what it should, what is wrong with it, and what to do."""

    factor: str
    value: str
    what: str
    hint: str | None = None


class RefusedValuesError(InputError):
    """Values of a plan that only a library or a runtime could judge. `values` lists them all."""

    def __init__(self, values: Sequence[RefusedValue]) -> None:
        self.values = tuple(values)
        alone = self.values[0] if len(self.values) == 1 else None
        if alone is not None:
            super().__init__(f"`{alone.factor}`: {alone.what}", hint=alone.hint)
        else:
            super().__init__(
                "\n".join(Problem(one.what, hint=one.hint).render(f"`{one.factor}`") for one in self.values)
            )


class PluginError(UsageError):
    """An installed package adds rows to the catalogue that cannot be used.

    `distribution`: its name; `what`: what is wrong with it; `names`: of the workloads, runtimes and models that it
    would add, and of their options, as far as that is known.
    """

    def __init__(
        self,
        distribution: str,
        what: str,
        *,
        hint: str,
        version: str | None = None,
        names: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(f"the installed package {distribution} {what}", hint=hint)
        self.distribution = distribution
        self.version = version
        self.what = what
        self.names = names


class ClusterError(PybenchError):
    """A batch system refused something, or does not answer."""


class UnknownNameError(PybenchError):
    """The catalogue has no row of that name. `kind`: what it would be a row of, in words: `metric`."""

    def __init__(self, kind: str, name: str, known: Collection[str]) -> None:
        import difflib

        near = difflib.get_close_matches(name, known, 1)
        did_you_mean = f"did you mean {near[0]}?" if near else None
        super().__init__(f"pybench has no {kind} {name!r}", hint=did_you_mean or f"one of {', '.join(known)}")
        self.kind = kind
        self.name = name


class UnsupportedError(PybenchError):
    """This machine, runtime or build cannot run the case. `reason`: its code, with `names` for the words in it, and the
    message."""

    def __init__(self, message: str, *, code: ReasonRow, names: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = code.because(message, names)


class DeviceMemoryError(PybenchError):
    """Memory ran out. `evidence` names what says so (a framework's exception, a cgroup counter, an exit status)."""

    def __init__(self, message: str, *, evidence: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.evidence = evidence


class CoverageError(PybenchError):
    """The runs of a campaign do not cover its plan."""

    exit_code = EXIT_COVERAGE


class CorruptError(PybenchError):
    """Stored files are unreadable or contradict each other. Nothing was changed."""

    exit_code = EXIT_CORRUPT


class RegressionError(PybenchError):
    """`compare` found a metric that got worse beyond its uncertainty and the tolerance asked for."""

    exit_code = EXIT_REGRESSION
