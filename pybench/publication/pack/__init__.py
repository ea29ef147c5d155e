# SPDX-License-Identifier: Apache-2.0
"""A campaign as a folder for others: what it contains, without personal data, with documents, sums and a signature."""
