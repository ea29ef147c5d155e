# SPDX-License-Identifier: Apache-2.0
"""Which output is judged: the one that the case names, wherever a session returns it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.case import Case
from pybench.errors import InputError
from pybench.measurement.labelled import judged_output
from tests.support.labelled import write_text_classifier
from tests.support.making import request_of


@pytest.mark.parametrize(
    ("output", "own", "place"),
    [
        ("logits", (), 1),
        ("logits", ("pooled", "logits"), 1),
        ("logits", ("logits", "pooled"), 0),
        ("pooled", ("logits", "pooled"), 1),
        (None, ("logits", "pooled"), 1),
        (None, ("logits",), 0),
        (None, (), 0),
    ],
)
def test_an_output_is_chosen_by_its_name_in_the_order_of_the_session(
    tmp_path: Path, output: str | None, own: tuple[str, ...], place: int
) -> None:
    write_text_classifier(tmp_path)
    case = Case(workload="accuracy", model="text.onnx", runtime="onnxruntime", output=output)
    assert judged_output(request_of(case, {"model": tmp_path / "text.onnx"}), own) == place


def test_a_name_that_no_output_has_is_an_error(tmp_path: Path) -> None:
    write_text_classifier(tmp_path)
    case = Case(workload="accuracy", model="text.onnx", runtime="onnxruntime", output="logit")
    request = request_of(case, {"model": tmp_path / "text.onnx"})
    with pytest.raises(InputError, match="the model has no output logit"):
        judged_output(request, ())
