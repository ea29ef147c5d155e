# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pybench.onnx_file.graph import OnnxGraph, Shape, Value, read_model
from pybench.onnx_file.inputs import (
    Misfit,
    batch_to_rewrite,
    check_sizes,
    fed_shapes,
    fixed_batch,
    fixed_seq_len,
    image_shape,
    parse_sizes,
    takes_ids,
)
from tests.support.onnx_files import write


def tensor(name: str, *shape: int | str | None, element: str = "float32") -> Value:
    return Value(name, "tensor", element, shape)


def test_the_leading_dimension_is_the_batch_and_the_second_of_ids_the_sequence() -> None:
    inputs = [tensor("x", "n", 3, 8), tensor("ids", None, "s", element="int64"), tensor("rate")]
    assert fed_shapes(inputs, 2, 16) == {"x": (2, 3, 8), "ids": (2, 16), "rate": ()}
    assert fed_shapes([tensor("x", 2, 4, element="uint8")], 2, 16) == {"x": (2, 4)}


@pytest.mark.parametrize(
    ("shape", "element", "factor", "said"),
    [
        ((1, 12), "float32", "batch", "the input x has 1 as its batch, the case 2"),
        (("n", 4), "int64", "seq_len", "the input x has 4 as its seq_len, the case 16"),
        ((4, "batch"), "float32", "model", "dimension 1 (batch) of the input x is free, and no factor sets it"),
        (("n", 0), "float32", "model", "dimension 1 of the input x has size 0"),
        ((), "float32", "model", "its inputs are scalars, so it has no batch dimension"),
        (None, "float32", "model", "the input x states no number of dimensions"),
        (("n", 4), "float8e4m3fn", "model", "the input x is float8e4m3fn, and what is fed is bfloat16, bool"),
    ],
)
def test_what_does_not_fit_names_the_factor_to_change(
    shape: Shape | None, element: str, factor: str, said: str
) -> None:
    with pytest.raises(Misfit) as raised:
        fed_shapes([Value("x", "tensor", element, shape)], 2, 16)
    assert raised.value.what.startswith(said)
    assert raised.value.factor == factor


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no-inputs", "it has no input: it computes constants"),
        ("sequence-input", "the type of the input x is sequence, not tensor"),
        ("optional-input", "the type of the input x is optional, not tensor"),
        ("string-input", "the input x is string, and what is fed"),
    ],
)
def test_what_cannot_be_fed_is_read_in_the_file(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(Misfit) as raised:
        fed_shapes(read_model(write(name, tmp_path)).graph.fed, 2, 16)
    assert raised.value.what.startswith(said)


def test_a_model_of_images_has_one_float_input_of_four_dimensions() -> None:
    assert image_shape([tensor("x", "n", 3, 8, 9)]) == (3, 8, 9)
    for wrong in ([], [tensor("x", "n", 3, 8, "w")], [tensor("x", "n", 3, 8, 8, element="uint8")],
                  [tensor("x", "n", 4)], [tensor("x", "n", 3, 8, 8)] * 2):  # fmt: skip
        with pytest.raises(Misfit, match="not images"):
            image_shape(wrong)


def test_sizes_of_free_dimensions_are_stated_by_name_or_position() -> None:
    image = tensor("image", "batch", 3, "height", None)
    assert fed_shapes([image], 2, 16, {"image.height": 8, "image.3": 9}) == {"image": (2, 3, 8, 9)}
    assert fed_shapes([image], 2, 16, {"image.2": 8, "image.3": 9}) == {"image": (2, 3, 8, 9)}
    dotted = tensor("serving.x", "batch", "n")
    assert fed_shapes([dotted], 2, 16, {"serving.x.n": 5}) == {"serving.x": (2, 5)}


def test_a_stated_size_counts_more_than_batch_and_sequence() -> None:
    inputs = [tensor("ids", "n", "s", element="int64"), tensor("x", 4, "n")]
    assert fed_shapes(inputs, 2, 16, {"ids.s": 7, "ids.n": 3}) == {"ids": (3, 7), "x": (4, 3)}


def test_a_fixed_leading_dimension_beside_a_free_one_is_no_batch() -> None:
    inputs = [tensor("x", "n", 3), tensor("table", 5, 3)]
    assert fed_shapes(inputs, 2, 16) == {"x": (2, 3), "table": (5, 3)}


def test_a_further_dimension_that_is_called_like_batch_or_sequence_has_its_size() -> None:
    inputs = [tensor("mask", "b", "s", "s"), tensor("ids", "b", "s", element="int64"), tensor("x", 1, "b")]
    assert fed_shapes(inputs, 2, 16) == {"mask": (2, 16, 16), "ids": (2, 16), "x": (1, 2)}
    for key, factor in (("mask.s", "seq_len"), ("mask.2", "seq_len"), ("x.b", "batch"), ("ids.b", "batch")):
        with pytest.raises(Misfit) as raised:
            check_sizes(inputs, {key: 4})
        assert (raised.value.what, raised.value.factor) == (f"{key} is what `{factor}` sets", "shapes")
        assert raised.value.hint == f"leave it out, and write {factor}: 4"


def test_fixed_lengths_that_differ_are_no_sequences() -> None:
    history, item = tensor("history", "n", 50, element="int64"), tensor("item", "n", 1, element="int64")
    ids = tensor("ids", "n", "s", element="int64")
    assert fed_shapes([history, item], 2, 16) == {"history": (2, 50), "item": (2, 1)}
    assert fed_shapes([item, ids], 2, 16) == {"item": (2, 1), "ids": (2, 16)}
    taken = [takes_ids([history, item]), takes_ids([item, ids]), takes_ids([history]), takes_ids([history, history])]
    assert taken == [False, True, True, True]
    assert [fixed_seq_len(each) for each in ([history], [history, item], [item, ids])] == [50, None, None]
    assert fed_shapes([item, tensor("x", "n", 3)], 2, 16) == {"item": (2, 1), "x": (2, 3)}
    assert not takes_ids([item, item])
    with pytest.raises(Misfit, match="the input history has 50 as its seq_len, the case 16"):
        fed_shapes([history, replace(history, name="mask")], 2, 16)


def test_a_hint_has_each_name_once() -> None:
    inputs = [tensor("mask", "n", "k", "k"), tensor("x", "n", "k", None)]
    with pytest.raises(Misfit) as raised:
        fed_shapes(inputs, 2, 16)
    assert raised.value.hint.startswith('set its size, as in `shapes: {mask: {k: 224}, x: {"2": 224}}`')


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"y.0": 1}, "y.0 names no input of the model"),
        ({"x.depth": 1}, "x.depth: the input x has n, 3"),
        ({"x.1": 4}, "x.1 is 3 in the file, and 4 is asked for"),
        ({"x.n": 4, "z.n": 5}, "the dimension n is 4 and 5 at once"),
    ],
)
def test_a_size_that_cannot_be_is_refused(sizes: dict[str, int], said: str) -> None:
    with pytest.raises(Misfit) as raised:
        fed_shapes([tensor("x", "n", 3), tensor("z", "n", 3)], 2, 16, sizes)
    assert raised.value.what.startswith(said)
    assert raised.value.factor == "shapes"


