# SPDX-License-Identifier: Apache-2.0
"""campaigns/reports.sha256: the report of each published campaign, as the pybench of this commit makes it.

The archives in campaigns/ have the numbers of their reports alone.
A change of a page's text, of its script or of a figure is therefore a change of this list, and of no archive.
A line is that of `sha256sum`, of the folder CAMPAIGN that `pybench replay --out CAMPAIGN` writes.
The versions that decide the bytes are comments.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pybench.campaign.layout import RUNS
from pybench.dataset import load
from pybench.processes import all_cores
from pybench.publication import unpacked
from pybench.publication.carry.reference import ENDINGS
from pybench.publication.pack import sums, versions
from pybench.report import write_report

LIST = "campaigns/reports.sha256"
_HEAD = "# The reports of these campaigns, made by `make documents`; `pybench replay FILE --out CAMPAIGN` makes one.\n"


@dataclass(frozen=True, slots=True)
class ReportList:
    """made_with: name -> version, of what made the reports. files: campaign -> file of its report -> sha256."""

    made_with: Mapping[str, str]
    files: Mapping[str, Mapping[str, str]]

    def text(self) -> str:
        made = "".join(f"# {name}: {version}\n" for name, version in self.made_with.items())
        digests = {
            f"{campaign}/{name}": digest for campaign, files in self.files.items() for name, digest in files.items()
        }
        return f"{_HEAD}{made}{sums.render(digests).decode()}"


def archives_of(root: Path) -> list[Path]:
    """The archives of the repository, by name."""
    return sorted(path for path in (root / "campaigns").glob("*") if path.name.endswith(ENDINGS))


def campaign_of(archive: Path) -> str:
    return archive.name.partition(".")[0]


def make_list(root: Path) -> ReportList:
    """Makes every report."""
    return ReportList(
        versions.of_report(), {campaign_of(archive): _files_of_report(archive) for archive in archives_of(root)}
    )


def read_list(root: Path) -> ReportList:
    """The stored list."""
    made_with: dict[str, str] = {}
    files: dict[str, dict[str, str]] = {}
    for line in (root / LIST).read_text(encoding="utf-8").removeprefix(_HEAD).splitlines():
        if line.startswith("# "):
            name, _, version = line.removeprefix("# ").partition(": ")
            made_with[name] = version
        else:
            digest, _, path = line.partition("  ")
            campaign, _, name = path.partition("/")
            files.setdefault(campaign, {})[name] = digest
    return ReportList(made_with, files)


def hash_report(folder: Path) -> dict[str, str]:
    """File of a report -> its sha256."""
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    return sums.hash_files(folder, names)


def _files_of_report(archive: Path) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="pybench-report-") as made, unpacked(archive) as folder:
        with all_cores() as processes:
            write_report(load(folder, processes=processes), Path(made), run_link=f"../{RUNS}", processes=processes)
        return hash_report(Path(made))
