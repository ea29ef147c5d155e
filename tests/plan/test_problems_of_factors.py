# SPDX-License-Identifier: Apache-2.0
"""Factors that a model, a workload or a board does not have, each refused at its place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Problems = Callable[..., list[str]]


def test_an_impossible_power_limit_or_clock_names_its_line_and_who_knows_better(problems: Problems) -> None:
    found = problems(
        "  - workload: h2d\n    power_limit_w: [300, 0, -1]\n    sm_clock_mhz: fast\n    memory_clock_mhz: 0.5\n"
    )
    assert [problem.partition(";")[0] for problem in found] == [
        "5:26: `power_limit_w` takes an integer from 1 to 9007199254740992",
        "5:29: `power_limit_w` takes an integer from 1 to 9007199254740992",
        "6:19: `sm_clock_mhz` takes an integer from 1 to 9007199254740992",
        "7:23: `memory_clock_mhz` takes an integer from 1 to 9007199254740992",
    ]
    assert all("`pybench doctor` lists what the board accepts" in problem for problem in found)
    assert "not 300.5 (in watts" in problems("  - {workload: h2d, power_limit_w: 300.5}\n")[0]
    assert "(write 300)" in problems("  - {workload: h2d, power_limit_w: 3e2}\n")[0]


def test_a_power_limit_where_no_board_is_set_changes_nothing(problems: Problems) -> None:
    for entry in (
        "{workload: infer, model: resnet50, runtime: torch, device: cpu, power_limit_w: 300}",
        "{workload: tokenize, path: rust, power_limit_w: 300}",
        "{workload: noop, power_limit_w: 300}",
    ):
        [problem] = problems(f"  - {entry}\n")
        assert "`power_limit_w` changes nothing in this entry (it sets the board of a GPU" in problem
    [problem] = problems("  - {workload: accuracy, model: digits-cnn, runtime: torch, power_limit_w: 300}\n")
    assert "`power_limit_w` has no meaning for workload accuracy" in problem


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        (
            "{workload: train, model: resnet50, image_size: 16}",
            "images of 16x16 are too small for resnet50 (use at least 32)",
        ),
        ("{workload: train, model: tinylm-tiny, image_size: 48}", "`image_size` has no meaning for tinylm-tiny"),
        ("{workload: generate, model: tinylm-tiny, runtime: torch, image_size: 48}", "`image_size` has no meaning"),
        (
            "{workload: accuracy, model: digits-cnn, runtime: torch, image_size: 16}",
            "the digits are 8x8 and are taken as they are, not at 16x16",
        ),
        ("{workload: train, model: resnet50, gradient_checkpointing: true}", "`gradient_checkpointing` has no meaning"),
        ("{workload: train, model: resnet50, fed: true}", "`fed` has no meaning for resnet50, which takes no tokens"),
        ("{workload: train, model: tinylm-tiny, memory_format: contiguous}", "`memory_format` has no meaning"),
        (
            "{workload: infer, model: resnet50, runtime: torch, depth: 4}",
            "`depth` has no meaning for resnet50: it shapes the layers of stack",
        ),
        (
            "{workload: infer, model: stack, runtime: torch, width: 40}",
            "`width` takes a multiple of 32; not 40 (write 32)",
        ),
        (
            "{workload: infer, model: mlp, runtime: solver}",
            "runtime solver does not solve mlp (use model: c2p, c2p-small)",
        ),
        ("{workload: infer, model: c2p, runtime: solver, solver: fortran}", "`solver` takes one of cpp, numpy"),
        (
            "{workload: infer, model: c2p, runtime: solver, precision: int8}",
            "`precision` changes nothing in this entry",
        ),
        (
            "{workload: infer, model: c2p, runtime: solver, threads: 2}",
            "`threads` changes nothing in this entry (a solver runs on one thread)",
        ),
        ("{workload: infer, model: stack, runtime: torch, image_size: 32}", "stack takes images of 64x64"),
        (
            "{workload: train, model: resnet50, workers: 2}",
            "`workers` read images, and `images` names none (set `images`: synthetic-100, or a path)",
        ),
        (
            "{workload: train, model: resnet50, images: synthetic-100}",
            "`images` changes nothing in this entry (in infer, images are used only for `inputs: data`",
        ),
        (
            "{workload: train, model: tinylm-tiny, workers: 2}",
            "`workers` has no meaning for tinylm-tiny",
        ),
        (
            "{workload: infer, model: resnet50, runtime: torch, workers: 2}",
            "`workers` has no meaning for workload infer",
        ),
        ("{workload: train, model: resnet50, images: synthetic-100, workers: -1}", "`workers` takes an integer from 0"),
    ],
)
def test_a_factor_of_images_has_a_model_that_takes_it(problems: Problems, entry: str, what: str) -> None:
    found = problems(f"  - {entry}\n")
    assert len(found) == 1
    assert what in found[0]
