# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import warnings
import weakref

import numpy as np
import pytest
import torch

from pybench.errors import UnsupportedError
from pybench.models.building import build
from pybench.runtimes import torch as runtime
from pybench.runtimes.session import module_spec
from pybench.runtimes.torch import TorchSession

PIXELS = np.random.default_rng(0).random((3, 1, 8, 8), np.float32)


def open_cpu(precision: str) -> TorchSession:
    kind = runtime.set_up(precision, threads=1, device="cpu")
    spec = module_spec("images", (None, 1, 8, 8), takes_ids=False)
    return runtime.open_session(build("digits-cnn"), spec, precision=precision, kind=kind)


def test_fp32_gives_what_the_module_gives() -> None:
    session = open_cpu("fp32")
    with torch.inference_mode():
        expected = build("digits-cnn")(torch.from_numpy(PIXELS)).numpy()
    assert np.allclose(session.run({"images": PIXELS})[0], expected, atol=1e-6)
    assert session.device == "cpu"
    assert (
        session.model_bytes == 4 * 25_978 + 4 * 2 * (16 + 32 + 64) + 8 * 3
    )  # parameters, running statistics, counters


def test_bf16_computes_in_bf16_and_answers_in_float32() -> None:
    exact, session = open_cpu("fp32").run({"images": PIXELS})[0], open_cpu("bf16")
    outputs = session.run({"images": PIXELS})[0]
    assert outputs.dtype == np.float32
    assert {parameter.dtype for parameter in session.module.parameters()} == {torch.bfloat16}
    error = np.linalg.norm(outputs - exact) / np.linalg.norm(exact)
    assert 1e-5 < error < 0.05


@pytest.mark.parametrize(("allowed", "word"), [(True, "tf32"), (False, "ieee")])
def test_tf32_is_set_by_both_interfaces_which_then_agree(allowed: bool, word: str) -> None:
    runtime.allow_tf32(allowed)
    assert set(runtime.flags().values()) == {word}
    assert torch.backends.cuda.matmul.allow_tf32 is allowed  # raises where the two interfaces disagree
    assert torch.backends.cudnn.allow_tf32 is allowed


def test_the_old_interface_serves_where_the_new_one_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        allow_tf32 = True

    class OldCudnn:
        allow_tf32 = True

    monkeypatch.setattr(torch.backends.cuda, "matmul", Old)
    monkeypatch.setattr(torch.backends, "cudnn", OldCudnn)
    runtime.allow_tf32(False)
    assert (Old.allow_tf32, OldCudnn.allow_tf32) == (False, False)
    assert set(runtime.flags().values()) == {"ieee"}


def test_what_torch_says_once_of_the_old_interface_is_said_while_tf32_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch 2.9 warns whoever first reads it; else that is Inductor while it compiles. Warnings are errors here."""

    class Matmul:
        fp32_precision = "none"
        said = False

        def _read(self) -> bool:
            if not self.said:
                self.said = True
                warnings.warn("Please use the new API settings to control TF32 behavior", UserWarning, stacklevel=2)
            return self.fp32_precision == "tf32"

        def _write(self, allowed: bool) -> None:
            self.fp32_precision = "tf32" if allowed else "ieee"

        allow_tf32 = property(_read, _write)

    monkeypatch.setattr(torch.backends.cuda, "matmul", Matmul())
    runtime.allow_tf32(False)
    assert torch.backends.cuda.matmul.allow_tf32 is False


@pytest.mark.parametrize(
    ("precision", "code"),
    [("int8", "no_int8_in_torch"), ("amp-bf16", "no_amp-bf16_in_torch"), ("fp16", "no_gpu"), ("tf32", "no_gpu")],
)
def test_what_torch_does_not_do_on_a_cpu_is_unsupported_and_says_so(precision: str, code: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        open_cpu(precision)
    assert caught.value.reason.stored_code == code


def test_a_missing_gpu_is_unsupported() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(UnsupportedError) as caught:
        runtime.set_up("fp32", threads=1, device="cuda")
    assert caught.value.reason.stored_code == "no_gpu"


def test_a_batch_that_may_only_be_read_is_fed_all_the_same() -> None:
    session = open_cpu("fp32")
    fixed = PIXELS.copy()
    fixed.flags.writeable = False
    session.bind_feed()({"images": fixed})()
    session.bind({"images": PIXELS}, transfers=False)()


def test_a_batch_is_let_go_before_the_next_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_cpu("bf16")  # the type in which a batch is copied on a CPU, too
    there: list[weakref.ref[torch.Tensor]] = []
    alive: list[int] = []
    move = session._to_device

    def moved(host: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        alive.append(sum(one() is not None for one in there))
        found = move(host, non_blocking)
        there.append(weakref.ref(found))
        return found

    monkeypatch.setattr(session, "_to_device", moved)
    launch = session.bind_feed()
    for _ in range(3):
        launch({"images": PIXELS})()
    assert alive == [0, 0, 0]
    assert session.profile().running


def test_transfers_are_refused_on_a_cpu() -> None:
    with pytest.raises(UnsupportedError) as caught:
        open_cpu("fp32").bind({"images": PIXELS}, transfers=True)
    assert caught.value.reason.stored_code == "no_gpu"
