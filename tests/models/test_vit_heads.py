# SPDX-License-Identifier: Apache-2.0
"""ViT-S with heads: its operations, its three dispatches, and when each head ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from pybench.case import Case
from pybench.catalogue.heads import DISPATCHES, MOST_HEADS, heads_of
from pybench.catalogue.models import MODELS
from pybench.errors import UnsupportedError
from pybench.measure.timing.head_log import NOT_RUN, HeadLog
from pybench.models.export import export_onnx, export_part
from pybench.models.vit_heads import VitHeads
from pybench.runtimes import onnxruntime

VIT = Case(workload="infer", model="vit-heads", runtime="torch")
IMAGES = torch.linspace(-1, 1, 3 * 224 * 224).reshape(1, 3, 224, 224)


def small(dispatch: str, heads: int = 3) -> VitHeads:
    torch.manual_seed(0)
    return VitHeads(1, heads, dispatch, width=64, layers=1).eval()


@pytest.mark.parametrize("dispatch", DISPATCHES)
def test_the_row_counts_the_operations_that_the_layers_do(dispatch: str) -> None:
    row = VIT.with_factors(heads=4, dispatch=dispatch).model_row
    assert row is not None
    with torch.device("meta"):
        module = VitHeads(1, **row.arguments)
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            module._one_after_another(torch.zeros(1, *row.shape))
    assert 2 * row.multiply_adds == pytest.approx(counter.get_total_flops())


def test_heads_come_in_the_order_of_their_rows_and_again() -> None:
    assert [kind.name for kind in heads_of(MOST_HEADS)] == 2 * ["depth", "boxes", "classes"]


def test_streams_compute_what_one_engine_computes() -> None:
    alone, at_once = small("one-engine"), small("streams")
    at_once.load_state_dict(alone.state_dict())
    with torch.inference_mode():
        assert torch.equal(alone(IMAGES), at_once(IMAGES))
    ends = at_once.log.take()
    assert ends.shape == (1, 3)
    assert (ends > 0).all()


def test_networks_one_after_another_end_one_after_another_and_have_own_backbones() -> None:
    module = small("sequential")
    assert len(module.backbones) == 3
    with torch.inference_mode():
        assert module(IMAGES).shape == (1, 196 * 256 + 196 * 5 + 1000)
    (ends,) = module.log.take()
    assert ends[0] < ends[1] < ends[2]


def test_a_head_runs_at_its_rate() -> None:
    log = HeadLog(3)
    log.rates_hz = (30.0, 10.0, 20.0)
    due = [log.begin() for _ in range(6)]
    assert [sum(number in each for each in due) for number in range(3)] == [6, 2, 4]
    assert (log.take() == NOT_RUN).all()


def test_heads_that_are_not_due_do_not_run() -> None:
    module = small("streams")
    module.log.rates_hz = (2.0, 1.0, 1.0)
    with torch.inference_mode():
        sizes = [module(IMAGES).shape[1] for _ in range(2)]
    assert sizes == [196 * 256, 196 * 256 + 196 * 5 + 1000]
    assert (module.log.take() == NOT_RUN).tolist() == [[False, True, True], [False, False, False]]


@pytest.mark.slow
@pytest.mark.parametrize("dispatch", ["sequential", "one-engine"])
def test_an_exported_network_computes_what_torch_computes(dispatch: str, tmp_path: Path) -> None:
    row, module = VIT.with_factors(dispatch=dispatch).model_row, small(dispatch, heads=2)
    assert row is not None
    path = tmp_path / "model.onnx"
    export_onnx(module, row, path, {})
    session = onnxruntime.open_session(path, precision="fp32", threads=1, device="cpu")
    with torch.inference_mode():
        expected = module(IMAGES).numpy()
    assert np.allclose(session.run({"images": IMAGES.numpy()})[0], expected, atol=1e-4)


@pytest.mark.slow
def test_exported_parts_behind_each_other_compute_what_the_whole_computes(tmp_path: Path) -> None:
    module = small("streams", heads=4)
    parts = VIT.with_factors(runtime="tensorrt", dispatch="streams").parts
    assert parts is not None
    sessions = {}
    for name in parts.names:
        export_part(module, name, tmp_path / f"{name}.onnx", {})
        sessions[name] = onnxruntime.open_session(tmp_path / f"{name}.onnx", precision="fp32", threads=1, device="cpu")
    features = sessions[parts.trunk].run({"images": IMAGES.numpy()})[0]
    found = [sessions[name].run({"features": features})[0].reshape(1, -1) for name in parts.branches]
    with torch.inference_mode():
        expected = module(IMAGES).numpy()[:, : sum(each.size for each in found)]
    assert np.allclose(np.concatenate(found, axis=1), expected, atol=1e-4)
    with pytest.raises(UnsupportedError, match="cannot be taken apart"):
        export_part(torch.nn.Linear(1, 1), "depth", tmp_path / "none.onnx", {})


def test_the_row_without_arguments_is_of_the_usual_heads() -> None:
    row = VIT.model_row
    assert row is not None
    assert row.multiply_adds == pytest.approx(MODELS["vit-heads"].multiply_adds, rel=0.02)
