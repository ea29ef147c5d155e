# SPDX-License-Identifier: Apache-2.0
"""A relativistic fluid: states whose pressure is known, and solvers that find it. One pressure a state is all of it.

`states` draws fluids and makes their conserved densities; `recovery` goes back from these to the pressure. Nothing here
knows of networks. One is trained on such states and replaces the solver (Kacmaz, Haas and Huerta 2024, "Machine
learning-driven conservative-to-primitive conversion in hybrid piecewise polytropic and tabulated equations of state").
"""
