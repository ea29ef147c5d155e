# SPDX-License-Identifier: Apache-2.0
"""How workers are started: as processes of this machine, or in containers of images. Nothing is printed.

`launch` is what the rest of pybench sees: start a worker, wait for it, end it. `local` starts plain processes,
`interpreter` those of another Python with its packages, which `interpreter_facts` tells, and `container` starts
containers. A container's command line is from `engines`, its image was looked into by `images`, and its GPUs are named
by `gpus`. What Python an image has is told by `inside`.
"""

from pybench.launcher.container import Container, open_container
from pybench.launcher.engines import named_engine, require_installed
from pybench.launcher.inside import look_inside
from pybench.launcher.interpreter import Interpreter, install_command, open_interpreter
from pybench.launcher.launch import Exit, FileAccess, Launched, Launcher
from pybench.launcher.local import LOCAL, LocalLauncher

__all__ = [
    "LOCAL",
    "Container",
    "Exit",
    "FileAccess",
    "Interpreter",
    "Launched",
    "Launcher",
    "LocalLauncher",
    "install_command",
    "look_inside",
    "named_engine",
    "open_container",
    "open_interpreter",
    "require_installed",
]