def test_a_file_may_fix_its_batch() -> None:
    assert fixed_batch([tensor("x", 4, 3), tensor("scale")]) == 4
    assert fixed_batch([tensor("x", "n", 3), tensor("table", 5, 3)]) is None
    assert fixed_batch([tensor("scale")]) is None


def test_a_leading_1_beside_another_fixed_size_is_no_batch() -> None:
    inputs = [tensor("timestep", 1), tensor("sample", 2, 4)]
    assert (fixed_batch(inputs), batch_to_rewrite(inputs, 1), batch_to_rewrite(inputs, 2)) == (2, 2, None)
    assert fed_shapes(inputs, 2, 16) == {"timestep": (1,), "sample": (2, 4)}
    with pytest.raises(Misfit, match="the input sample has 2 as its batch, the case 1"):
        fed_shapes(inputs, 1, 16)


@pytest.mark.parametrize(
    ("beside", "of_output", "batch"),
    [
        (tensor("boxes", 100, 4), 1, 1),
        (tensor("image_size", 2), 1, 1),
        (tensor("timestep", 4), 1, 1),
        (tensor("candidates", 4, 4), 4, 4),
        (tensor("candidates", 4, 4), "n", 4),
        (tensor("candidates", 4, 4), 7, 4),
    ],
)
def test_where_leading_sizes_differ_the_first_output_tells_the_batch(
    beside: Value, of_output: int | str, batch: int
) -> None:
    graph = OnnxGraph((), {}, {}, {}, (tensor("x", 1, 16), beside), (tensor("y", of_output, 8), tensor("z", 100)))
    assert fixed_batch(graph.fed) == batch
    assert fed_shapes(graph.fed, batch, 16) == {"x": (1, 16), beside.name: beside.shape}


def test_of_several_sizes_above_one_the_first_output_tells_the_batch_too() -> None:
    inputs = (tensor("x", 2, 3), tensor("table", 5, 3))
    graph = OnnxGraph((), {}, {}, {}, inputs, (tensor("y", 2, 8),))
    assert fed_shapes(graph.fed, 2, 16) == {"x": (2, 3), "table": (5, 3)}
    with pytest.raises(Misfit, match="the input x has 2 as its batch, the case 5"):
        fed_shapes(graph.fed, 5, 16)


def test_several_fixed_sizes_have_no_batch_but_an_engine_was_built_for_one() -> None:
    inputs = [tensor("x", 2, 3), tensor("scale"), tensor("table", 5, 3)]
    assert fixed_batch(inputs) is None
    for batch in (2, 5):
        with pytest.raises(Misfit, match=r"fixed at different sizes \(x 2, table 5\), so none is the batch"):
            fed_shapes(inputs, batch, 16)
    assert fed_shapes(inputs, 2, 16, is_opened=True) == {"x": (2, 3), "scale": (), "table": (5, 3)}


def test_sizes_are_read_from_text() -> None:
    assert parse_sizes("image.height=224, a.b.0=3") == {"image.height": 224, "a.b.0": 3}
    for wrong in ("image=3", "image.height", "image.height=0", "image.height=x", "x.n=3,x.n=4", ""):
        with pytest.raises(ValueError, match=r"not of the form|given twice|a size is at least 1"):
            parse_sizes(wrong)
