"""Entry point: commands, exit codes, and errors in one sentence."""

from __future__ import annotations

import ast
import importlib
import os
import signal
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

import raykd
from raykd.cli.console import stderr, stdout, tagged_message
from raykd.cluster.environment import TELEMETRY_OFF, set_defaults
from raykd.errors import RaykdError

if TYPE_CHECKING:
    from typer._click.core import Command, Context

INTERRUPTED = 130
VERBS = (
    "init",
    "check",
    "plan",
    "sweep",
    "precompute",
    "distill",
    "watch",
    "front",
    "compare",
    "export",
    "predict",
    "evaluate",
    "serve",
    "corpus",
    "list",
    "clean",
    "doctor",
)
"""Names of the commands. Each is a function, or an `app` of subcommands, in the module of the same name."""

COMPUTING = ("init", "plan", "sweep", "precompute", "distill", "export")
"""Commands whose imports and corpora take seconds before the first output."""

SLOW = (*COMPUTING, "doctor")
"""Commands without shell completion of their options: their imports take seconds."""


class Verbs(TyperGroup):
    """The commands, imported only on their call: Ray and MLflow take seconds, and `raykd check` needs neither."""

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Return a command with a summary for the help; the module is not imported."""
        return TyperCommand(cmd_name, help=summary(cmd_name)) if cmd_name in VERBS else None

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Import the module of the called command, and return the command."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in COMPUTING and "--help" not in rest and not ctx.resilient_parsing:
            stdout.print(f"{name}: starting")
        if ctx.resilient_parsing and name in SLOW:
            return (
                name,
                command,
                rest,
            )  # completion must not wait for Ray; the shell itself completes names of files
        return name, command and _imported(str(name)), rest


def summary(verb: str) -> str:
    """Return the first line of help for a command, read without importing it.

    It is the docstring of the command's function, or of its module.
    """
    tree = ast.parse(Path(__file__).with_name(f"{verb}.py").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == verb]
    docstring = ast.get_docstring(functions[0] if functions else tree) or ""
    return docstring.removeprefix(f"`raykd {verb}`: ").capitalize() if not functions else docstring


def _imported(verb: str) -> Command:
    """The command of a module, imported now."""
    module = importlib.import_module(f"raykd.cli.{verb}")
    if hasattr(module, "app"):
        return typer.main.get_command(module.app)
    alone = typer.Typer(add_completion=False)
    alone.command(name=verb)(getattr(module, verb))
    return typer.main.get_command(alone)


app = typer.Typer(
    name="raykd", cls=Verbs, no_args_is_help=True, pretty_exceptions_enable=False,
    help="Find the smallest and fastest sequence labeller that keeps a teacher's accuracy.",
)  # fmt: skip


def _show_version(requested: bool) -> None:
    """Print the version and, if raykd runs from its own checkout, the commit."""
    if not requested:
        return
    root = Path(raykd.__file__).parents[1]
    commit = None
    if (root / ".git").exists():  # only raykd's own, not that of a project around its installation
        from raykd.tracking.origin import git_commit

        commit = git_commit(root)
    stdout.print(f"raykd {raykd.__version__}" + (f" ({commit})" if commit else ""))
    raise typer.Exit


@app.callback()
def _verbs(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Make `app` a group, whose commands come from `Verbs`."""


def main() -> None:
    """Run the command. A user's mistake ends in a message and its exit code, never in a traceback."""
    # `ray job stop` sends SIGTERM and kills three seconds later, so SIGTERM ends raykd as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Without this Ray may start its workers through uv, in another environment than this one.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    set_defaults(TELEMETRY_OFF)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that is not UTF-8 shows characters that its encoding lacks as \u2026.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False, prog_name="raykd")
    except RaykdError as error:
        stderr.print(tagged_message("error", error))
        if error.resume_command:
            stderr.print(f"Finished work is kept. Continue with: {error.resume_command}")
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except typer.BadParameter as error:
        error.show()
        sys.exit(error.exit_code)
    except TyperException as error:  # unknown verbs and flags
        # Without arguments there is no message, as the help was shown.
        if message := str(error).rstrip("."):
            stderr.print(tagged_message("error", f"{message}; see raykd --help"))
        sys.exit(2)
    if code == INTERRUPTED:  # Typer makes this code of a KeyboardInterrupt
        stderr.print(
            "interrupted: finished work is kept; the same command continues from there (for a sweep, add --resume)"
        )
    sys.exit(code if isinstance(code, int) else 0)
