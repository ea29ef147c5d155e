# SPDX-License-Identifier: Apache-2.0
"""What workloads and the makers of artefacts share: from a request to an opened model, its windows and its result.

`model` opens what a case names, and `audits` proves the precision that ran. `recorder` measures the windows of an
iteration, `feed` brings it tokens, `inputs` makes random arrays. `result` is what a run gives, `doubts` its cautions.
"""
