# SPDX-License-Identifier: Apache-2.0
"""Files of jax2onnx."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import onnx
from jax2onnx import onnx_function, to_onnx
from made import made

JAX = f"jax2onnx {version('jax2onnx')} of JAX {jax.__version__}"
WEIGHT = jnp.linspace(-1, 1, 48, dtype=jnp.float32).reshape(12, 4)


@made("jax-product", JAX, "batch is the symbol B")
def _(path: Path) -> None:
    onnx.save(to_onnx(lambda x: jax.nn.relu(x @ WEIGHT), [("B", 12)]), path)


@made("jax-loop", JAX, "Loop of fori_loop")
def _(path: Path) -> None:
    onnx.save(to_onnx(lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y * 0.5 + 1.0, x), [("B", 4)]), path)


@onnx_function
def half(x: jax.Array) -> jax.Array:
    return jnp.tanh(x) * 0.5


@made("jax-functions", JAX, "a local function that is called twice")
def _(path: Path) -> None:
    onnx.save(to_onnx(lambda x: half(half(x)) @ WEIGHT, [("B", 12)]), path)
