# SPDX-License-Identifier: Apache-2.0
"""A campaign's directory, where the measuring and the reading half meet: names of files, claims, digests, recipes.

Only this room knows what the files of a campaign are called. docs/formats/rundir.md describes them.

    layout            names of files
    storage           files written whole or not at all
    directory         runs and artefacts: how their files are read and closed
    resolved_plan     what the plan means
    environments      what each environment of the plan has installed
    recipe            what an artefact is made of
    claims            who does which attempt
    batch_job         the job of a batch system around a process
    digests           whether the files of a run are as they were when it finished
    run_folder        the files of a run, read without the compiled module
    hashed            which runs need not be hashed again
    reported          whether the report is still the one that would be written
    finished_run      one run as its files tell it, checked
    energy            energy.json of a run, checked
    extract           what tables take of a run, stored when it ends
"""
