"""Entry point: verbs, exit codes, and errors told in one sentence."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from types import FrameType, MappingProxyType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from raykd.cli.console import stderr
from raykd.errors import RaykdError

INTERRUPTED = 130
VERBS = MappingProxyType(
    {
        "check": "Validate FILE, every alternative of it, and show the first one with all defaults.",
        "plan": "Show trials, teachers, transfer sets with their bytes, and size and latency of every student shape.",
        "sweep": "Train teachers, compute what they know once, search students, and end with their front.",
        "precompute": "Train the teachers that are missing and compute what they know, once.",
        "distill": "Distil one student: FILE's values, the first alternative of each choice (fix others with --set).",
        "front": "Show the front of SWEEP, and with --where and --best the student to ship.",
        "compare": "Compare settings of finished sweeps over their seeds, by Almost Stochastic Dominance.",
        "corpus": "Make and look at corpora.",
    }
)


class Verbs(TyperGroup):
    """A verb's module is imported when the verb is called: Ray and MLflow take seconds, `raykd check` needs neither."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return TyperCommand(cmd_name, help=VERBS[cmd_name]) if cmd_name in VERBS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and _imported(str(name)), rest


def _imported(verb: str) -> Any:
    module = importlib.import_module(f"raykd.cli.{verb}")
    if hasattr(module, "app"):
        return typer.main.get_command(module.app)
    alone = typer.Typer(add_completion=False)
    alone.command(name=verb)(getattr(module, verb))
    return typer.main.get_command(alone)


app = typer.Typer(
    name="raykd", cls=Verbs, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Find the smallest and fastest sequence labeller that keeps a teacher's accuracy.",
)  # fmt: skip


@app.callback()
def _verbs() -> None:
    """Makes a group of `app`, whose verbs `Verbs` knows."""


def main() -> None:
    """Run the command; a user's mistake ends in a message and its exit code, never in a traceback."""
    # `ray job stop` sends SIGTERM and kills three seconds later: leave by the same door as Ctrl-C.
    signal.signal(signal.SIGTERM, _interrupt)
    # Without this Ray's workers may be started by another uv/venv wrapper than this one.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    try:
        code = app(standalone_mode=False, prog_name="raykd")
    except RaykdError as error:
        stderr.print(f"[red]error[/red] {escape(error)}", highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except typer.BadParameter as error:
        error.show()
        sys.exit(error.exit_code)
    except TyperException as error:  # unknown verbs and flags
        # Without arguments there is no message: the help was shown.
        if told := str(error).rstrip("."):
            stderr.print(f"[red]error[/red] {escape(told)}; see raykd --help", highlight=False)
        sys.exit(2)
    if code == INTERRUPTED:  # Typer makes this code of a KeyboardInterrupt
        stderr.print(
            "interrupted: what is computed is kept; the same command goes on with it (a sweep with --resume)"
        )
    sys.exit(code if isinstance(code, int) else 0)


def escape(error: object) -> str:
    """Text whose brackets are not rich's markup."""
    return str(error).replace("[", "\\[")


def _interrupt(number: int, frame: FrameType | None) -> Any:
    raise KeyboardInterrupt
