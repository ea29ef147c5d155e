# SPDX-License-Identifier: Apache-2.0
"""publish, fetch and replay as a user meets them, and a whole journey: the author publishes, the referee replays."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import pytest

from pybench.campaign.storage import write_json
from pybench.cli import main
from pybench.errors import EXIT_CORRUPT, EXIT_COVERAGE, EXIT_FAILED, EXIT_OK, EXIT_USAGE
from pybench.publication.pack import sums
from tests.publication.campaigns import HOST, USER, build_small
from tests.publication.tampering import rewritten_zip
from tests.support.campaigns import build_typical, finish_again

# What a referee's machine has not: nothing that measures, no framework, no compiled part of pybench.
PLAIN = "import sys; from pybench.cli import main; sys.exit(main())"
WITHOUT_FRAMEWORKS = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "onnx", "onnxruntime", "tensorrt", "cuda") or name == "pybench._native":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from pybench.cli import main
sys.exit(main())
"""


@dataclass(frozen=True)
class _Done:
    returncode: int
    stdout: str
    stderr: str


def _pybench(*arguments: object) -> _Done:
    """In this process: what counts is what is printed and returned."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return _Done(code, out.getvalue(), err.getvalue())


def _elsewhere(program: str, *arguments: object, **changes: str) -> _Done:
    """In a process of its own, in another environment. Matplotlib's list of fonts, seconds to make, is shared."""
    environment = {**os.environ, "MPLCONFIGDIR": matplotlib.get_configdir(), **changes}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    return _Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_small(tmp_path_factory.mktemp("campaign") / "small", blocks=3).path


@pytest.fixture(scope="module")
def published(campaign: Path) -> Path:
    """The folder with small.zip and layout/, and what publishing printed."""
    folder = campaign.parent
    done = _pybench("publish", campaign, "--archive", folder / "small.zip", "--oci", folder / "layout", "--json")
    assert done.returncode == EXIT_OK, done.stderr
    (folder / "published.json").write_text(done.stdout)
    (folder / "talk").write_text(done.stderr)
    return folder


@pytest.fixture(scope="module")
def fetched(published: Path) -> Path:
    done = _pybench("fetch", published / "small.zip", "--out", published / "fetched")
    assert done.returncode == EXIT_OK, done.stderr
    assert done.stdout.splitlines()[-1] == str(published / "fetched")
    return published / "fetched"


def test_a_referee_without_gpu_and_frameworks_makes_the_same_report(published: Path, tmp_path: Path) -> None:
    contents = json.loads((published / "published.json").read_text())["contents"]
    places = (published / "layout", "-o", tmp_path / "x")
    done = _elsewhere(WITHOUT_FRAMEWORKS, "fetch", *places, "--expect", contents)
    assert done.returncode == EXIT_OK, done.stderr
    hostile = {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "PYTHONHASHSEED": "5", "HOME": str(tmp_path)}
    done = _elsewhere(WITHOUT_FRAMEWORKS, "replay", tmp_path / "x", "--out", tmp_path / "mine", **hostile)
    assert done.returncode == EXIT_OK, done.stderr
    assert done.stdout.startswith("equal: ")
    assert (tmp_path / "mine" / "index.html").read_bytes() == (tmp_path / "x" / "report" / "index.html").read_bytes()


