# SPDX-License-Identifier: Apache-2.0
"""A campaign for others.

It is packed so that it stays the same bytes, and fetched so that a stranger's can be trusted to be unpacked. Its report
is made again to see that it is the same.

    publish   pack: package (contents, redaction, documents, crate, sums, signature), then
              carry: an OCI artefact (artefact, layers) into a layout or a registry (registry, transport, credentials),
              or a zip (archive)
    fetch     verify: fetching (bundle, unpacking); what was carried is named by a reference
    replay    verify: comparison, table_comparison

It knows run directories and nothing of what is in a report: who publishes or replays hands in how one is made.
docs/user/publishing.md says what is in a publication and why.
"""

from pybench.publication.carry import archive
from pybench.publication.carry.artefact import OciArtefact, assemble, write_layout
from pybench.publication.carry.reference import RegistryReference, parse, parse_registry
from pybench.publication.carry.registry import Registry
from pybench.publication.carry.transport import RegistryAccess
from pybench.publication.pack.documents import PublicationMetadata
from pybench.publication.pack.package import PackedPublication, PublishOptions, stage
from pybench.publication.pack.redaction import RedactionRules
from pybench.publication.pack.report_parts import ReportParts
from pybench.publication.verify.comparison import Difference, Replay, check_published, check_unpacked, compare
from pybench.publication.verify.fetching import FetchChecks, FetchResult, fetch, unpacked
from pybench.publication.verify.unpacking import Limits

__all__ = [
    "Difference",
    "FetchChecks",
    "FetchResult",
    "Limits",
    "OciArtefact",
    "PackedPublication",
    "PublicationMetadata",
    "PublishOptions",
    "RedactionRules",
    "Registry",
    "RegistryAccess",
    "RegistryReference",
    "Replay",
    "ReportParts",
    "archive",
    "assemble",
    "check_published",
    "check_unpacked",
    "compare",
    "fetch",
    "parse",
    "parse_registry",
    "stage",
    "unpacked",
    "write_layout",
]
