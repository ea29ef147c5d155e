# SPDX-License-Identifier: Apache-2.0
"""A finished run is guarded: whatever changes in its folder is found and named."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from pybench import _native
from pybench.campaign import digests, layout
from pybench.campaign.digests import Digests
from pybench.campaign.directory import RunDirectory
from pybench.campaign.hashed import HashedRuns
from pybench.campaign.layout import COMPLETE
from pybench.case import Case
from pybench.cli import main
from pybench.errors import EXIT_CORRUPT, EXIT_OK, CorruptError
from tests.support.campaigns import CampaignBuilder, build_typical, unguard
from tests.support.energies import ON_A_BOARD, energy_metrics, energy_window, store_energy

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
SEED = 20261123


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A finished run with every channel of a GPU."""
    directory = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1).run(INFER, 1, energy_metrics())
    store_energy(directory, energy_window())
    return directory


def flip(path: Path, moment: random.Random) -> None:
    """Changes one byte of a file to another value."""
    content = bytearray(path.read_bytes())
    content[moment.randrange(len(content))] ^= moment.randint(1, 255)
    path.write_bytes(content)


def change(folder: Path, moment: random.Random) -> str:
    """One random change of a finished run; what was done, in words. Nine of ten flip one byte of one file."""
    files = [path for path in sorted(folder.glob("[!.]*")) if path.stat().st_size]
    chosen = moment.choice(files)
    kind = moment.random()
    if kind < 0.9:
        flip(chosen, moment)
        return f"a byte of {chosen.name}"
    if kind < 0.95:
        (folder / f"{moment.randrange(1000)}.csv").write_text("time_s\n")
        return "a file added"
    if chosen.name == COMPLETE:  # without it the run is not a finished one
        chosen.write_bytes(b"")
    else:
        chosen.unlink()
    return f"{chosen.name} removed"


def test_three_hundred_changes_of_a_finished_run_are_all_found(run: RunDirectory, tmp_path: Path) -> None:
    moment = random.Random(SEED)
    missed = []
    for number in range(300):
        folder = tmp_path / "copies" / str(number)
        shutil.copytree(run.path, folder)
        done = change(folder, moment)
        copy = RunDirectory(folder, run.case_id, run.block, run.attempt)
        try:
            copy.check_files(HashedRuns(tmp_path, hash_all=True))
            missed.append(done)
        except CorruptError:
            shutil.rmtree(folder)
    assert missed == []


