# SPDX-License-Identifier: Apache-2.0
"""A publication of a stranger: found, checked byte by byte, unpacked, and its report compared with one made again."""
