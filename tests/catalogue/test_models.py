# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import pytest
from torch import nn

from pybench.catalogue.code import named_code
from pybench.catalogue.models import MODELS, Model
from pybench.catalogue.stored import row_from_json, row_to_json


def test_a_row_comes_back_from_json() -> None:
    for model in MODELS.values():
        assert row_from_json(json.loads(json.dumps(row_to_json(model)))) == model


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_code_that_a_row_names_is_there(model: Model) -> None:
    built = named_code(model.build)
    assert callable(built)
    if isinstance(built, type):
        assert issubclass(built, nn.Module)
    if model.translate is not None:
        assert named_code(model.translate)({}) == {}


def test_the_input_follows_from_the_kind() -> None:
    for model in MODELS.values():
        assert model.takes_ids is (model.kind in ("language", "encoder")) is (not model.shape)
        assert model.takes_ids is (model.longest_sequence is not None)
        if model.images_to_train is not None or model.trained_on is not None:
            assert model.takes_images, "only image models are trained here"
