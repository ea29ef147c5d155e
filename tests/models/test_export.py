# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch

from pybench.models.building import build
from pybench.models.catalogue import BUILT_IN
from pybench.models.export import OPSET, export_onnx
from pybench.models.tinylm import Size, TinyLm
from pybench.runtimes import onnxruntime


def test_two_exports_are_equal_and_hold_no_path_of_this_machine(tmp_path: Path) -> None:
    for name in ("one", "two"):
        export_onnx(
            build("digits-cnn"), BUILT_IN["digits-cnn"], tmp_path / f"{name}.onnx", {"pybench.weights": "random"}
        )
    content = (tmp_path / "one.onnx").read_bytes()
    assert content == (tmp_path / "two.onnx").read_bytes()
    assert b"site-packages" not in content
    assert str(Path.home()).encode() not in content
    assert b"digits_cnn.py" not in content


def test_an_export_has_a_free_batch_and_gives_what_torch_gives(tmp_path: Path) -> None:
    model = build("digits-cnn", seed=2)
    export_onnx(model, BUILT_IN["digits-cnn"], tmp_path / "model.onnx", {"a": "b"})
    stored = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(stored, full_check=True)
    assert stored.opset_import[0].version == OPSET
    assert {entry.key: entry.value for entry in stored.metadata_props} == {"a": "b"}
    session = onnxruntime.open_session(tmp_path / "model.onnx", precision="fp32", threads=1, device="cpu")
    assert session.inputs[0].shape == (None, 1, 8, 8)
    for batch in (1, 7):
        pixels = np.random.default_rng(batch).random((batch, 1, 8, 8), np.float32)
        with torch.inference_mode():
            expected = model(torch.from_numpy(pixels)).numpy()
        assert np.allclose(session.run({"images": pixels})[0], expected, rtol=1e-4, atol=1e-5)


def test_a_language_model_is_exported_with_a_free_sequence(tmp_path: Path) -> None:
    model = TinyLm(Size(64, 1, 1), vocabulary=90).eval()
    export_onnx(model, BUILT_IN["tinylm-small"], tmp_path / "lm.onnx", {})
    session = onnxruntime.open_session(tmp_path / "lm.onnx", precision="fp32", threads=1, device="cpu")
    for shape in ((1, 5), (3, 33)):
        ids = np.random.default_rng(0).integers(0, 90, shape)
        with torch.inference_mode():
            expected = model(torch.from_numpy(ids)).numpy()
        assert np.allclose(session.run({"ids": ids})[0], expected, rtol=1e-4, atol=1e-5)
