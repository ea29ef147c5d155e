# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from pybench.cluster.site import KINDS, KubernetesSite, SlurmSite, example_site, read_site, seconds
from pybench.cluster.toml_text import read_toml
from pybench.errors import SiteError


def read(folder: Path, text: str) -> SlurmSite | KubernetesSite:
    path = folder / "site.toml"
    path.write_text(text)
    return read_site(path)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(SiteError) as caught:
        read(folder, text)
    return [problem.render("site.toml") for problem in caught.value.problems]


@pytest.mark.parametrize("kind", KINDS)
def test_the_examples_are_valid_as_they_are_and_with_every_key(tmp_path: Path, kind: str) -> None:
    assert read(tmp_path, example_site(kind)).kind == kind
    lines = example_site(kind).splitlines()
    keys = [line.removeprefix("# ") if " = " in line or line.startswith("# [") else line for line in lines]
    site = read(tmp_path, "\n".join(keys).replace('cuda/12.8\n"""', 'cuda/12.8"""'))
    assert site.environment == {"OMP_NUM_THREADS": "8"}


def test_everything_wrong_is_named_at_once_with_its_place_and_the_nearest_name(tmp_path: Path) -> None:
    text = '''kind = "slurm"
prelud = """
time = 3
"""
[job]
time = "1h"
  partitoin = "gpu"
options = [
  "--gpu-freq=high",
  "gpu",
]
throttle = "4"
[image]
path = "x"
[mem]
[environment]
"A B" = "1"
'''
    assert problems(tmp_path, text) == [
        "site.toml:2:1: unknown key `prelud` (did you mean `prelude`?)",
        "site.toml:6:1: `job.time`: `1h` is not a time of Slurm's, such as 01:30:00 or 2-12:00:00",
        "site.toml:7:3: unknown key `job.partitoin` (did you mean `partition`?)",
        "site.toml:8:1: `job.options.1`: `gpu` is not an option of sbatch, such as --gpu-freq=high",
        "site.toml:12:1: `job.throttle`: Input should be a valid integer; not '4'",
        "site.toml:13:2: `image.sha256` is missing",
        "site.toml:15:2: unknown key `mem` (write it in [job])",
        "site.toml:17:2: `environment.A B`: `A B` is not a name of a variable",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'kind = "slurm"\n[job]\ntime = 1h\n',
            "site.toml:3:9: not TOML: Expected newline or end of document after a statement (text stands in quotes",
        ),
        (
            'kind = "slurm"\n[job]\ntime = one\n',
            "site.toml:3:8: not TOML: Invalid value (text stands in quotes in TOML)",
        ),
        ('kind = "slurm"\n[job]\ntime = 01:00:00\n', "site.toml:3:1: `job.time` takes text; not 01:00:00 (put it"),
        ('kind = "slurm"\n[job]\noptions = [', "site.toml:3:12: not TOML: Invalid value"),
        ('kind = "slrum"\n', "site.toml:1:1: `kind` is 'slrum' (one of slurm, kubernetes)"),
        ("", "site.toml:1:1: `kind` is missing (one of slurm, kubernetes)"),
        ('kind = "slurm"\n', "site.toml:1:1: `job` is missing"),
        (
            'kind = "slurm"\njob = {time = "10", gres = "gpu:1", gpus = "1"}\n',
            "site.toml:2:37: `gres` and `gpus` both request GPUs (keep the option that your site documents)",
        ),
        (
            'kind = "slurm"\n[scratch]\nstage_image = true\n[job]\ntime = "10"\n',
            "site.toml:3:1: `stage_image` has no image to copy (add an [image] table)",
        ),
        (
            'kind = "slurm"\n[job]\ntime = "10"\nexclusive = false\n',
            "site.toml:4:1: `mem` is missing, which a job that is not exclusive needs",
        ),
        (
            'kind = "slurm"\n[job]\ntime = "5"\ncheckpoint_s = 300\n',
            "site.toml:4:1: `checkpoint_s`: 300 s before its end, a job of 5 has not begun",
        ),
        (
            'kind = "slurm"\n[job]\ntime = "10"\npartition = "a\\nb"\n',
            "site.toml:4:1: `job.partition`: `a\nb` is not one",
        ),
        (
            'kind = "slurm"\n[job]\ntime = "10"\noptions = ["-p gpu"]\n',
            "site.toml:4:1: `job.options.0`: `-p gpu` is not an option of sbatch, such as --gpu-freq=high",
        ),
    ],
)
def test_one_mistake_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    found = problems(tmp_path, text)
    assert len(found) == 1
    assert found[0].startswith(said)


def test_what_is_no_site_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="--example-site"):
        read_site(tmp_path / "absent.toml")
    with pytest.raises(SiteError, match="Is a directory"):
        read_site(tmp_path)
    large = tmp_path / "large.toml"
    large.write_text("# padding\n" * 20_000)
    with pytest.raises(SiteError, match="is larger than"):
        read_site(large)
    large.write_text("\n" * 2_000)
    with pytest.raises(SiteError, match="more than 1000 lines"):
        read_site(large)
    large.write_bytes(b"kind = 'slurm'\n# caf\xe9\n")
    with pytest.raises(SiteError, match=":2:6: is not UTF-8"):
        read_site(large)


@pytest.mark.parametrize(
    ("text", "whole"),
    [("90", 5400), ("1:30", 90), ("01:00:00", 3600), ("2-12", 216000), ("1-00:30", 88200), ("0-00:00:05", 5)],
)
def test_a_time_of_slurms_in_seconds(text: str, whole: int) -> None:
    assert seconds(text) == whole


def test_keys_are_placed_where_they_are_written() -> None:
    text = 'a = 1\n\n# b = 2\n  [t]\nc = [\n 1,\n]\n"quoted key" = """\nd = 3\n"""\nd.e = 4\n'
    places = read_toml(text, "site.toml").places
    assert {".".join(map(str, path)): (place.line, place.column) for path, place in places.items()} == {
        "a": (1, 1),
        "t": (4, 4),
        "t.c": (5, 1),
        "t.quoted key": (8, 2),
        "t.d": (11, 1),
        "t.d.e": (11, 3),
    }
