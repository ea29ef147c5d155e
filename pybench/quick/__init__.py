# SPDX-License-Identifier: Apache-2.0
"""`pybench quick`: one model, no plan. A plan is made, its blocks are run until the ranking is decided.

    target       the model: a file or a built-in name, with the sizes that it is fed with
    given        a user's arrays, which say the batch and every free size
    candidates   what this machine can run it in, and how long a run has to be
    plan_text    the plan of these candidates, as YAML
    rounds       blocks, looks, and when to stop
    verdict      the table and the sentence

What is measured, stored and analysed is an ordinary campaign. Nothing is printed here.
"""
