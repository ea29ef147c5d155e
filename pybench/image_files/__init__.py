# SPDX-License-Identifier: Apache-2.0
"""What a user's pictures tell without being decoded: their layout, classes of a tree of folders, and headers of files.

Known when a plan is read, so that a picture that no run could use is told once, before the first run.
"""
