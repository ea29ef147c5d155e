# SPDX-License-Identifier: Apache-2.0
"""What the documents of a publication say of a campaign, read once from the staged run directories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import ResolvedPlan, read_resolved_plan
from pybench.errors import UsageError


@dataclass(frozen=True, slots=True)
class Facts:
    """What the runs of a campaign say of themselves.

    begun, ended: of the first and of the last run, UTC
    outcomes: outcome -> runs
    packages: (name, version) -> runs that loaded it
    systems: (part, version) -> runs, for what is no Python package: python, driver, kernel
    pybench: versions that ran
    native_builds: ids of the builds of pybench's C++
    images: digests of container images that runs had
    """

    plan: ResolvedPlan
    begun: datetime
    ended: datetime
    outcomes: Mapping[str, int]
    packages: Mapping[tuple[str, str], int]
    systems: Mapping[tuple[str, str], int]
    pybench: tuple[str, ...]
    native_builds: tuple[str, ...]
    images: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def epoch_s(self) -> int:
        """The one time that a publication bears: when the last run ended, in whole seconds."""
        return int(self.ended.timestamp())

    @property
    def created(self) -> str:
        return stamp(datetime.fromtimestamp(self.epoch_s, UTC))


def stamp(when: datetime) -> str:
    """ISO 8601 in UTC, in whole seconds."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def gather(campaign: CampaignDirectory) -> Facts:
    """Raises `UsageError` for a campaign in which nothing ran."""
    times: list[datetime] = []
    outcomes: Counter[str] = Counter()
    packages: Counter[tuple[str, str]] = Counter()
    systems: Counter[tuple[str, str]] = Counter()
    named: dict[str, set[str]] = {"pybench": set(), "native": set(), "images": set()}
    for run in campaign.runs():
        record, environment = run.read_run(), run.read_environment()
        outcomes[record["outcome"]] += 1
        times += [datetime.fromisoformat(record[name]) for name in ("started_utc", "finished_utc") if record.get(name)]
        packages.update((str(name), str(version)) for name, version in environment.get("packages", {}).items())
        systems.update(_systems(environment))
        _note(named["pybench"], environment.get("pybench"))
        _note(named["native"], environment.get("native_build_id"))
        _note(named["images"], environment.get("image_digest"))
    if not times:
        raise UsageError(f"{campaign.path} has no runs, so there is nothing to publish")
    return Facts(
        plan=read_resolved_plan(campaign),
        begun=min(times),
        ended=max(times),
        outcomes=dict(sorted(outcomes.items())),
        packages=dict(sorted(packages.items())),
        systems=dict(sorted(systems.items())),
        pybench=tuple(sorted(named["pybench"])),
        native_builds=tuple(sorted(named["native"])),
        images=tuple(sorted(named["images"])),
    )


def _systems(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    gpu = (environment.get("measuring") or {}).get("gpu") or {}
    parts = {
        "python": environment.get("python"),
        "linux": environment.get("kernel"),
        "nvidia-driver": gpu.get("driver_version"),
    }
    return [(name, str(version)) for name, version in parts.items() if version]


def _note(values: set[str], value: object) -> None:
    if value:
        values.add(str(value))
