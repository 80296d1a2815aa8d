"""Entry point: verbs, exit codes, and errors told in one sentence."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

import typer
from typer.exceptions import TyperException

from raykd.cli import check, corpus, distill, front, plan, precompute, sweep
from raykd.cli.console import stderr
from raykd.errors import RaykdError

app = typer.Typer(
    name="raykd", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Find the smallest and fastest sequence labeller that keeps a teacher's accuracy.",
)  # fmt: skip
app.command(name="check")(check.check)
app.command(name="plan")(plan.plan)
app.command(name="sweep")(sweep.sweep)
app.command(name="precompute")(precompute.precompute)
app.command(name="distill")(distill.distill)
app.command(name="front")(front.front)
app.add_typer(corpus.app, name="corpus")


def main() -> None:
    """Run the command; a user's mistake ends in a message and its exit code, never in a traceback."""
    # `ray job stop` sends SIGTERM and kills three seconds later: leave by the same door as Ctrl-C.
    signal.signal(signal.SIGTERM, _interrupt)
    # Without this Ray's workers may be started by another uv/venv wrapper than this one.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    try:
        code = app(standalone_mode=False)
    except RaykdError as error:
        stderr.print(f"[red]error[/red] {escape(error)}", highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        stderr.print("interrupted: what is computed is kept; the same command with --resume goes on")
        sys.exit(130)
    except typer.BadParameter as error:
        error.show()
        sys.exit(error.exit_code)
    except TyperException as error:  # unknown verbs and flags
        stderr.print(f"[red]error[/red] {escape(error)}; see raykd --help", highlight=False)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def escape(error: object) -> str:
    """Text whose brackets are not rich's markup."""
    return str(error).replace("[", "\\[")


def _interrupt(number: int, frame: FrameType | None) -> Any:
    raise KeyboardInterrupt
