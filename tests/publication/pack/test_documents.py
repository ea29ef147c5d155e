# SPDX-License-Identifier: Apache-2.0
"""The documents of a publication, judged by the libraries of their own specifications."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from pybench.publication import PublicationMetadata, PublishOptions, stage
from pybench.publication.pack import sums
from pybench.publication.pack.documents import BUILD_TYPE
from pybench.publication.pack.report_parts import ReportParts
from tests.publication.campaigns import ARTEFACT, HOST, IMAGE, WEIGHTS, build_small, render_nothing
from tests.publication.conftest import COVERAGE, Published


def _document(published: Published, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((published.package.folder / name).read_bytes())
    return found


def test_the_bill_of_materials_is_valid_cyclonedx(published: Published) -> None:
    validation = pytest.importorskip("cyclonedx.validation.json", reason="cyclonedx-python-lib is not installed")
    schema = pytest.importorskip("cyclonedx.schema").SchemaVersion.V1_6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        text = (published.package.folder / sums.BILL).read_text()
        assert validation.JsonStrictValidator(schema).validate_str(text) is None


def test_the_bill_names_what_measured_and_what_reported(published: Published) -> None:
    components = _document(published, sums.BILL)["components"]
    found = {one["bom-ref"]: one for one in components}
    assert len(found) == len(components)
    assert found["measured:onnxruntime@1.23.0+cu128"]["purl"] == "pkg:pypi/onnxruntime@1.23.0%2Bcu128"
    assert {"name": "pybench:runs", "value": "4"} in found["measured:onnxruntime@1.23.0+cu128"]["properties"]
    assert found["measured:nvidia-driver@580.95.05"]["type"] == "device-driver"
    assert found[f"measured:image@{IMAGE}"]["hashes"] == [{"alg": "SHA-256", "content": "ab" * 32}]
    assert any(ref.startswith("report:matplotlib@") for ref in found)


def test_the_provenance_names_plan_image_and_exactly_the_files_that_are_there(published: Published) -> None:
    statement = _document(published, sums.PROVENANCE)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    definition, details = (statement["predicate"][name] for name in ("buildDefinition", "runDetails"))
    assert definition["buildType"] == BUILD_TYPE
    assert definition["externalParameters"]["plan"]["digest"] == {"sha256": published.package.digests["plan.yaml"]}
    assert {"name": "image", "digest": {"sha256": "ab" * 32}} in definition["resolvedDependencies"]
    assert details["metadata"]["startedOn"] < details["metadata"]["finishedOn"]
    campaign = {
        name: digest
        for name, digest in published.package.digests.items()
        if name.split("/")[0] in ("plan.yaml", "plan.resolved.json", "runs", "artefacts", "sensors")
    }
    assert statement["subject"] == [{"name": "small", "digest": {"dirHash": sums.digest_of(campaign)}}]


@pytest.mark.parametrize("parts", ReportParts)
def test_the_crate_is_read_by_rocrate(tmp_path: Path, parts: ReportParts) -> None:
    rocrate = pytest.importorskip("rocrate.rocrate", reason="rocrate is not installed")
    (tmp_path / "staged").mkdir()
    about = PublicationMetadata("A small campaign", "CC-BY-4.0", ("Ada Lovelace", "Charles Babbage"))
    options = PublishOptions(about, report=parts)
    stage(build_small(tmp_path / "c").path, tmp_path / "staged", options, COVERAGE, render_nothing)
    crate = rocrate.ROCrate(tmp_path / "staged")
    root = crate.root_dataset
    assert (root["name"], root["license"].id) == ("A small campaign", "https://spdx.org/licenses/CC-BY-4.0")
    assert [author["name"] for author in root["author"]] == ["Ada Lovelace", "Charles Babbage"]
    action = root["mentions"]
    assert action.type == "CreateAction"
    assert {one.type for one in action["instrument"]} == {"SoftwareApplication"}
    assert {one.id for one in action["object"]} == {"plan.yaml", "plan.resolved.json"}
    assert {"runs/", "report/"} <= {one.id for one in action["result"]}
    for part in root["hasPart"]:
        assert (tmp_path / "staged" / part.id).exists(), part.id
    crate.write(tmp_path / "copied")
    has_page = parts is ReportParts.ALL
    assert (tmp_path / "copied" / "report" / "index.html").exists() is has_page
    assert ("report/index.html" in {one.id for one in root["hasPart"]}) is has_page


def test_documents_of_numbers_alone_say_so_and_name_no_page(tmp_path: Path) -> None:
    (tmp_path / "staged").mkdir()
    options = PublishOptions(report=ReportParts.NUMBERS)
    package = stage(build_small(tmp_path / "c").path, tmp_path / "staged", options, COVERAGE, render_nothing)
    description = json.loads((package.folder / sums.DESCRIPTION).read_text())
    assert description["report"] == "numbers"
    assert "report/index.html" not in "".join((package.folder / name).read_text() for name in sums.DOCUMENTS)
    assert "`pybench replay . --out page`" in (package.folder / sums.README).read_text()
    report = {name: digest for name, digest in package.digests.items() if name.startswith("report/")}
    assert list(report) == ["report/tables/hosts.csv"]
    (by_product,) = json.loads((package.folder / sums.PROVENANCE).read_text())["predicate"]["runDetails"]["byproducts"]
    assert by_product == {"name": "report", "digest": {"dirHash": sums.digest_of(report)}}


def test_the_description_says_what_was_redacted_and_left_out_but_never_the_original(published: Published) -> None:
    description = _document(published, sums.DESCRIPTION)
    assert HOST not in json.dumps(description)
    assert description["image_digests"] == [IMAGE]
    (left_out,) = description["artefacts_left_out"]
    assert (left_out["name"], left_out["bytes"]) == (f"artefacts/{ARTEFACT}/weights.pt", len(WEIGHTS))
    assert {"pybench", "python", "polars", "matplotlib", "numpy"} <= set(description["report_made_with"])
    assert description["incomplete"] is False


def test_every_document_is_listed_with_its_digest(published: Published) -> None:
    assert set(sums.DOCUMENTS) <= set(published.package.digests)
