# SPDX-License-Identifier: Apache-2.0
"""The digests beside the locks: one set of inputs never has two, and a released version has its own."""

import subprocess
import tomllib
from pathlib import Path

import digests
import pytest
import steps

BUILT = {"rootfs": "1" * 64, "oci_manifest": "2" * 64, "sif": "3" * 64}
ENTRY = digests.Expected("0.1.0", "a" * 64, **BUILT)


def versions(root: Path) -> list[str]:
    """digests.toml as it is, and as it was in every commit that changed it, newest first."""
    name = "containers/digests.toml"
    listed = subprocess.run(
        ["git", "log", "--format=%H", "--", name], cwd=root, capture_output=True, text=True, check=False
    )
    commits = listed.stdout.split() if listed.returncode == 0 else []
    shown = [
        subprocess.run(["git", "show", f"{commit}:{name}"], cwd=root, capture_output=True, text=True, check=False)
        for commit in commits
    ]
    return [(root / name).read_text(), *(one.stdout for one in shown if one.returncode == 0)]


def contradictions(texts: list[str]) -> list[str]:
    """Inputs of a tier for which the versions have more than one set of digests."""
    known: dict[tuple[str, str], dict[str, str]] = {}
    found = []
    for text in texts:
        for tier, entry in digests.parse(text).items():
            if known.setdefault((tier, entry.inputs), entry.digests) != entry.digests:
                found.append(f"{tier} of inputs {entry.inputs[:12]}")
    return found


def test_no_digest_ever_changed_without_a_changed_lock_or_source(containers: Path) -> None:
    assert contradictions(versions(containers.parent)) == []


def test_a_digest_that_changed_alone_is_found(tmp_path: Path) -> None:
    path = tmp_path / "digests.toml"
    digests.write("slim", ENTRY, path)
    before = path.read_text()
    digests.write("slim", digests.Expected("0.1.0", "a" * 64, **{**BUILT, "sif": "4" * 64}), path)
    assert contradictions([path.read_text(), before]) == [f"slim of inputs {'a' * 12}"]
    digests.write("slim", digests.Expected("0.1.0", "b" * 64, **{**BUILT, "sif": "4" * 64}), path)
    assert contradictions([path.read_text(), before]) == []


def test_this_version_has_its_digests() -> None:
    """Commits between releases may leave them behind; a new version number may not."""
    published = {tier: entry.version for tier, entry in digests.read().items()}
    assert "slim" in published
    assert published == dict.fromkeys(published, steps.project_version())


def test_tiers_are_written_and_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "digests.toml"
    digests.write("slim", ENTRY, path)
    digests.write("full", digests.Expected("0.2.0", "b" * 64, **BUILT), path)
    assert digests.read(path)["slim"] == ENTRY
    assert digests.read(path)["full"].version == "0.2.0"
    assert tomllib.loads(path.read_text())["slim"]["inputs"] == "a" * 64
    assert digests.read(tmp_path / "absent.toml") == {}


def test_an_entry_that_is_no_digest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "digests.toml"
    digests.write("slim", ENTRY, path)
    with pytest.raises(ValueError, match=r"slim\.sif"):
        digests.parse(path.read_text().replace("3" * 64, "3" * 63))


@pytest.mark.parametrize(
    ("expected", "inputs", "built", "said", "is_right"),
    [
        (ENTRY, "a" * 64, BUILT, "the digests are those of", True),
        (ENTRY, "a" * 64, {**BUILT, "sif": "4" * 64}, "another digest of sif", False),
        (ENTRY, "b" * 64, {**BUILT, "sif": "4" * 64}, "of other sources (version 0.1.0)", True),
        (None, "a" * 64, BUILT, "no digests of this tier", True),
    ],
)
def test_a_build_is_compared_with_the_record_of_its_own_inputs(
    expected: digests.Expected | None, inputs: str, built: dict[str, str], said: str, is_right: bool
) -> None:
    words, found = digests.compare(expected, inputs, built)
    assert said in words
    assert found is is_right
