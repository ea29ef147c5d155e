# SPDX-License-Identifier: Apache-2.0
"""The documents that a program writes: what is in docs/ and schemas/ and follows from rows, plans or archives.

    make documents

It imports all of pybench and belongs to the repository, not to the package that users install.

    pages      each document with its path; the command writes all of them
    rows       docs/metrics.md, docs/cautions.md and docs/reasons.md
    tables     the tables of docs/user/plans.md
    factors    docs/factors.md
    campaigns  docs/results, made of the archives in campaigns/
    markdown   tables and paragraphs, as these pages have them
"""
