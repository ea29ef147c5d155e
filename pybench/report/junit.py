# SPDX-License-Identifier: Apache-2.0
"""The result of `pybench compare` as JUnit XML, which the test views of GitLab, Jenkins and Azure Pipelines read.

Each metric that is judged is one test: it fails if the metric got worse. Where the change is unclear, it is skipped,
because a test that passes would say more than was found. Source of the format: https://github.com/testmoapp/junitxml.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from pybench.analysis.findings.changes import Change, MetricChange
from pybench.analysis.findings.comparison import Comparison
from pybench.report.numbers import format_estimate, format_p, format_plain

SUITE = "pybench compare"
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML 1.0 cannot express


def comparison_junit(comparison: Comparison) -> str:
    """One suite with a test for each judged metric of each case, and for each that B has no number of."""
    tested = [*comparison.judged, *comparison.lost]
    failed, skipped = len(comparison.regressions), sum(_is_unknown(change) for change in tested)
    counts = {"tests": str(len(tested)), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": SUITE, **counts})
    for change in tested:
        names = {"classname": _clean(change.case.title()), "name": change.metric.name, "time": "0"}
        test = ElementTree.SubElement(suite, "testcase", names)
        said = _clean(_words(change))
        if change.change is Change.WORSE:
            ElementTree.SubElement(test, "failure", {"message": said, "type": change.change.value})
        elif _is_unknown(change):
            ElementTree.SubElement(test, "skipped", {"message": said})
        else:
            ElementTree.SubElement(test, "system-out").text = said
    ElementTree.indent(suites, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _is_unknown(change: MetricChange) -> bool:
    return change.change not in (Change.WORSE, Change.BETTER, Change.SAME)


def _words(change: MetricChange) -> str:
    """`worse: 2.5 to 3.1 ms, B/A 1.24 [1.20, 1.28], p (Holm) < 0.001`, as far as it is known."""
    if change.estimate is None or change.before is None or change.after is None:
        return f"{change.change.value}: {change.why}"
    difference = change.metric.scale == "difference"
    value, interval = format_estimate(change.estimate, signed=difference)[:2]
    unit = "" if change.metric.unit == "1" else f" {change.metric.unit}"
    text = f"{change.change.value}: {format_plain(change.before)} to {format_plain(change.after)}{unit}"
    text += f", {'B - A' if difference else 'B/A'} {value}{f' {interval}' if interval else ''}"
    return text if change.p_adjusted is None else f"{text}, p (Holm) {format_p(change.p_adjusted)}"


def _clean(text: str) -> str:
    return _NO_XML.sub("?", text)
