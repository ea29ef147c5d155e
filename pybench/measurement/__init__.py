# SPDX-License-Identifier: Apache-2.0
"""What workloads and the makers of artefacts share: from a request to an opened model, its windows and its result.

model           opens what a case names
audits          the precision that ran
stored_weights  how many matrix products ran with stored weights, and in which type
recorder        the windows of an iteration
heads           the same of a network with heads, for each head
supply          what a case feeds, as its factor `inputs` says
inputs          random arrays
feed            tokens, brought to an iteration
image_feed      labelled images for training
labelled        a user's labelled arrays, and which output they judge
profiles        the kernels of one iteration
result          what a run gives
doubts          its cautions
"""
