"""A Python function as a teacher: your own code asks a service, a pipeline or a model."""

from __future__ import annotations

import importlib
import inspect
import linecache
import sys
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import override

from raykd.corpora.answers.answer_records import Form
from raykd.errors import MissingError
from raykd.identity import PlainObject
from raykd.teachers.asked_annotator import AnnotatorSource, AskedAnnotator, Labeller

Argument = str | int | float | bool | None


class PythonTeacher(AskedAnnotator):
    """A function that labels texts: `label(texts) -> list`, in a file beside the sweep file or in a package.

    A text has `words`, `text` and `language`. The function returns one answer for each text, or yields them one by
    one: then those before an error are kept. None is "no usable answer". A class is made once in each actor, with the
    arguments, and then called with texts. `check` and `plan` never import it.
    """

    kind: Literal["python"] = "python"
    function: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")]
    """Module and function: `my_teacher:label`."""
    version: Annotated[str, Field(min_length=1)]
    """Your name for its answers: another version asks again. A change of the code alone does not."""
    answers: Form = Field()  # without a default: `check` must know it, and never imports the function
    """Form of the answers: `spans`, `labels`, `mentions`, `samples`, `probabilities` or `trees`, as of
    `annotations`."""
    arguments: dict[str, Argument] = Field(default_factory=dict)
    """Further arguments of the function, such as the name of a model; part of the identity of its answers."""

    @property
    @override
    def title(self) -> str:
        return f"{self.kind} {self.function}"

    @property
    @override
    def asking(self) -> PlainObject:
        return {"function": self.function, "version": self.version, "arguments": self.arguments}

    @property
    def module(self) -> str:
        """Name of the module."""
        return self.function.partition(":")[0]

    @override
    def find_source(self, folders: Sequence[Path]) -> AnnotatorSource:
        parts = self.module.split(".")
        if len(parts) == 1:
            for folder in folders:
                if (file := folder / f"{parts[0]}.py").is_file():
                    content = file.read_text(encoding="utf-8")
                    return AnnotatorSource(str(file), content, sha256(content.encode()).hexdigest())
        # Of a package only the top is looked up: to find what is within would import it.
        package = PathFinder.find_spec(parts[0])
        if package is None:
            looked = ", ".join(dict.fromkeys(str(folder) for folder in folders))
            problem = f"is no file {parts[0]}.py in {looked}, and no installed package"
            raise MissingError(self.function, problem, "write the file beside the sweep file")
        inside = [Path(place).joinpath(*parts[1:]) for place in package.submodule_search_locations or ()]
        candidates = [file for path in inside for file in (path.with_suffix(".py"), path / "__init__.py")]
        files = [file for file in candidates if file.is_file()] or [Path(package.origin or "")]
        digest = sha256(files[0].read_bytes()).hexdigest() if files[0].is_file() else ""
        return AnnotatorSource(str(files[0]), "", digest)

    @override
    def open(self, source: AnnotatorSource) -> Labeller:
        name = self.function.partition(":")[2]
        module = _run_source(self.module, source) if source.content else importlib.import_module(self.module)
        labeller: Any = getattr(module, name, None)
        if labeller is None:
            raise ImportError(f"{source.path} has no {name}")
        made: Any = (
            labeller(**self.arguments) if inspect.isclass(labeller) else partial(labeller, **self.arguments)
        )
        return made


def _run_source(name: str, source: AnnotatorSource) -> ModuleType:
    """Make the module of a file that may not exist on this node, with its lines for tracebacks."""
    module = ModuleType(name)
    module.__file__ = source.path
    lines = source.content.splitlines(keepends=True)
    linecache.cache[source.path] = (len(source.content), None, lines, source.path)
    sys.modules[name] = module
    exec(compile(source.content, source.path, "exec"), module.__dict__)
    return module
