# SPDX-License-Identifier: Apache-2.0
from pybench.catalogue.models import Model

ROWS = (
    Model(
        name="two-layers",
        kind="vector",
        build="acme_models.two_layers:TwoLayers",
        input="vectors",
        shape=(16,),
        outputs=4,
        head="last.weight",
        multiply_adds=640.0,
    ),
)
