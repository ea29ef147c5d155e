# SPDX-License-Identifier: Apache-2.0
"""The built-in models: what is known of each without building it.

Their order is the order of lists for people. A user's own ONNX file has no row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pybench.catalogue.code import named_code
from pybench.catalogue.options import Option
from pybench.catalogue.plugins import Plugin
from pybench.catalogue.rows import Rows

ModelKind = Literal["image", "language", "encoder", "volume", "vector", "perception"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One built-in model.

    name: as plans name it
    kind: what it takes; `language` continues text, `encoder` classifies a sequence of token ids
    build: `module:callable`, from the number of outputs to an untrained torch module; where it is `sized`, from the
        number of outputs and the height of its images
    input: name of its one input
    shape: of the input without the batch dimension; empty for models of token ids, whose one dimension is `seq_len`
    outputs: classes as published, or the vocabulary of a language model
    head: the parameter whose first dimension is the number of outputs
    multiply_adds: of one sample, or of one token for models of token ids; from the shapes of the layers
    least_size: the least height and width of images that it can be built for; None: it takes `shape` and no other
    norm_stride: pixels of an image, along one side, for one value of its last batch norm; None: it has none
    sized: whether its layers depend on the height of its images
    shaped_by: factors that its layers follow; `build` takes each of them by its name
    architecture: the one of them that tells architectures apart, which reports then compare; None: there is none
    arguments: their values; empty for the row itself (`shaped`)
    work: `module:callable`, from shape, outputs and arguments to `multiply_adds`; None: they do not depend on arguments
    parts: `module:callable`, from arguments to the parts that a runtime may open one by one (`heads.ModelParts`), or
        None; its module then has `part(name)` (pybench/models/export.py). None: it is always whole
    vocabulary: ids that may be fed; None for models that take no ids
    longest_sequence: tokens of the longest sequence that it has learned positions for
    embedding: the parameter whose first dimension is the number of ids, where the model can be built for another number
        than `vocabulary`: `build` then takes that number, too
    translate: `module:callable`, from another library's tensors by name to those of the model; None: they are equal
    trained_on: images on which it is trained where no checkpoint is given, and judged where no images are given
    judged_on: the data set, other than images, that its accuracy is judged on. Weights that are to be judged are
        trained on it first, unless they come from a file; elsewhere they stay random
    images_to_train: how many generated images it sees in training; None: it is not trained on them
    training_batch: samples of one training step
    training_rate: highest learning rate in training: with AdamW as it is, with SGD for 256 images a step
    training_epochs: how often it sees each sample of `judged_on` in training
    training_noise_ratio: share of the ids of a text that training replaces with random ones: a large model would learn
        few texts by heart
    is_convolutional: whether most of its weights are those of convolutions
    trains_on_cpu: whether training without a GPU takes minutes; the others would take days
    drawn_by: `module:callable`, from batch and seed to inputs float64 [batch, *shape], where random numbers would mean
        nothing to it; None: they are standard normal
    solved_by: `module:name` of what finds the same without a network: solver -> function from inputs float64 into
        outputs float64, both with the batch first; None: nothing does
    solved_from_bytes: of the numbers that these solvers keep
    plugin: the package that adds it; None: pybench
    options: what plans can set of it, next to factors
    """

    name: str
    kind: ModelKind
    build: str
    input: str
    shape: tuple[int, ...] = ()
    outputs: int
    head: str
    multiply_adds: float
    least_size: int | None = None
    norm_stride: int | None = None
    sized: bool = False
    shaped_by: tuple[str, ...] = ()
    architecture: str | None = None
    arguments: Mapping[str, str | int] = field(default_factory=dict)
    work: str | None = None
    parts: str | None = None
    vocabulary: int | None = None
    longest_sequence: int | None = None
    embedding: str | None = None
    translate: str | None = None
    trained_on: str | None = None
    judged_on: str | None = None
    images_to_train: int | None = None
    training_batch: int = 256
    training_rate: float = 0.4
    training_epochs: int = 1
    training_noise_ratio: float = 0.0
    is_convolutional: bool = False
    trains_on_cpu: bool = False
    drawn_by: str | None = None
    solved_by: str | None = None
    solved_from_bytes: int = 0
    plugin: Plugin | None = None
    options: tuple[Option, ...] = ()

    @property
    def takes_ids(self) -> bool:
        """Whether its input is token ids, so that `seq_len` has a meaning."""
        return self.vocabulary is not None

    @property
    def takes_text(self) -> bool:
        """Whether tokenized text can be fed to it."""
        return self.kind == "language"

    @property
    def takes_images(self) -> bool:
        """Whether it classifies images."""
        return self.kind == "image"

    def normalised_values(self, samples: int) -> int | None:
        """How many values of a channel the last batch norm sees in training, at sizes that the stride divides; else at
        most as many. None: the model has no batch norm."""
        if self.norm_stride is None:
            return None
        return samples * math.prod(-(-side // self.norm_stride) for side in self.shape[1:])

    def at_size(self, size: int | None) -> Model:
        """The row for square images of another height; None: the row as it is. It was trained on images of its own
        size, and operations of convolutions grow with the number of pixels."""
        if size is None or not self.takes_images or size == self.shape[-1]:
            return self
        pixels_ratio = (size / self.shape[-1]) ** 2
        shape, multiply_adds = (self.shape[0], size, size), self.multiply_adds * pixels_ratio
        return replace(self, shape=shape, multiply_adds=multiply_adds, trained_on=None)

    def shaped(self, arguments: Mapping[str, str | int]) -> Model:
        """The row for these values of `shaped_by`; a row without such factors as it is. Other names are left out."""
        if not self.shaped_by:
            return self
        own = {name: arguments[name] for name in self.shaped_by}
        work = self.multiply_adds if self.work is None else named_code(self.work)(self.shape, self.outputs, own)
        return replace(self, arguments=own, multiply_adds=float(work))


SHORTEST_SEQUENCE = 2  # tokens that `seq_len` allows; ids of [batch, 1] are one number of each sample, no sequence
TOKENIZER_IDS = 32_000  # of the shipped vocabulary; a language model embeds more where a larger one is asked for
TINYLM_POSITIONS = 2048
TEXT_ENCODER_POSITIONS = 512
DISTILBERT_IDS, DISTILBERT_POSITIONS = 30_522, 512

_ROWS = (
    Model(
        name="resnet50",
        kind="image",
        is_convolutional=True,
        build="pybench.models.resnet50:ResNet50",
        input="images",
        shape=(3, 224, 224),
        outputs=1000,
        head="fc.weight",
        multiply_adds=4.1e9,
        least_size=32,
        norm_stride=32,
        images_to_train=500_000,
    ),
    Model(
        name="vgg16",
        kind="image",
        build="pybench.models.vgg:Vgg16",
        input="images",
        shape=(3, 224, 224),
        outputs=1000,
        head="classifier.6.weight",
        multiply_adds=15.5e9,
        least_size=32,
        sized=True,
    ),
    Model(
        name="vgg16-cifar10",
        kind="image",
        is_convolutional=True,
        build="pybench.models.vgg:Vgg16Cifar10",
        input="images",
        shape=(3, 32, 32),
        outputs=10,
        head="classifier.weight",
        multiply_adds=0.31e9,
        least_size=32,
        norm_stride=16,
        sized=True,
        images_to_train=1_500_000,
        training_batch=512,
        training_rate=0.1,  # it has no shortcuts: training does not start at a higher rate
    ),
    Model(
        name="mobilenet-v1",
        kind="image",
        is_convolutional=True,
        build="pybench.models.mobilenet:MobileNetV1",
        input="images",
        shape=(3, 224, 224),
        outputs=1000,
        head="classifier.weight",
        multiply_adds=0.57e9,
        least_size=32,
        norm_stride=32,
        images_to_train=600_000,
    ),
    Model(
        name="mobilenet-v2",
        kind="image",
        is_convolutional=True,
        build="pybench.models.mobilenet:MobileNetV2",
        input="images",
        shape=(3, 224, 224),
        outputs=1000,
        head="classifier.1.weight",
        multiply_adds=0.30e9,
        least_size=32,
        norm_stride=32,
        images_to_train=600_000,
    ),
    Model(
        name="digits-cnn",
        kind="image",
        is_convolutional=True,
        build="pybench.models.digits_cnn:DigitsCnn",
        input="images",
        shape=(1, 8, 8),
        outputs=10,
        head="fc.weight",
        multiply_adds=0.6e6,
        least_size=4,
        norm_stride=2,
        sized=True,
        trained_on="digits",
        images_to_train=5_120,
        training_batch=64,
        trains_on_cpu=True,
    ),
    Model(  # small enough for what surrounds a pass to show
        name="tinylm-tiny",
        kind="language",
        build="pybench.models.tinylm:tiny",
        input="ids",
        outputs=TOKENIZER_IDS,
        head="head.weight",
        multiply_adds=0.1e6,
        vocabulary=TOKENIZER_IDS,
        longest_sequence=TINYLM_POSITIONS,
        judged_on="stdlib-text",
        training_batch=16,
        training_rate=1e-2,
        training_epochs=3,
        trains_on_cpu=True,
    ),
    Model(
        name="tinylm-small",
        kind="language",
        build="pybench.models.tinylm:small",
        input="ids",
        outputs=TOKENIZER_IDS,
        head="head.weight",
        multiply_adds=6e6,
        vocabulary=TOKENIZER_IDS,
        longest_sequence=TINYLM_POSITIONS,
        judged_on="stdlib-text",
        training_batch=16,
        training_rate=1e-3,
        training_epochs=4,
    ),
    Model(
        name="tinylm-large",
        kind="language",
        build="pybench.models.tinylm:large",
        input="ids",
        outputs=TOKENIZER_IDS,
        head="head.weight",
        multiply_adds=40e6,
        vocabulary=TOKENIZER_IDS,
        longest_sequence=TINYLM_POSITIONS,
        judged_on="stdlib-text",
        training_batch=16,
        training_rate=1e-3,
        training_epochs=4,
    ),
    Model(  # small enough to be trained on a CPU
        name="text-encoder",
        kind="encoder",
        build="pybench.models.text_encoder:TextEncoder",
        input="ids",
        outputs=10,
        head="head.weight",
        multiply_adds=0.11e6,
        vocabulary=TOKENIZER_IDS,
        longest_sequence=TEXT_ENCODER_POSITIONS,
        embedding="embed.weight",
        judged_on="stdlib-packages",
        training_batch=32,
        training_rate=1e-2,
        training_epochs=4,
        trains_on_cpu=True,
    ),
    Model(  # tinylm-tiny with a head of classes
        name="tinylm-classifier",
        kind="encoder",
        build="pybench.models.tinylm:classifier",
        input="ids",
        outputs=10,
        head="head.weight",
        multiply_adds=0.05e6,
        vocabulary=TOKENIZER_IDS,
        longest_sequence=TINYLM_POSITIONS,
        embedding="embed.weight",
        judged_on="stdlib-packages",
        training_batch=32,
        training_rate=1e-2,
        training_epochs=6,
        trains_on_cpu=True,
    ),
    Model(
        name="distilbert",
        kind="encoder",
        build="pybench.models.distilbert:DistilBert",
        input="ids",
        outputs=2,
        head="classifier.weight",
        multiply_adds=43e6,
        vocabulary=DISTILBERT_IDS,
        longest_sequence=DISTILBERT_POSITIONS,
        translate="pybench.models.distilbert:translated",
        embedding="distilbert.embeddings.word_embeddings.weight",
        judged_on="stdlib-packages",
        training_batch=32,
        training_rate=1e-4,
        training_epochs=30,
        training_noise_ratio=0.3,
    ),
    Model(
        name="unet3d",
        kind="volume",
        is_convolutional=True,
        build="pybench.models.unet3d:Unet3d",
        input="volumes",
        shape=(1, 64, 64, 64),
        outputs=3,
        head="head.weight",
        multiply_adds=244e9,
        judged_on="nested-volumes",
        training_batch=4,
        training_rate=1e-3,
        training_epochs=20,
    ),
    Model(  # small enough to be trained on a CPU
        name="unet3d-small",
        kind="volume",
        is_convolutional=True,
        build="pybench.models.unet3d:small",
        input="volumes",
        shape=(1, 16, 16, 16),
        outputs=3,
        head="head.weight",
        multiply_adds=61e6,
        judged_on="nested-volumes",
        training_batch=4,
        training_rate=1e-2,
        training_epochs=4,
        trains_on_cpu=True,
    ),
    Model(
        name="mlp",
        kind="vector",
        build="pybench.models.mlp:Mlp",
        input="vectors",
        shape=(64,),
        outputs=10,
        head="fc3.weight",
        multiply_adds=85e3,
    ),
    *(
        Model(
            name=name,
            kind="vector",
            build=f"pybench.models.c2p:{build}",
            input="conserved",
            shape=(3,),
            outputs=1,
            head="fc3.weight",
            multiply_adds=multiply_adds,
            judged_on="fluid-states",
            trains_on_cpu=True,
            drawn_by="pybench.models.fluid_states:draw_inputs",
            solved_by="pybench.hydro.recovery:SOLVERS",
            solved_from_bytes=5 * 8,  # of the equation of state
        )
        for name, build, multiply_adds in (("c2p", "paper", 122e3), ("c2p-small", "small", 8.6e3))
    ),
    Model(
        name="stack",
        kind="image",
        build="pybench.models.stack:Stack",
        input="images",
        shape=(3, 64, 64),
        outputs=10,
        head="head.weight",
        multiply_adds=38.5e6,  # of the usual block, depth and width
        shaped_by=("block_type", "depth", "width"),
        architecture="block_type",
        work="pybench.catalogue.blocks:stack_multiply_adds",
    ),
    Model(
        name="vit-heads",
        kind="perception",
        build="pybench.models.vit_heads:VitHeads",
        input="images",
        shape=(3, 224, 224),
        outputs=1,  # each head has its own
        head="backbones.0.patches.weight",
        multiply_adds=4.7e9,  # of the usual heads and dispatch
        shaped_by=("heads", "dispatch"),
        work="pybench.catalogue.heads:vit_multiply_adds",
        parts="pybench.catalogue.heads:vit_parts",
    ),
)

MODELS = Rows("model", _ROWS)
