# SPDX-License-Identifier: Apache-2.0
"""Files of tf2onnx and of Keras' own export."""

from __future__ import annotations

import os
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf
import tf2onnx
from made import made

TF2ONNX = f"tf2onnx {tf2onnx.__version__} of TensorFlow {tf.__version__}"
KERAS = f"Keras {keras.__version__}, Model.export"


def convert(function: object, signature: list[tf.TensorSpec], path: Path, **how: object) -> None:
    tf2onnx.convert.from_function(
        tf.function(function, input_signature=signature), input_signature=signature, output_path=str(path), **how
    )


@made("tf-images", TF2ONNX, "channels last: Transpose in front of each Conv; batch named unk__N")
def _(path: Path) -> None:
    kernel = tf.constant(np.random.default_rng(1).normal(size=(3, 3, 3, 4)).astype(np.float32))
    last = tf.constant(np.ones((4, 2), np.float32))
    convert(
        lambda x: tf.matmul(tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME")), [1, 2]), last),
        [tf.TensorSpec([None, 8, 8, 3], tf.float32, name="x")], path,
    )  # fmt: skip


@made("tf-loop", TF2ONNX, "Loop with a captured tensor")
def _(path: Path) -> None:
    def body(x: tf.Tensor) -> tf.Tensor:
        steps = tf.cast(tf.reduce_sum(tf.abs(x)), tf.int32) % 5 + 1
        return tf.while_loop(lambda i, _: i < steps, lambda i, y: (i + 1, y * 0.5 + x), [0, x])[1]

    convert(body, [tf.TensorSpec([None, 4], tf.float32, name="x")], path)


@made("tf-cond", TF2ONNX, "If inside If, opset 11")
def _(path: Path) -> None:
    def body(x: tf.Tensor) -> tf.Tensor:
        total = tf.reduce_sum(x)
        return tf.cond(total > 0, lambda: tf.cond(total > 9, lambda: x * 3.0, lambda: x * 2.0), lambda: -x)

    convert(body, [tf.TensorSpec([None, 4], tf.float32, name="x")], path, opset=11)


@made("tf-unranked", TF2ONNX, "input without a number of dimensions")
def _(path: Path) -> None:
    convert(lambda x: tf.nn.relu(x) * 2.0, [tf.TensorSpec(None, tf.float32, name="x")], path)


@made("tf-uint8-decoded", TF2ONNX, "input uint8, scaled inside")
def _(path: Path) -> None:
    weight = tf.constant(np.ones((48, 3), np.float32))
    convert(
        lambda x: tf.matmul(tf.reshape(tf.cast(x, tf.float32) / 255.0, [-1, 48]), weight),
        [tf.TensorSpec([None, 4, 4, 3], tf.uint8, name="x")], path,
    )  # fmt: skip


@made("keras-dense", KERAS, "batch without a name")
def _(path: Path) -> None:
    model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(3, "softmax")])
    model(np.zeros((1, 12), np.float32))
    model.export(str(path), format="onnx", verbose=False)


@made("keras-lstm", KERAS, "free steps in dimension 1")
def _(path: Path) -> None:
    model = keras.Sequential([keras.Input((None, 6)), keras.layers.LSTM(5), keras.layers.Dense(2)])
    model(np.zeros((1, 3, 6), np.float32))
    model.export(str(path), format="onnx", verbose=False)
