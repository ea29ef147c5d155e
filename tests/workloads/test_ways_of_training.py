# SPDX-License-Identifier: Apache-2.0
"""Each way of training changes which operators run, and leaves the same gradients. Proved by what torch dispatches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pybench.case import Case
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.models import Model
from pybench.errors import UnsupportedError
from pybench.measurement.result import Result, RunRequest
from pybench.models.tinylm import Size, TinyLm
from pybench.workloads.train import Trainer
from tests.support.making import run

LAYERS = 1


def tiny(outputs: int) -> TinyLm:
    """A TinyLM that costs a test nothing."""
    return TinyLm(Size(64, LAYERS, 1), outputs, positions=16)


ROW = Model(
    name="tiny",
    kind="language",
    build=f"{__name__}:tiny",
    input="ids",
    outputs=128,
    head="head.weight",
    multiply_adds=1e5,
    vocabulary=128,
    longest_sequence=16,
)
TINY = Case(
    workload="train", model="tiny", runtime="torch", device="cpu", batch=4, seq_len=16, threads=1, iterations=3,
    warmup_iterations=1, idle_window_s=0.0, catalogue=BUILT_IN.with_rows([ROW]),
)  # fmt: skip
TOKENS = torch.arange(64).view(4, 16) % 128


class Recorded(TorchDispatchMode):
    """Counts the operators that reach a device."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.found[func.overloadpacket._qualified_op_name.removeprefix("aten::")] += 1
        return func(*args, **(kwargs or {}))


def trainer_of(case: Case) -> Trainer:
    request = RunRequest(case=case, block=1, attempt=1, seed=3, artefacts={}, files={})
    return Trainer(request, "cpu", 128)


def step_of(**changes: Any) -> tuple[Counter[str], Trainer]:
    """The operators of the second step, and the trainer after it."""
    trainer = trainer_of(TINY.with_factors(**changes))
    trainer.launch(TOKENS)()
    with Recorded() as recorded:
        trainer.launch(TOKENS)()
    return recorded.found, trainer


def gradients(trainer: Trainer) -> list[torch.Tensor]:
    return [parameter.grad.clone() for parameter in trainer.model.parameters() if parameter.grad is not None]


def test_gradient_checkpointing_computes_each_block_again_and_finds_the_same_gradients() -> None:
    plain, one = step_of()
    again, other = step_of(gradient_checkpointing=True)
    assert again["gelu"] - plain["gelu"] == LAYERS
    assert again["mm"] > plain["mm"]
    for first, second in zip(gradients(one), gradients(other), strict=True):
        torch.testing.assert_close(second, first)


def kept_bytes(trainer: Trainer) -> int:
    """Bytes that a forward pass keeps for the gradients."""
    sizes: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        trainer._loss(TOKENS)
    return sum(sizes.values())


def test_gradient_checkpointing_keeps_less() -> None:
    assert kept_bytes(trainer_of(TINY.with_factors(gradient_checkpointing=True))) < kept_bytes(trainer_of(TINY))


def test_accumulation_steps_once_for_all_parts_and_finds_the_same_gradients() -> None:
    whole, one = step_of()
    parts, other = step_of(accumulation=4)
    assert parts["gelu"] == 4 * whole["gelu"]
    assert parts["addcdiv_"] == whole["addcdiv_"] > 0  # AdamW's last operator, once for each parameter
    for first, second in zip(gradients(one), gradients(other), strict=True):
        torch.testing.assert_close(second, first)
    torch.testing.assert_close(other.losses[-1], one.losses[-1])


def test_a_fused_optimiser_is_one_operator_and_steps_as_far() -> None:
    plain, one = step_of(fused_optimiser=False)
    fused, other = step_of(fused_optimiser=True)
    assert fused["_fused_adamw_"] == 1
    assert fused["addcdiv_"] == plain["_fused_adamw_"] == 0
    assert plain["addcdiv_"] > 0
    for first, second in zip(one.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(second, first)


def losses(result: Result) -> list[float | None]:
    return [result.metrics[name].value for name in ("loss_first_nats", "loss_last_nats")]


def test_computing_alone_uses_one_batch_and_waits_for_none() -> None:
    fed, alone = run(TINY), run(TINY.with_factors(fed=False))
    assert "wait_share_ratio" in fed.metrics
    assert "wait_share_ratio" not in alone.metrics
    assert "stays on the device" in alone.labels["iteration"]
    first, last = losses(alone)
    assert first is not None
    assert last is not None
    assert last < first  # of the same tokens; new random tokens cannot be learnt


@pytest.mark.slow
def test_a_compiled_step_runs_fused_kernels_and_finds_the_same_gradients() -> None:
    _, eager = step_of()
    trainer = trainer_of(TINY.with_factors(runtime="torch-compile"))
    try:
        trainer.make_ready()
    except UnsupportedError as error:
        if error.reason.stored_code != "no_compiler":
            raise
        pytest.skip(error.message)
    trainer.launch(TOKENS)()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        trainer.launch(TOKENS)()
    names = {event.name for event in profile.events() or ()}
    assert "aten::gelu" not in names
    assert any(name.startswith("CompiledFunctionBackward") for name in names)
    assert trainer._pass.compile_s is not None
    assert trainer._pass.compile_s > 0
    torch.testing.assert_close(trainer.losses[-1], eager.losses[-1])
    for first, second in zip(gradients(eager), gradients(trainer), strict=True):
        torch.testing.assert_close(second, first, rtol=1e-3, atol=1e-6)
