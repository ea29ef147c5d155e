# SPDX-License-Identifier: Apache-2.0
from pybench.catalogue.runtimes import Runtime, anywhere

ROWS = (
    Runtime(
        name="torchscript",
        module="acme_scripted.torchscript",
        audit="pybench.measurement.audits:of_torch",
        opens="module",
        needs=("torch",),
        start_s=4.0,
        precisions=anywhere("fp32"),
        takes_tensors=True,
        compile_is="tracing the module",
    ),
)
