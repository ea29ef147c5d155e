# SPDX-License-Identifier: Apache-2.0
"""bfloat16, which numpy does not have: the type of ml_dtypes, and its way into and out of onnxruntime.

onnxruntime takes such a tensor as its raw 16 bits and gives none back as an array, so outputs are read from memory.
That is done on the CPU only.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.catalogue.causes import Cause
from pybench.errors import UnsupportedError

NAME = "bfloat16"
ONNX_TYPE = 16  # of TensorProto.DataType
_OF_ONNXRUNTIME = "tensor(bfloat16)"


def bfloat16_type(what: str) -> np.dtype[Any]:
    """The type of `what`, a tensor. Raises UnsupportedError where ml_dtypes is not installed."""
    try:
        import ml_dtypes
    except ImportError as error:
        raise UnsupportedError(
            f"{what} is bfloat16, and ml_dtypes is not installed",
            code=Cause.NO_BF16_TENSORS,
            hint="install pybench-campaign[onnx]",
        ) from error
    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return found


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    return dtype.name == NAME


def ort_value(array: npt.NDArray[Any], kind: str) -> Any:
    """An array as a value of onnxruntime on `cpu` or `cuda`. On the CPU it is read where it lies."""
    from onnxruntime import OrtValue

    if is_bfloat16(array.dtype):
        return OrtValue.ortvalue_from_numpy_with_onnx_type(np.ascontiguousarray(array).view(np.uint16), ONNX_TYPE)
    return OrtValue.ortvalue_from_numpy(array, kind, 0)


def array_of(value: Any) -> npt.NDArray[Any]:
    """The array of a value on the CPU."""
    if value.data_type() != _OF_ONNXRUNTIME:
        array: npt.NDArray[Any] = value.numpy()
        return array
    shape = tuple(value.shape())
    bits = (ctypes.c_uint16 * int(np.prod(shape))).from_address(value.data_ptr())
    return np.array(bits, np.uint16).reshape(shape).view(bfloat16_type("an output"))


def run_raw(session: Any, names: list[str] | None, inputs: dict[str, npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """`session.run` on the CPU, for models that take or give bfloat16."""
    wanted = names or [value.name for value in session.get_outputs()]
    held = {name: ort_value(array, "cpu") for name, array in inputs.items()}
    return [array_of(value) for value in session.run_with_ort_values(wanted, held)]


def has_bfloat16(session: Any) -> bool:
    """Whether a session of onnxruntime takes or gives bfloat16."""
    return any(value.type == _OF_ONNXRUNTIME for value in (*session.get_inputs(), *session.get_outputs()))
