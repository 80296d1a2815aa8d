"""Check all annotated shapes of raykd during the tests: jaxtyping says what, beartype checks.

The package imports jaxtyping only `if TYPE_CHECKING`, so that who uses raykd does not need it. There the
annotations could not be looked up at run time; so while tests run those imports are done for real.
"""

import ast
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from types import ModuleType, UnionType
from typing import Any, Union, get_args, get_origin

from beartype import beartype
from jaxtyping import AbstractArray, install_import_hook


def checked(function: Any) -> Any:
    """`function` with the shapes that it takes and gives checked; pyright answers for all other types."""
    hints = getattr(function, "__annotations__", {})
    shapes = {name: hint for name, hint in hints.items() if _holds_shape(hint, function)}
    if not shapes:
        return function
    function.__annotations__ = shapes
    return beartype(function)


def _holds_shape(hint: Any, function: Any) -> bool:
    try:
        hint_type = eval(hint, function.__globals__) if isinstance(hint, str) else hint
    except (NameError, TypeError):
        return False  # a name that is known inside a class or function only
    return any(isinstance(part, type) and issubclass(part, AbstractArray) for part in _parts(hint_type))


def _parts(hint: Any) -> Iterator[Any]:
    """The hint itself, or what an alternative or a tuple is made of.

    Not the items of a list: sentences of different lengths stand there, and an axis name means one size.
    """
    if get_origin(hint) in (Union, UnionType, tuple):
        for part in get_args(hint):
            yield from _parts(part)
    else:
        yield hint


def install() -> None:
    """Check all modules of raykd imported from now on."""
    if early := sorted(name for name in sys.modules if name.partition(".")[0] == "raykd"):
        raise RuntimeError(f"imported before the checks were installed: {', '.join(early)}")
    hook = install_import_hook("raykd", f"{__name__}.checked")
    sys.meta_path.remove(hook.hook)
    sys.meta_path.insert(0, _WithTypingImports(hook.hook))


UNCHECKED = "raykd.serving.spacy_component"
"""spaCy reads the arguments of the function that makes the component, which a wrapper hides from it."""


class _WithTypingImports(MetaPathFinder):
    """The wrapped finder, its modules read with `if True:` for `if TYPE_CHECKING:`."""

    def __init__(self, finder: MetaPathFinder):
        self.finder = finder

    def find_spec(self, fullname: str, path=None, target: ModuleType | None = None):
        spec = self.finder.find_spec(fullname, path, target) if fullname != UNCHECKED else None
        if spec is not None and spec.loader is not None:
            compiled = spec.loader.source_to_code
            spec.loader.source_to_code = lambda data, name, **options: compiled(
                _typing_imports_done(data), name, **options
            )
        return spec


def _typing_imports_done(source: bytes) -> bytes:
    lines = source.decode().split("\n")
    for node in ast.parse(source).body:
        # With an `else` it is no import: what is defined there is what runs.
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse:
            lines[node.lineno - 1] = "if True:"
    return "\n".join(lines).encode()
