# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from pathlib import Path

import pytest

from pybench.cluster.site import KINDS, KubernetesSite, SlurmSite, example_site, read_site, seconds
from pybench.errors import SiteError


def read(folder: Path, text: str) -> SlurmSite | KubernetesSite:
    path = folder / "site.yaml"
    path.write_text(text)
    return read_site(path)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(SiteError) as caught:
        read(folder, text)
    return [problem.render("site.yaml") for problem in caught.value.problems]


@pytest.mark.parametrize("kind", KINDS)
def test_the_examples_are_valid_as_they_are_and_with_every_key(tmp_path: Path, kind: str) -> None:
    assert read(tmp_path, example_site(kind)).kind == kind
    every_key = re.sub(r"^( *)# (?=[\w.]+:( |$)|nvidia)", r"\1", example_site(kind), flags=re.MULTILINE)
    site = read(tmp_path, every_key.replace("  nvidia.com", "    nvidia.com").replace("      nvidia", "    nvidia"))
    assert site.environment == {"OMP_NUM_THREADS": "8"}
    if isinstance(site, SlurmSite):
        assert (site.job.options, site.check.time, site.scratch.stage_image) == (("--gpu-freq=high",), "00:30:00", True)
        assert site.prelude == "# module load cuda/12.8\n"
    else:
        assert site.pod.node_selector == {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


def test_everything_wrong_is_named_at_once_with_its_place_and_the_nearest_name(tmp_path: Path) -> None:
    text = """kind: slurm
prelud: |
  time = 3
job:
  time: 1h
  partitoin: gpu
  options:
    - --gpu-freq=high
    - gpu
  throttle: "4"
  exclusive: maybe
  export: SOME
image:
  path: x
mem: 8G
environment:
  A B: "1"
  B: 2
scratch: /tmp
"""
    assert problems(tmp_path, text) == [
        "site.yaml:2:1: unknown key `prelud` (did you mean `prelude`?)",
        "site.yaml:5:9: `job.time`: `1h` is not a time of Slurm, such as 01:30:00 or 2-12:00:00",
        "site.yaml:6:3: unknown key `job.partitoin` (did you mean `partition`?)",
        "site.yaml:9:7: `job.options.1`: `gpu` is not an option of sbatch, such as --gpu-freq=high",
        "site.yaml:10:13: `job.throttle` takes an integer from 1; not '4'",
        "site.yaml:11:14: `job.exclusive` takes true or false; not 'maybe'",
        "site.yaml:12:11: `job.export` takes NONE or ALL; not 'SOME'",
        "site.yaml:14:3: `image.sha256` is missing",
        "site.yaml:15:1: unknown key `mem` (write it in `job`)",
        "site.yaml:17:3: `environment.A B`: `A B` is not a name of a variable",
        "site.yaml:18:6: `environment.B` takes text; not 2 (put it in quotes)",
        "site.yaml:19:10: `scratch` takes a mapping; not '/tmp'",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: slurm\njob:\n  time: [10\n", "site.yaml:4:1: not YAML: while parsing a flow sequence"),
        ("kind: slurm\njob:\n  time: 10\n", "site.yaml:3:9: `job.time` takes text; not 10 (put it in quotes)"),
        ("kind: slrum\n", "site.yaml:1:7: `kind` is 'slrum' (one of slurm, kubernetes)"),
        ("job: {}\n", "site.yaml:1:1: `kind` is missing (one of slurm, kubernetes)"),
        ("kind: [slurm]\n", "site.yaml:1:7: `kind` is ['slurm'] (one of slurm, kubernetes)"),
        ("", "site.yaml: is empty (`pybench submit --example-site slurm` prints one)"),
        ("slurm\n", "site.yaml:1:1: takes a mapping, as in `key: value`; not 'slurm'"),
        ("kind: slurm\n", "site.yaml:1:1: `job` is missing"),
        ("kind: slurm\njob:\n", "site.yaml:1:1: `job` is missing"),
        ("kind: slurm\njob: {time: '10'}\nkind: slurm\n", "site.yaml:3:1: key `kind` is given twice"),
        (
            'kind: slurm\njob: {time: "10", gres: "gpu:1", gpus: "1"}\n',
            "site.yaml:2:34: `gres` and `gpus` both request GPUs (keep the option that your site documents)",
        ),
        (
            'kind: slurm\nscratch:\n  stage_image: true\njob:\n  time: "10"\n',
            "site.yaml:3:3: `stage_image` has no image to copy (add `image`)",
        ),
        (
            'kind: slurm\njob:\n  time: "10"\n  exclusive: false\n',
            "site.yaml:4:3: `mem` is missing, which a job that is not exclusive needs",
        ),
        (
            'kind: slurm\njob:\n  time: "5"\n  checkpoint_s: 300\n',
            "site.yaml:4:3: `checkpoint_s`: 300 s before its end, a job of 5 has not begun",
        ),
        (
            'kind: slurm\njob:\n  time: "10"\n  partition: "a\\nb"\n',
            "site.yaml:4:14: `job.partition`: `a\nb` is not one",
        ),
        (
            'kind: slurm\njob:\n  time: "10"\n  options: [-p gpu]\n',
            "site.yaml:4:13: `job.options.0`: `-p gpu` is not an option of sbatch, such as --gpu-freq=high",
        ),
        (
            'kind: slurm\njob:\n  time: "10"\n  options: --hold\n',
            "site.yaml:4:12: `job.options` takes a list; not '--hold' (as in [--gpu-freq=high])",
        ),
    ],
)
def test_one_mistake_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    found = problems(tmp_path, text)
    assert len(found) == 1
    assert found[0].startswith(said)


def test_what_is_no_site_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"no such file.*--example-site"):
        read_site(tmp_path / "absent.yaml")
    with pytest.raises(SiteError, match="is a folder, not a site file"):
        read_site(tmp_path)
    large = tmp_path / "large.yaml"
    large.write_bytes(b"kind: slurm\n# caf\xe9\n")
    with pytest.raises(SiteError, match=":2:6: not UTF-8: byte 0xe9"):
        read_site(large)
    large.write_text("# padding\n" * 200_000)
    with pytest.raises(SiteError, match="is larger than"):
        read_site(large)


