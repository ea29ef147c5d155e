# SPDX-License-Identifier: Apache-2.0
"""`pybench check`."""

from __future__ import annotations

from pybench.campaign.layout import PLAN_RESOLVED
from pybench.cli.options import DirectoryArgument, JsonOption
from pybench.cli.show import added_sentences, print_json, print_tables
from pybench.cli.stopping import check_stop
from pybench.errors import CoverageError


def check(directory: DirectoryArgument, as_json: JsonOption = False) -> None:
    """Check that the runs cover the plan and are unchanged.

    Every byte of every finished run is hashed, and of a fetched publication every file of its list but the report.
    Exit code 0: no run is missing, and no file changed. 3: runs are missing. 4: stored files are corrupt.
    """
    from pybench.analysis import declared
    from pybench.analysis.comparability import (
        SoftwareComparisons,
        describe_exclusions,
        describe_unstated,
        software_json,
    )
    from pybench.dataset import load
    from pybench.dataset.coverage import measure
    from pybench.dataset.executed_artefacts import executed_artefacts
    from pybench.processes import all_cores
    from pybench.publication import check_published
    from pybench.report.sections.reliability.coverage import coverage_table
    from pybench.report.sections.reliability.software import software_table

    added = check_published(directory)
    with all_cores() as processes:
        dataset = load(directory, hash_all=True, processes=processes)
    check_stop(dataset.campaign, dataset.plan)
    coverage = measure(dataset)
    software = SoftwareComparisons(dataset.software).declared(dataset.plan.cases, declared(dataset))
    artefacts = executed_artefacts(dataset.campaign)
    if as_json:
        of_artefacts = {"other_builds": artefacts.other, "gone_artefacts": artefacts.gone}
        of_folder = {**of_artefacts, "added_files": added, "plan_has_digest": dataset.plan.is_guarded}
        print_json({**coverage.as_json(), "software": software_json(software), **of_folder})
    else:
        print_tables([coverage_table(coverage), software_table(software)])
        for sentence in (describe_exclusions(software.values()), describe_unstated(software.values())):
            if sentence is not None:
                print(sentence[0].upper() + sentence[1:])
        for sentence in (*artefacts.sentences(), *added_sentences(added)):
            print(sentence)
        if not dataset.plan.is_guarded:
            print(f"{PLAN_RESOLVED} has no digest: an older pybench wrote it, or somebody removed the digest.")
    if not coverage.is_full:
        raise CoverageError(
            coverage.uncovered_text,
            hint="run the plan again: this does missing and stopped runs; --retry-failed also repeats failed runs",
        )
