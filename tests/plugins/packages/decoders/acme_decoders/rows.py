# SPDX-License-Identifier: Apache-2.0
from pybench.catalogue.models import Model

ROWS = (
    Model(
        name="averaging",
        kind="language",
        build="acme_decoders.averaging:Averaging",
        input="ids",
        outputs=1000,
        head="head.weight",
        multiply_adds=64e3,
        vocabulary=1000,
        longest_sequence=512,
    ),
)
