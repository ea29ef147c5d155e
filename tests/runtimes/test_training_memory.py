# SPDX-License-Identifier: Apache-2.0
"""Bytes of a small training step, counted by hand."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from pybench.runtimes.training_memory import HeldBytes, SavedBytes, held_bytes, saved_bytes

BATCH, INPUTS, HIDDEN, CLASSES = 5, 4, 3, 2
WEIGHTS = (INPUTS * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES) * 4


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))


def loss_of(model: nn.Module, autocast: bool = False) -> Tensor:
    batch, labels = torch.ones(BATCH, INPUTS), torch.zeros(BATCH, dtype=torch.int64)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        return functional.cross_entropy(model(batch).float(), labels)


def test_what_a_forward_pass_saves_is_the_batch_and_each_output_that_a_gradient_needs() -> None:
    model = network()
    batch, hidden = BATCH * INPUTS * 4, BATCH * HIDDEN * 4
    logarithms, labels, total = BATCH * CLASSES * 4, BATCH * 8, 4  # of cross-entropy; total: the sum of its weights
    found = saved_bytes(model, lambda: loss_of(model))
    assert found == SavedBytes(batch + hidden + logarithms + labels + total, 0)


def test_copies_of_weights_under_autocast_are_no_activations() -> None:
    model = network()
    found = saved_bytes(model, lambda: loss_of(model, autocast=True))
    batch, hidden = BATCH * INPUTS * 2, BATCH * HIDDEN * 2
    logarithms, labels, total = BATCH * CLASSES * 4, BATCH * 8, 4
    assert found.activations == batch + hidden + logarithms + labels + total
    assert found.weight_copies == HIDDEN * CLASSES * 2  # the gradient of the batch is not needed, so neither is layer 1


def test_a_storage_that_several_operators_save_counts_once_and_no_buffer_counts() -> None:
    model = nn.Sequential(nn.BatchNorm1d(INPUTS), nn.Sigmoid())
    shared = torch.ones(BATCH, INPUTS)

    def forward() -> Tensor:
        return (model(shared) * model(shared)).sum()

    first = saved_bytes(model, forward).activations
    outputs, statistics = 2 * BATCH * INPUTS * 4, 2 * 2 * INPUTS * 4  # of two calls; the batch is one storage
    assert first == BATCH * INPUTS * 4 + outputs + statistics


@pytest.mark.parametrize(
    ("make", "states"),
    [
        (lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9), 1),
        (lambda parameters: torch.optim.SGD(parameters, lr=0.1), 0),
        (torch.optim.AdamW, 2),
    ],
)
def test_an_optimiser_holds_as_many_numbers_for_each_weight_as_its_rule_has(make, states: int) -> None:  # type: ignore[no-untyped-def]
    model = network()
    optimiser = make(model.parameters())
    loss_of(model).backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    counters = 4 * 4 if states == 2 else 0  # AdamW counts the steps of each of four parameters
    assert held_bytes(model, optimiser) == HeldBytes(WEIGHTS, WEIGHTS, states * WEIGHTS + counters)


def test_counting_changes_no_gradient() -> None:
    model = network()
    plain, counted = loss_of(model), []
    saved_bytes(model, lambda: counted.append(loss_of(model)) or counted[0])
    gradients = [torch.autograd.grad(one, list(model.parameters())) for one in (plain, counted[0])]
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))