TOML = '''kind = "slurm"
pybench = "/opt/pybench: new"
prelude = """
module load cuda/12.8
module load "gcc"
"""
[environment]
OMP_NUM_THREADS = "8"
[image]
path = "image.sif"
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
[job]
time = "01:00:00"
mem = "32G"
throttle = 4
exclusive = false
options = ["--gpu-freq=high", "--hold"]
'''


@pytest.mark.parametrize("name", ["site.toml", "site.yaml"])
def test_toml_is_refused_and_the_error_prints_the_same_site_as_yaml(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(TOML)
    with pytest.raises(SiteError) as caught:
        read_site(path)
    first, hint, written = str(caught.value).split("\n", 2)
    assert first == f"{path}: is TOML; a site file is YAML"
    assert hint == "  hint: write this to a YAML file:"
    site = read(tmp_path, written)
    assert isinstance(site, SlurmSite)
    assert (site.pybench, site.environment) == ("/opt/pybench: new", {"OMP_NUM_THREADS": "8"})
    assert site.prelude == 'module load cuda/12.8\nmodule load "gcc"\n'
    assert site.image is not None
    assert site.image.sha256 == "0" * 64
    assert (site.job.time, site.job.throttle, site.job.options) == ("01:00:00", 4, ("--gpu-freq=high", "--hold"))
    assert not site.job.exclusive


@pytest.mark.parametrize("kind", KINDS)
def test_no_example_in_yaml_is_taken_for_toml(tmp_path: Path, kind: str) -> None:
    assert read(tmp_path, example_site(kind)).kind == kind


@pytest.mark.parametrize(
    ("text", "whole"),
    [("90", 5400), ("1:30", 90), ("01:00:00", 3600), ("2-12", 216000), ("1-00:30", 88200), ("0-00:00:05", 5)],
)
def test_a_time_of_slurm_in_seconds(text: str, whole: int) -> None:
    assert seconds(text) == whole
