# SPDX-License-Identifier: Apache-2.0
"""The process that does one run, or makes one artefact, and ends. Started by the runner, never imported by it.

It imports only what its own case needs. `__main__` is the table of contents.

    job          one run, or the making of one artefact
    environment  what is recorded of the machine
    storing      how a result becomes files
    probe        what `doctor` and the runner ask of this machine
    opening      what is asked of a model before any run
    sensor       what `pybench sensor` asks
"""
