# SPDX-License-Identifier: Apache-2.0
"""Campaigns on batch clusters: scripts to read and submit, what became of the jobs, runs that died with them.

    SITE.yaml ─site→ Site ─script→ sbatch scripts ─submission, slurm→ jobs ─ending→ outcomes with Slurm's own word
                       └──kubernetes→ YAML of an Indexed Job, to apply

State is what the run directories say; squeue and sacct enrich it where they exist. Jobs call `pybench run DIR`: how a
run is done is `pybench.runner`'s business, and its claims see to it that no run is done twice. docs/user/clusters.md is
the chapter for users.
"""