def test_publishing_twice_gives_the_same_bytes(published: Path, campaign: Path, tmp_path: Path) -> None:
    changes = {"TZ": "America/St_Johns", "PYTHONHASHSEED": "9", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    places = ("--archive", tmp_path / "a.zip", "--oci", tmp_path / "layout", "--json")
    again = _elsewhere(PLAIN, "publish", campaign, *places, **changes)
    assert again.returncode == EXIT_OK, again.stderr
    before = json.loads((published / "published.json").read_text())
    now = json.loads(again.stdout)
    assert now["contents"] == before["contents"]
    assert now["artefact"]["digest"] == before["artefact"]["digest"]
    assert (tmp_path / "a.zip").read_bytes() == (published / "small.zip").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == ["a.zip", "layout"]


def test_a_published_zip_is_published_again_with_the_same_contents(published: Path, tmp_path: Path) -> None:
    """Nobody has the campaign any more: what its author said and what was left out are kept, and nothing is new."""
    first = tmp_path / "first.zip"
    words = ("--title", "A small one", "--license", "CC-BY-4.0", "--author", "Ada Lovelace")
    assert _pybench("publish", published / "small.zip", "--archive", first, *words).returncode == EXIT_OK
    again = _pybench("publish", first, "--archive", first, "--json")
    assert again.returncode == EXIT_OK, again.stderr
    assert "because pybench did not write it" not in again.stderr
    for file, place in ((published / "small.zip", tmp_path / "before"), (first, tmp_path / "after")):
        assert _pybench("fetch", file, "-o", place).returncode == EXIT_OK
    before, after = (json.loads((tmp_path / name / sums.DESCRIPTION).read_text()) for name in ("before", "after"))
    said = {"title": "A small one", "license": "CC-BY-4.0", "authors": ["Ada Lovelace"]}
    assert len(before["artefacts_left_out"]) == 1
    assert after == before | said
    about = {sums.DESCRIPTION, sums.README, sums.CRATE, sums.SUMS}
    names = {path.relative_to(tmp_path / "after") for path in (tmp_path / "after").rglob("*") if path.is_file()}
    assert {str(name) for name in names if _differ(tmp_path, name)} == about


def _differ(folder: Path, name: Path) -> bool:
    return (folder / "before" / name).read_bytes() != (folder / "after" / name).read_bytes()


def test_a_zip_is_replayed_as_it_is(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = _pybench("replay", published / "small.zip")
    assert done.returncode == EXIT_OK, done.stderr
    assert done.stdout.startswith("equal: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["replay", "publish"])
def test_a_file_that_is_no_publication_is_refused(verb: str, published: Path, tmp_path: Path) -> None:
    text, short, empty = (tmp_path / name for name in ("notes.txt", "short.zip", "empty.zip"))
    text.write_text("no zip\n")
    short.write_bytes(b"")
    zipfile.ZipFile(empty, "w").close()
    run = next(name for name in zipfile.ZipFile(published / "small.zip").namelist() if name.endswith("/summary.json"))
    changed = rewritten_zip(published / "small.zip", tmp_path / "changed.zip", {run: b"{}"})
    told = {
        text: ("is not an archive\n  hint: give a published archive (.zip, .tar.zst)", EXIT_USAGE),
        short: ("is not a complete zip", EXIT_CORRUPT),
        empty: (f"is not a publication of pybench: it has no {sums.SUMS}", EXIT_CORRUPT),
        changed: (run, EXIT_CORRUPT),
    }
    for file, (words, code) in told.items():
        done = _pybench(verb, file, *(["--dry-run"] if verb == "publish" else []))
        assert done.returncode == code, done.stderr
        assert str(file) in done.stderr
        assert words in done.stderr


def test_the_author_is_told_what_was_replaced_and_left_out(published: Path) -> None:
    talk = (published / "talk").read_text()
    assert "replaced by host-1: a host name" in talk
    assert "not published: 1 file of artefacts" in talk
    assert HOST not in talk


def test_a_word_that_is_found_nowhere_is_said(campaign: Path) -> None:
    done = _pybench("publish", campaign, "--dry-run", "--redact", "GreenProject", "--redact", "written to")
    assert done.returncode == EXIT_OK, done.stderr
    assert "--redact GreenProject was found nowhere" in done.stderr
    assert "--redact written to" not in done.stderr


def test_a_publication_with_redacted_ids_is_replayed(tmp_path: Path) -> None:
    builder = build_typical(tmp_path / "c", repetitions=2)
    done = _pybench("publish", builder.path, "--archive", tmp_path / "a.zip", "--redact", "digits-0")
    assert "replaced by redacted-1: a word of the author's" in done.stderr
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert [name for name in archive.namelist() if b"digits-0" in archive.read(name)] == []
    done = _pybench("replay", tmp_path / "a.zip")
    assert done.stdout.startswith("equal: "), done.stderr


def test_neither_report_nor_tables_name_host_or_user(fetched: Path) -> None:
    texts = {path: path.read_bytes() for path in fetched.rglob("*") if path.is_file()}
    assert len(texts) > 60
    assert [path for path, text in texts.items() if HOST.encode() in text or f"/home/{USER}".encode() in text] == []


def test_a_dry_run_lists_and_writes_nothing(campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = _pybench("publish", campaign, "--dry-run")
    assert done.returncode == EXIT_OK, done.stderr
    assert "runs/" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("contents sha256:")
    assert list(tmp_path.iterdir()) == []


def test_publishing_nowhere_is_a_usage_error(campaign: Path) -> None:
    done = _pybench("publish", campaign)
    assert done.returncode == EXIT_USAGE
    assert "--archive" in done.stderr


def test_an_incomplete_campaign_is_refused_or_labelled(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c", missing=1).path
    refused = _pybench("publish", campaign, "--archive", tmp_path / "a.zip")
    assert refused.returncode == EXIT_COVERAGE
    assert "1 of 4 planned runs is not covered" in refused.stderr
    assert "--incomplete" in refused.stderr
    assert not (tmp_path / "a.zip").exists()
    done = _pybench("publish", campaign, "--incomplete", "--archive", tmp_path / "a.zip", "--oci", tmp_path / "layout")
    assert done.returncode == EXIT_OK, done.stderr
    assert "(incomplete)" in done.stdout
    _pybench("fetch", tmp_path / "a.zip", "-o", tmp_path / "x")
    assert json.loads((tmp_path / "x" / sums.DESCRIPTION).read_text())["incomplete"] is True
    assert "**Incomplete**" in (tmp_path / "x" / sums.README).read_text()
    manifests = [path.read_bytes() for path in (tmp_path / "layout" / "blobs" / "sha256").iterdir()]
    assert any(b'"pybench.incomplete":"true"' in manifest for manifest in manifests)


def test_a_corrupt_campaign_is_refused_even_as_incomplete(tmp_path: Path) -> None:
    builder = build_small(tmp_path / "c")
    next(builder.path.glob("runs/**/summary.json")).write_text("{")
    done = _pybench("publish", builder.path, "--incomplete", "--archive", tmp_path / "a.zip")
    assert done.returncode == EXIT_CORRUPT
    assert "summary.json" in done.stderr
    assert not (tmp_path / "a.zip").exists()


def test_what_is_no_campaign_is_a_usage_error(tmp_path: Path) -> None:
    assert _pybench("publish", tmp_path, "--dry-run").returncode == EXIT_USAGE
    assert _pybench("replay", tmp_path).returncode == EXIT_USAGE
    assert _pybench("fetch", tmp_path).returncode == EXIT_USAGE
    assert _pybench("fetch", "nowhere", "-o", tmp_path / "x", "--expect", "12").returncode == EXIT_USAGE


@pytest.mark.parametrize("change", ["changed", "gone", "added"])
def test_replay_refuses_a_publication_that_was_changed(fetched: Path, tmp_path: Path, change: str) -> None:
    subprocess.run(["cp", "-r", str(fetched), str(tmp_path / "x")], check=True)
    (tmp_path / "x" / "my-notes.txt").write_text("harmless")
    run = next((tmp_path / "x").glob("runs/**/summary.json"))
    if change == "changed":
        run.write_text(run.read_text() + " ")
    elif change == "gone":
        run.unlink()
    else:
        run.with_name("energy.json").write_text("{}")
    done = _pybench("replay", tmp_path / "x")
    assert done.returncode == EXIT_CORRUPT
    assert "my-notes" not in done.stderr
    assert ("energy.json was added" if change == "added" else "summary.json") in done.stderr


@pytest.mark.parametrize("verb", ["check", "publish"])
def test_a_changed_file_of_a_fetched_publication_is_refused(fetched: Path, tmp_path: Path, verb: str) -> None:
    folder = Path(shutil.copytree(fetched, tmp_path / "x"))
    for name in ("plan.yaml", next(folder.glob("runs/**/iterations.csv")).relative_to(folder)):
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(before + b"# \n")
        done = _pybench(verb, folder, *(["--dry-run"] if verb == "publish" else []))
        assert done.returncode == EXIT_CORRUPT
        assert f"{folder} is not as it was published:\n  {name} was changed" in done.stderr
        (folder / name).write_bytes(before)
    (folder / sums.SUMS).unlink()
    assert _pybench("check", folder).returncode == EXIT_CORRUPT


def test_a_fetched_publication_may_get_a_report_and_runs_of_its_own(fetched: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(fetched, tmp_path / "x"))
    assert _pybench("report", folder, "--out", folder / "report").returncode == EXIT_OK
    assert json.loads(_pybench("check", folder, "--json").stdout)["added_files"] == []
    run = next(folder.glob("runs/*/block-001/attempt-01"))
    again = shutil.copytree(run, run.with_name("attempt-02"))
    for name in ("run.json", "case.json"):
        write_json(again / name, json.loads((again / name).read_bytes()) | {"attempt": 2})
    finish_again(again)
    checked = _pybench("check", folder)
    assert (checked.returncode, checked.stderr) == (EXIT_OK, "")
    assert re.search(r"After publication, \d+ files came to this folder, such as runs/.*/attempt-02/", checked.stdout)
    assert "After publication, " in _pybench("publish", folder, "--dry-run").stderr


def test_replay_names_what_differs_and_the_versions_as_the_likely_cause(fetched: Path, tmp_path: Path) -> None:
    """A report that was made otherwise: its author changed a number in a table, and had an older matplotlib."""
    table = "report/tables/metrics.csv"
    description = json.loads((fetched / sums.DESCRIPTION).read_text())
    description["report_made_with"]["matplotlib"] = "3.9.0"
    change = {
        table: _with_another_mean((fetched / table).read_bytes()),
        sums.DESCRIPTION: json.dumps(description).encode(),
    }
    done = _replay_forged(fetched, tmp_path, change)
    assert done.returncode == EXIT_FAILED
    assert f"1 of {len([*fetched.glob('report/**/*.*')])} files of the report differ" in done.stderr
    assert re.search(rf"{table} differs in row 1, mean: '7.5' published, '\d\.\d+' made again", done.stderr)
    assert re.search(r"numbers differ in 1 of \d+ published tables", done.stderr)
    assert "other versions made the published report, which is the likely cause: matplotlib 3.9.0 there" in done.stderr


def test_replay_says_that_the_numbers_are_equal_where_only_the_page_differs(fetched: Path, tmp_path: Path) -> None:
    page = "report/index.html"
    done = _replay_forged(fetched, tmp_path, {page: (fetched / page).read_bytes().replace(b"<h2>", b"<h2> ", 1)})
    assert done.returncode == EXIT_FAILED
    assert f"{page} differs in line" in done.stderr
    assert "every published cell that is a number is the same" in done.stderr


# --- the numbers of a report alone -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def numbers(published: Path) -> Path:
    """The same publication with the numbers of its report alone, fetched."""
    file, folder = published / "numbers.tar.zst", published / "numbers"
    done = _pybench("publish", published / "small.zip", "--report", "numbers", "--archive", file, "--json")
    assert done.returncode == EXIT_OK, done.stderr
    assert json.loads(done.stdout)["report"] == "numbers"
    assert _pybench("fetch", file, "-o", folder).returncode == EXIT_OK
    return folder


def test_published_numbers_are_the_tables_of_the_report_as_csv(numbers: Path, fetched: Path) -> None:
    tables = {path.relative_to(fetched): path.read_bytes() for path in (fetched / "report").rglob("*.csv")}
    assert len(tables) > 10
    found = {path.relative_to(numbers): path.read_bytes() for path in (numbers / "report").rglob("*") if path.is_file()}
    assert found == tables


def test_replay_of_numbers_makes_the_whole_report(numbers: Path, fetched: Path, tmp_path: Path) -> None:
    done = _pybench("replay", numbers, "--out", tmp_path / "page")
    assert done.returncode == EXIT_OK, done.stderr
    assert re.match(
        r"equal: all \d+ published tables are identical\nnot compared, because not published: page", done.stdout
    )
    assert (tmp_path / "page" / "index.html").read_bytes() == (fetched / "report" / "index.html").read_bytes()


def test_a_publication_of_numbers_stays_one_until_all_is_asked_for(
    numbers: Path, published: Path, tmp_path: Path
) -> None:
    contents = {}
    for name, options in (("same", ()), ("all", ("--report", "all"))):
        done = _pybench("publish", numbers, "--archive", tmp_path / f"{name}.zip", "--json", *options)
        contents[name] = json.loads(done.stdout)["contents"]
    assert contents["same"] == f"sha256:{sums.hash_bytes((numbers / sums.SUMS).read_bytes())}"
    assert contents["all"] == json.loads((published / "published.json").read_text())["contents"]


def test_replay_of_numbers_names_a_number_that_differs(numbers: Path, tmp_path: Path) -> None:
    table = "report/tables/metrics.csv"
    done = _replay_forged(numbers, tmp_path, {table: _with_another_mean((numbers / table).read_bytes())})
    assert done.returncode == EXIT_FAILED
    assert re.search(r"1 of \d+ published tables differ\n", done.stderr)
    assert re.search(rf"{table} differs in row 1, mean: '7.5' published, '\d\.\d+' made again", done.stderr)
    assert re.search(r"numbers differ in 1 of \d+ published tables", done.stderr)


def test_replay_of_numbers_names_words_that_differ(numbers: Path, tmp_path: Path) -> None:
    table = "report/tables/metrics.csv"
    done = _replay_forged(numbers, tmp_path, {table: (numbers / table).read_bytes().replace(b",ms,", b",s,", 1)})
    assert done.returncode == EXIT_FAILED
    assert f"{table} differs in row 1, unit: 's' published, 'ms' made again" in done.stderr
    assert "every published cell that is a number is the same" in done.stderr


def test_replay_of_numbers_accepts_columns_of_a_later_pybench(numbers: Path, tmp_path: Path) -> None:
    """As if an earlier pybench, whose table had no last column, had published them."""
    table = "report/tables/metrics.csv"
    rows = list(csv.reader(io.StringIO((numbers / table).read_text(), newline="")))
    earlier = io.StringIO()
    csv.writer(earlier, lineterminator="\n").writerows(row[:-1] for row in rows)
    done = _replay_forged(numbers, tmp_path, {table: earlier.getvalue().encode()})
    assert done.returncode == EXIT_OK, done.stderr
    assert re.match(r"equal: all \d+ published tables are made again, cell by cell\n", done.stdout)
    assert f"{table} has all published cells, 1 more column and 0 more rows\n  all versions are equal" in done.stdout


def test_replay_of_numbers_refuses_a_run_that_was_changed(numbers: Path, tmp_path: Path) -> None:
    shutil.copytree(numbers, tmp_path / "x")
    run = next((tmp_path / "x").glob("runs/**/summary.json"))
    run.write_text(run.read_text() + " ")
    done = _pybench("replay", tmp_path / "x")
    assert done.returncode == EXIT_CORRUPT
    assert "summary.json was changed" in done.stderr


def test_parts_that_no_report_has_are_refused(campaign: Path) -> None:
    done = _pybench("publish", campaign, "--report", "half", "--dry-run")
    assert done.returncode == EXIT_USAGE
    assert "--report half is neither all nor numbers" in done.stderr


def _with_another_mean(table: bytes) -> bytes:
    """metrics.csv with another number in its first row."""
    names, first, *rest = csv.reader(io.StringIO(table.decode(), newline=""))
    first[names.index("mean")] = "7.5"
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([names, first, *rest])
    return written.getvalue().encode()


def _replay_forged(fetched: Path, folder: Path, change: Mapping[str, bytes]) -> _Done:
    """`replay` of a publication in which these files have another content, and the list says so."""
    listed = sums.parse((fetched / sums.SUMS).read_bytes(), "here")
    listed |= {name: sums.hash_bytes(content) for name, content in change.items()}
    changed = {**change, sums.SUMS: sums.render(listed)}
    forged = folder / "forged"
    shutil.copytree(fetched, forged)
    for name, content in changed.items():
        (forged / name).write_bytes(content)
    return _pybench("replay", folder / "forged")
