# SPDX-License-Identifier: Apache-2.0
"""A campaign's directory, where the measuring and the reading half meet: names of files, claims, digests, recipes.

Only this room knows what the files of a campaign are called. docs/formats/rundir.md describes them.

    finished_run      one run as its files tell it, checked; `energy` checks energy.json
    extract           what tables take of a run, stored when it ends, so that a reader opens one file
"""
