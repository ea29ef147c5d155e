# SPDX-License-Identifier: Apache-2.0
"""The command line: the only part that prints. Results to stdout, talk to stderr; exit codes as in `pybench.errors`.

Each command is the function of the same name in the module of the same name; `GROUPS` lists them in the order of the
help. Commands raise; `main` turns what pybench raises on purpose into text and an exit code. Anything else is a defect
of pybench and keeps its traceback.
"""

from __future__ import annotations

import atexit
import codecs
import errno
import gc
import io
import os
import select
import signal
import stat
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import typer

from pybench import __version__
from pybench.cli.groups import write_commands
from pybench.cli.interrupts import noted_interrupts
from pybench.cli.show import say
from pybench.errors import EXIT_INTERRUPTED, EXIT_USAGE, PlanError, PybenchError

# ClickException: of Click itself, or of the copy of Click that newer Typers carry and do not export.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

GROUPS = {
    "An ONNX file": ("inspect", "quick"),
    "Plans": ("init", "schema", "validate", "expand"),
    "Campaigns": ("run", "status", "check"),
    "Results": ("analyse", "report", "compare", "explain", "project"),
    "Clusters": ("submit", "settle", "cancel", "logs"),
    "Publishing": ("publish", "fetch", "replay"),
    "This machine": ("doctor", "sensor"),
}
_NAMES = tuple(name for names in GROUPS.values() for name in names)


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    _accept_every_character()
    if arguments is None:
        atexit.register(gc.freeze)  # the process ends: Python need not look for cycles among all that a report made
    with noted_interrupts() as interrupts:
        try:
            return _run(arguments, interrupts)
        except SystemExit:
            raise
        except BaseException:  # a panic of an extension module is no Exception
            if not interrupts:
                raise
            say("interrupted")
            return EXIT_INTERRUPTED


def _run(arguments: list[str] | None, interrupts: Sequence[int]) -> int:
    try:
        first = next(iter(sys.argv[1:] if arguments is None else arguments), None)
        code = _command((first,) if first in _NAMES else _NAMES)(
            args=arguments, standalone_mode=False, prog_name="pybench"
        )
        sys.stdout.flush()
        return int(code or 0)
    except PybenchError as error:
        if interrupts:
            raise
        say(str(error) if isinstance(error, PlanError) or "\n" in error.message else f"error: {error}")
        return error.exit_code
    except _USAGE_ERROR as error:
        error.show(sys.stderr)  # type: ignore[attr-defined]
        return EXIT_USAGE
    except (typer.Abort, KeyboardInterrupt):
        say("interrupted")
        return EXIT_INTERRUPTED
    except (_BrokenPipe, BrokenPipeError):
        if _is_unread():
            return _end_unread()
        raise
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL or not _can_be_full():
            raise
        _drop_output()
        say(f"error: cannot write to stdout: {error.strerror}")
        return EXIT_USAGE


class _BrokenPipe(Exception):
    """A BrokenPipeError, which Typer would take for its own business and end with 1."""


class _Group(typer.core.TyperGroup):
    def invoke(self, ctx: Any) -> Any:  # Typer's own copy of Click has no public name
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _BrokenPipe from error
        except KeyboardInterrupt as error:  # Typer would end without a word
            raise typer.Abort from error

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Every command by group. Click alone would list them in one column."""
        for title, names in GROUPS.items():
            write_commands(formatter, title, [self.commands[name] for name in names])


def _accept_every_character() -> None:
    """What the locale's encoding lacks, such as `≥` in ISO-8859-1, becomes `?` and does not end the command.

    stderr accepts every character as Python opens it. A path whose bytes are no UTF-8 is printed as these bytes.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        is_utf_8 = codecs.lookup(sys.stdout.encoding).name == "utf-8"
        sys.stdout.reconfigure(errors="surrogateescape" if is_utf_8 else "replace")


def _is_unread() -> bool:
    """Whether whoever read our output or our talk went away: any other pipe that breaks is a defect of pybench."""
    waiting = select.poll()
    for stream in (1, 2):
        waiting.register(stream, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in waiting.poll(0))


def _can_be_full() -> bool:
    """Whether our output is a file or a device; a terminal and a pipe are never full in this sense."""
    return not (os.isatty(1) or stat.S_ISFIFO(os.fstat(1).st_mode))


def _end_unread() -> int:
    """Ends as every tool does in `pybench expand PLAN | head`: without a word, by SIGPIPE.

    Not with 0: `run` would say that every cell is covered.
    """
    _drop_output()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.raise_signal(signal.SIGPIPE)
    return 128 + signal.SIGPIPE  # where it is blocked


def _drop_output() -> None:
    """What Python still has to flush goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@cache
def _command(names: tuple[str, ...]) -> Any:
    """The named commands, once a process: importing all of them takes as long as a small command."""
    app = typer.Typer(
        name="pybench",
        cls=_Group,
        help="Benchmark campaigns for numeric precisions and runtimes, with numbers that a referee can trust.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    for name in names:
        module = import_module(f"pybench.cli.{name}")
        if hasattr(module, "register"):
            module.register(app)
        else:
            app.command()(getattr(module, name))
    return typer.main.get_command(app)


def _version(given: bool) -> None:
    if given:
        print(f"pybench {__version__}")
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", is_eager=True, callback=_version
    ),
) -> None:
    """Benchmark campaigns for numeric precisions and runtimes, with numbers that a referee can trust."""
