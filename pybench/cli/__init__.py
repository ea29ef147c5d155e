# SPDX-License-Identifier: Apache-2.0
"""The command line: the only part that prints. Results to stdout, talk to stderr; exit codes as in `pybench.errors`.

Each module here offers `register(app)`, which adds its commands. Commands raise; `main` turns what pybench raises on
purpose into text and an exit code. Anything else is a defect of pybench and keeps its traceback.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import typer

from pybench import __version__
from pybench.cli import campaigns, cluster, machine, plans, publishing, reading, sensor
from pybench.errors import EXIT_INTERRUPTED, EXIT_USAGE, PybenchError

# ClickException: of Click itself, or of the copy of Click that newer Typers carry and do not export.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    try:
        code = typer.main.get_command(_app())(args=arguments, standalone_mode=False, prog_name="pybench")
        sys.stdout.flush()
        return int(code or 0)
    except PybenchError as error:
        _say(f"error: {error}" if "\n" not in error.message else str(error))
        return error.exit_code
    except _USAGE_ERROR as error:
        error.show(sys.stderr)  # type: ignore[attr-defined]
        return EXIT_USAGE
    except (typer.Abort, KeyboardInterrupt):
        _say("interrupted")
        return EXIT_INTERRUPTED
    except (_Unread, BrokenPipeError):
        return _end_unread()


class _Unread(Exception):
    """Whoever read our output went away. Typer would take a BrokenPipeError for its own business, and end with 1."""


class _Group(typer.core.TyperGroup):
    def invoke(self, ctx: Any) -> Any:  # Typer's own copy of Click has no public name
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _Unread from error


def _end_unread() -> int:
    """Ends as every tool does in `pybench expand PLAN | head`: without a word, by SIGPIPE.

    Not with 0: `run` would say that every cell is covered.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still has to flush
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.raise_signal(signal.SIGPIPE)
    return 128 + signal.SIGPIPE  # where it is blocked


def _app() -> typer.Typer:
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
    for module in (plans, campaigns, cluster, reading, publishing, machine, sensor):
        module.register(app)
    return app


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


def _say(text: str) -> None:
    print(text, file=sys.stderr)
