# SPDX-License-Identifier: Apache-2.0
"""What one campaign's numbers say, a module for each kind of finding."""