@pytest.mark.slow
def test_a_thousand_flips_of_one_byte_are_all_found_by_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In any file of any finished run, attempts that no longer count among them."""
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=2)
    runs = [builder.run(INFER, 1, outcome="killed")]
    runs += [builder.run(INFER, block, energy_metrics(), attempt=2, environment=ON_A_BOARD) for block in (1, 2)]
    for directory in runs[1:]:
        store_energy(directory, energy_window())
    files = [path for directory in runs for path in sorted(directory.path.glob("[!.]*")) if path.stat().st_size]
    assert main(["check", str(builder.path)]) == EXIT_OK
    moment = random.Random(SEED)
    statuses = []
    for _ in range(1000):
        file = moment.choice(files)
        content = file.read_bytes()
        flip(file, moment)
        statuses.append(main(["check", str(builder.path)]))
        assert str(file.parent) in capsys.readouterr().err
        file.write_bytes(content)
    assert statuses == [EXIT_CORRUPT] * 1000
    assert main(["check", str(builder.path)]) == EXIT_OK


def test_the_error_names_file_run_and_both_digests(run: RunDirectory) -> None:
    summary = run.file(layout.SUMMARY)
    before = hashlib.sha256(summary.read_bytes()).hexdigest()
    summary.write_text("{}")
    after = hashlib.sha256(b"{}").hexdigest()
    with pytest.raises(CorruptError) as caught:
        digests.check(run.path)
    expected = f"{run.path} is not as it was when the run finished: summary.json has sha256 {after}, expected {before}"
    assert caught.value.message == expected


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [("notes.csv", "mine", "notes.csv was added"), ("run.json", None, "run.json is missing")],
)
def test_what_was_added_or_removed_is_named(run: RunDirectory, name: str, content: str | None, words: str) -> None:
    run.file(name).unlink() if content is None else run.file(name).write_text(content)
    with pytest.raises(CorruptError, match=words):
        digests.check(run.path)


def test_files_in_folders_of_a_run_are_guarded_too(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "engine").write_text("one")
    (tmp_path / COMPLETE).write_bytes(digests.render(digests.of_folder(tmp_path)))
    assert digests.check(tmp_path)
    (tmp_path / "cache" / "engine").write_text("two")
    with pytest.raises(CorruptError, match="cache/engine has sha256"):
        digests.check(tmp_path)


def test_hidden_files_are_no_part_of_a_run(run: RunDirectory) -> None:
    """What a killed writer left, or a file manager."""
    run.file(".run.json.12ab.tmp").write_text("half")
    run.file(".DS_Store").write_text("")
    assert digests.check(run.path)


def test_links_to_folders_pipes_and_sockets_are_no_part_of_a_run(run: RunDirectory, tmp_path: Path) -> None:
    """Opening a pipe would wait for ever."""
    os.mkfifo(run.file("pipe"))
    run.file("folder").symlink_to(tmp_path)
    run.file("nothing").symlink_to("nowhere")
    assert digests.check(run.path)


def test_a_link_to_a_file_is_hashed_as_that_file(tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    elsewhere.write_text("one")
    run.mkdir()
    (run / "table.csv").symlink_to(elsewhere)
    (run / COMPLETE).write_bytes(digests.render(digests.of_folder(run)))
    assert digests.check(run)
    elsewhere.write_text("two")
    with pytest.raises(CorruptError, match=r"table\.csv has sha256"):
        digests.check(run)


def test_a_file_that_cannot_be_opened_is_named(run: RunDirectory) -> None:
    run.file("cache").mkdir()
    run.file("cache/loop").symlink_to("loop")
    with pytest.raises(CorruptError) as caught:
        digests.check(run.path)
    assert caught.value.message == f"{run.path}/cache/loop cannot be read: {os.strerror(errno.ELOOP)}"


@pytest.mark.parametrize("size", [0, 1, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 1_000_000])
def test_files_of_every_size_have_their_own_digest(tmp_path: Path, size: int) -> None:
    content = random.Random(SEED).randbytes(size)
    (tmp_path / "engine").write_bytes(content)
    found = digests.read_folder(tmp_path)
    assert found.digests == {"engine": hashlib.sha256(content).hexdigest()}
    assert found.small == ({"engine": content} if size <= 1 << 16 else {})


def test_a_large_file_that_goes_while_it_is_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "engine").write_bytes(bytes(1_000_000))
    read = _native.read_run_folder

    def read_and_remove(folder: bytes, kept_bytes: int) -> tuple[dict[str, bytes | None], bytes, int]:
        found = read(folder, kept_bytes)
        (tmp_path / "cache" / "engine").unlink()
        return found

    monkeypatch.setattr(_native, "read_run_folder", read_and_remove)
    with pytest.raises(CorruptError) as caught:
        digests.check(tmp_path)
    assert caught.value.message == f"{tmp_path}/cache/engine cannot be read: {os.strerror(errno.ENOENT)}"


def test_a_name_that_is_not_utf_8_is_guarded(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.csv")
    (tmp_path / name).write_text("one")
    (tmp_path / COMPLETE).write_bytes(digests.render(digests.of_folder(tmp_path)))
    assert [found for found, _ in digests.files_of(tmp_path)] == [COMPLETE, name]
    assert digests.check(tmp_path)


def test_many_changed_files_are_counted(run: RunDirectory) -> None:
    for path in run.path.iterdir():
        if path.name != COMPLETE:
            path.write_text("other")
    with pytest.raises(CorruptError, match=r"; and \d+ more files"):
        digests.check(run.path)


def test_a_run_of_an_older_pybench_is_unguarded_and_an_emptied_list_is_corrupt(run: RunDirectory) -> None:
    assert run.file(COMPLETE).stat().st_size
    run.file(COMPLETE).write_bytes(b"")
    hashed = HashedRuns(run.path.parents[3])
    with pytest.raises(CorruptError, match=r"complete is empty, and run\.json says that it has digests"):
        run.check_files(hashed)
    unguard(run.path)
    assert not run.check_files(hashed).is_guarded


def test_sha256sum_reads_the_list(run: RunDirectory) -> None:
    done = subprocess.run(["sha256sum", "--check", "--strict", COMPLETE], cwd=run.path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "summary.json: OK" in done.stdout
    assert done.stderr == ""


def test_a_list_is_read_as_it_was_written() -> None:
    stored = Digests({"a b.csv": "0" * 64, "run.json": "1" * 64}, ("run.json",), 3)
    assert digests.parse(digests.render(stored), Path("complete")) == stored


@pytest.mark.parametrize("content", [b"\n", b"{}", b"\xff\x00", b"0" * 10_000])
def test_any_other_content_is_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptError, match="is not as pybench wrote it"):
        digests.parse(content, Path("complete"))


def test_a_list_of_another_form_is_corrupt_although_its_own_digest_is_right() -> None:
    text = "# pybench: sha256 of each file of this finished run\n# files left out when published: many\n"
    end = f"# sha256 of the lines above: {hashlib.sha256(text.encode()).hexdigest()}\n"
    with pytest.raises(CorruptError, match="that this pybench reads"):
        digests.parse((text + end).encode(), Path("complete"))


def test_check_says_how_many_runs_are_unguarded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = build_typical(tmp_path / "c", repetitions=1)
    assert main(["check", str(builder.path)]) == EXIT_OK
    assert "The files of all 12 runs have the digests" in capsys.readouterr().out
    for run in list(builder.campaign.runs())[:3]:
        unguard(run.path)
    assert main(["check", str(builder.path)]) == EXIT_OK
    assert "3 of 12 runs are unguarded" in capsys.readouterr().out
    assert main(["check", str(builder.path), "--json"]) == EXIT_OK
    assert '"unguarded": 3' in capsys.readouterr().out
    assert main(["analyse", str(builder.path)]) == EXIT_OK
    assert "Unguarded runs: 3 of 12" in capsys.readouterr().out
