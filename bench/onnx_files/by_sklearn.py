# SPDX-License-Identifier: Apache-2.0
"""Files of skl2onnx, onnxmltools and onnxconverter-common: trees, texts, columns, maps as outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import skl2onnx
from made import made
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

SKL2ONNX = f"skl2onnx {skl2onnx.__version__}"
RANDOM = np.random.default_rng(1)
ROWS = RANDOM.normal(size=(60, 4)).astype(np.float32)
CLASSES = np.arange(60) % 3


@made("sklearn-logistic", SKL2ONNX, "outputs a sequence of maps (ZipMap)")
def _(path: Path) -> None:
    onnx.save(to_onnx(LogisticRegression().fit(ROWS, CLASSES), ROWS[:1]), path)


@made("sklearn-forest", SKL2ONNX, "trees: the domain ai.onnx.ml, no product")
def _(path: Path) -> None:
    forest = RandomForestClassifier(5, max_depth=3, random_state=1).fit(ROWS, CLASSES)
    onnx.save(to_onnx(forest, ROWS[:1], options={"zipmap": False}), path)


@made("sklearn-mlp", SKL2ONNX, "Scaler and MatMul; the first output is a label")
def _(path: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=20, random_state=1))
    onnx.save(to_onnx(pipeline.fit(ROWS, CLASSES), ROWS[:1], options={"zipmap": False}), path)


@made("sklearn-columns", SKL2ONNX, "one input of strings, one of floats")
def _(path: Path) -> None:
    import pandas as pd

    table = pd.DataFrame({"colour": np.array(["red", "blue", "green"])[CLASSES], "size": ROWS[:, 0]})
    columns = ColumnTransformer([("colour", OneHotEncoder(), ["colour"]), ("size", StandardScaler(), ["size"])])
    pipeline = make_pipeline(columns, LogisticRegression()).fit(table, CLASSES)
    inputs = [("colour", StringTensorType([None, 1])), ("size", FloatTensorType([None, 1]))]
    onnx.save(skl2onnx.convert_sklearn(pipeline, initial_types=inputs), path)


@made("sklearn-tfidf", SKL2ONNX, "input of strings, Tokenizer of com.microsoft")
def _(path: Path) -> None:
    texts = ["one small text", "another text", "a third one"]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [0, 1, 2])
    onnx.save(skl2onnx.convert_sklearn(model, initial_types=[("text", StringTensorType([None, 1]))]), path)


@made("lightgbm-regressor", "onnxmltools 1.16.0 of lightgbm 4.7.0", "a tree ensemble")
def _(path: Path) -> None:
    import lightgbm
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType as Floats

    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1).fit(ROWS, ROWS[:, 0])
    onnx.save(onnxmltools.convert_lightgbm(model, initial_types=[("x", Floats([None, 4]))]), path)


@made("converted-to-float16", "onnxconverter-common 1.16.0", "weights in FP16, input and output in FP32")
def _(path: Path) -> None:
    from onnxconverter_common import float16

    pipeline = make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=20, random_state=1)).fit(ROWS, CLASSES)
    graph = to_onnx(pipeline.steps[1][1], ROWS[:1], options={"zipmap": False})
    onnx.save(float16.convert_float_to_float16(graph, keep_io_types=True), path)
