"""Counts of the words in which the code is written: docstring openings, pronouns, names, `Args:` of public functions.

`python -m tests.plain_english raykd/layers …` lists every place that counts, for files and folders of your choice.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

_WORD = re.compile(r"[a-z']+")

OPENINGS = frozenset(_WORD.findall("what whether where how which who whose why"))

PRONOUNS = frozenset(
    _WORD.findall(
        "it its itself they them their themselves those these that this who whom whose which what each every such "
        "other others another own"
    )
)

# Pronouns, participles and adverbs: as the name of a variable they say where a value came from and not what it is.
VAGUE_NAMES = frozenset(
    _WORD.findall(
        "own each every found known given said there asked told left most meant other others one it its they them "
        "their these those this that here what which who whose where why how such another wanted seen taken made kept "
        "done gone got named shown held tried again"
    )
)

_CLAUSE_END = re.compile(r"[.,:;(\n]")
_SHAPE_SUFFIX = re.compile(r"_[A-Z0-9]+$")


@dataclass
class Counts:
    """The counts of some Python files, and the places behind them.

    Attributes:
        lines: Lines of the files.
        docstrings: Docstrings of modules, classes, functions, fields and constants.
        places: Kind of fault (`opening`, `pronoun`, `name`) to `file:line: text` of every place that counts.
    """

    lines: int = 0
    docstrings: int = 0
    places: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def openings(self) -> int:
        """Docstrings that open with a question word."""
        return len(self.places["opening"])

    @property
    def pronoun_percent(self) -> float:
        """Percentage of docstrings with a pronoun in the first clause."""
        return 100 * len(self.places["pronoun"]) / max(1, self.docstrings)

    @property
    def names_per_1000_lines(self) -> float:
        """Vague names bound in 1,000 lines."""
        return 1000 * len(self.places["name"]) / max(1, self.lines)


def count(roots: Sequence[Path]) -> Counts:
    """Count the docstrings and names of the Python files under `roots`.

    Args:
        roots: Files, or folders that are searched for `*.py`.
    """
    counts = Counts()
    for root in roots:
        for file in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            source = file.read_text(encoding="utf-8")
            counts.lines += source.count("\n")
            tree = ast.parse(source)
            _count_docstrings(counts, file, tree)
            for node, name in _vague_names(tree):
                counts.places["name"].append(f"{file}:{node.lineno}: {name}")
    return counts


def functions_without_args(package: Path) -> list[str]:
    """Functions and methods that other rooms of the package use, have parameters and no `Args:` in their docstring.

    A room is a module or folder right below the package. Of a class that another room imports, public methods with
    two or more parameters count; methods marked `@override` have the docstring of the method they override.

    Args:
        package: Folder of the package.
    """
    modules = {
        ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): file
        for file in package.rglob("*.py")
    }
    trees = {module: ast.parse(file.read_text(encoding="utf-8")) for module, file in modules.items()}
    missing = set()
    for module, name in sorted(_imports_across_rooms(trees)):
        origin, definition = _definition(trees, module, name) or (module, None)
        for function, minimum in _documented_functions(definition):
            parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            if sum(parameter.arg not in ("self", "cls") for parameter in parameters) < minimum:
                continue
            if "Args:" not in (ast.get_docstring(function) or ""):
                missing.add(f"{modules[origin]}:{function.lineno}: {function.name}")
    return sorted(missing)


def _count_docstrings(counts: Counts, file: Path, tree: ast.Module) -> None:
    for line, docstring in _docstrings(tree):
        counts.docstrings += 1
        clause = _CLAUSE_END.split(docstring.strip())[0]
        words = _WORD.findall(clause.lower())
        place = f"{file}:{line}: {clause}"
        if words and words[0] in OPENINGS:
            counts.places["opening"].append(place)
        if PRONOUNS & set(words):
            counts.places["pronoun"].append(place)


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of the docstrings of modules, classes and functions, and of those below fields and constants."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and (docstring := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), docstring
        for statement, below in pairwise(body):
            match statement, below:
                case (ast.Assign() | ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(docstring)))):
                    yield below.lineno, docstring


def _vague_names(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.arg, str]]:
    """Bindings of vague names, but for `other` of a method beside `self` and `left` beside `right`."""
    for scope, nodes in _scopes(tree):
        bound = list(_bindings(nodes))
        names = {name for _, name in bound}
        for node, name in bound:
            stem = _SHAPE_SUFFIX.sub("", name.lstrip("_"))
            if stem not in VAGUE_NAMES and not stem.startswith("own_"):
                continue
            binary = name == "other" and "self" in names and isinstance(scope, ast.FunctionDef)
            if not binary and not (stem == "left" and any(n.startswith("right") for n in names)):
                yield node, name


def _scopes(tree: ast.Module) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """The modules, classes and functions of a tree, with their nodes but for those of scopes inside."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        scope = waiting.pop()
        nodes, stack = [], list(ast.iter_child_nodes(scope))
        while stack:
            node = stack.pop()
            nodes.append(node)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                waiting.append(node)
            else:
                stack.extend(ast.iter_child_nodes(node))
        yield scope, nodes


def _bindings(nodes: Sequence[ast.AST]) -> Iterator[tuple[ast.expr | ast.arg, str]]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node, node.attr
        elif isinstance(node, ast.arg):
            yield node, node.arg


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def _imports_across_rooms(trees: dict[str, ast.Module]) -> set[tuple[str, str]]:
    """(module, name) of what a module of another room imports, or reads from the imported module."""
    names = set()
    for importer, tree in trees.items():
        aliases = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == _top(trees):
                for alias in node.names:
                    full_name = f"{node.module}.{alias.name}"
                    if full_name in trees:
                        aliases[alias.asname or alias.name] = full_name
                    elif _room(node.module) != _room(importer):
                        names.add((node.module, alias.name))
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in aliases
            ):
                module = aliases[node.value.id]
                if _room(module) != _room(importer):
                    names.add((module, node.attr))
    return names


def _top(trees: dict[str, ast.Module]) -> str:
    return next(iter(trees)).split(".")[0]


def _definition(trees: dict[str, ast.Module], module: str, name: str) -> tuple[str, ast.AST] | None:
    """Module and node of a function or class, followed through modules that import it under the same name."""
    for node in trees[module].body if module in trees else []:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            return module, node
        if isinstance(node, ast.ImportFrom) and node.module in trees and node.module != module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _definition(trees, node.module, alias.name)
    return None


def _documented_functions(
    definition: ast.AST | None,
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]]:
    """Functions of a definition that need `Args:`, each with the number of parameters from which it needs them."""
    if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        yield definition, 1
    elif isinstance(definition, ast.ClassDef):
        for node in definition.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                decorators = {ast.unparse(decorator).split(".")[-1] for decorator in node.decorator_list}
                if not decorators & {"override", "overload"}:
                    yield node, 2


def main(roots: Sequence[str]) -> None:
    """Print the places that count under `roots`, and the counts.

    Args:
        roots: Paths of files and folders.
    """
    counts = count([Path(root) for root in roots])
    for kind, places in counts.places.items():
        for place in places:
            print(f"{kind}: {place}")
    for place in functions_without_args(Path("raykd")):
        if any(place.startswith(root) for root in roots):
            print(f"no Args: {place}")
    names = Counter(place.rsplit(" ", 1)[1] for place in counts.places["name"])
    print(f"names: {names.most_common(20)}")
    print(
        f"{counts.lines} lines, {counts.docstrings} docstrings: {counts.openings} openings, "
        f"{counts.pronoun_percent:.1f} % with a pronoun, {counts.names_per_1000_lines:.2f} vague names in 1,000 lines"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
