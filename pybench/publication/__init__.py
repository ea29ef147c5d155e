# SPDX-License-Identifier: Apache-2.0
"""A campaign for others: packed so that it stays the same bytes, fetched so that a stranger's can be trusted to be
unpacked, and its report made again to see that it is the same.

    publish   stage (package, redaction, documents, crate, sums, signature), then
              an OCI artefact (artefact, layers) into a layout or a registry (registry, credentials), a zip (archive)
    fetch     fetching: reference, bundle, signature, unpacking
    replay    comparison

It knows run directories and nothing of what is in a report: who publishes or replays hands in how one is made.
docs/user/publishing.md says what is in a publication and why.
"""

from pybench.publication import archive
from pybench.publication.artefact import Artefact, assemble, write_layout
from pybench.publication.comparison import Replay, check_unpacked, compare
from pybench.publication.documents import About
from pybench.publication.fetching import Demands, Fetched, fetch, unpacked
from pybench.publication.package import Package, Wishes, stage
from pybench.publication.redaction import Rules
from pybench.publication.reference import RegistryReference, parse, parse_registry
from pybench.publication.registry import Registry
from pybench.publication.transport import Access
from pybench.publication.unpacking import Limits

__all__ = [
    "About",
    "Access",
    "Artefact",
    "Demands",
    "Fetched",
    "Limits",
    "Package",
    "Registry",
    "RegistryReference",
    "Replay",
    "Rules",
    "Wishes",
    "archive",
    "assemble",
    "check_unpacked",
    "compare",
    "fetch",
    "parse",
    "parse_registry",
    "stage",
    "unpacked",
    "write_layout",
]
