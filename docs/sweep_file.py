"""Writes SWEEP_FILE.md, the reference of every key, from the configuration models: `python docs/sweep_file.py`."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from raykd.corpora.config import SOURCES
from raykd.corpora.source import Split
from raykd.corpora.vocabulary import PretrainedConfig, WordConfig, WordPieceConfig
from raykd.layers.contextual import ContextualConfig
from raykd.objectives import OBJECTIVES
from raykd.runs.recipe import Resources, TeacherCorpus
from raykd.students import STUDENTS
from raykd.students.vocabulary import TeacherVocabulary
from raykd.sweep.spec import BudgetConfig, SearchConfig, SweepFile, TrackingConfig
from raykd.teachers import TEACHERS
from raykd.training import ScheduleConfig, TrainingConfig

VOCABULARIES = (WordConfig, WordPieceConfig, PretrainedConfig, TeacherVocabulary)

HEAD = """# The sweep file

One YAML 1.2 file. A plain value fixes a setting. In `student`, `objective`, `schedule` and `training` a mapping
with one of these words searches it; an option of a choice may hold further searches:

| written | searched |
|---|---|
| `{choice: [16, 32, 64]}` | one of the options |
| `{int: [1, 10]}`, with `step` or `log: true` | a whole number |
| `{float: [0.1, 1.0]}`, with `step` or `log: true` | a number |

`variants` holds named changes, laid over the file by `--variant NAME` (`--small` is `--variant small`): a mapping
changes the keys that it names; a mapping with `kind`, `source` or a search takes the place of what stood there. The
sweep's name becomes `name-variant`.

```yaml
variants:
  small: {corpus: {source: builtin, train: 200}, search: {trials: 3}}
```

The space of `student` must be finite: every shape is measured before the search. `--set key=value` overrides any key
from the command line. Unknown keys are refused, and all faults are reported together.

*This page is written from the configuration models by `python docs/sweep_file.py`.*
"""


def main() -> None:
    Path(__file__).with_name("SWEEP_FILE.md").write_text(reference(), encoding="utf-8")


def reference() -> str:
    """The whole page."""
    parts = [HEAD, _section("The file", {"": SweepFile})]
    parts += [
        _section("`corpus`", {f"source: {name}": model for name, model in SOURCES.items()} | {"split": Split}),
        _section("`teachers`", {f"kind: {name}": model for name, model in TEACHERS.items()}),
        _section("`contextual`", {"": ContextualConfig}),
        _section("`teacher_corpus`", {"": TeacherCorpus}),
        _section("`student`", {f"kind: {name}": model for name, model in STUDENTS.items()}),
        _section(
            "`vocabulary`",
            {f"kind: {get_args(model.model_fields['kind'].annotation)[0]}": model for model in VOCABULARIES},
        ),
        _section("`objective`", {f"kind: {name}": model for name, model in OBJECTIVES.items()}),
        _section("`schedule`", {"": ScheduleConfig}),
        _section("`training`", {"": TrainingConfig}),
        _section("`search`", {"": SearchConfig}),
        _section("`budget`", {"": BudgetConfig}),
        _section("`resources`", {"": Resources}),
        _section("`tracking`", {"": TrackingConfig}),
    ]  # fmt: skip
    return "\n".join(parts)


def _section(title: str, models: dict[str, type[BaseModel]]) -> str:
    return "\n".join([f"## {title}\n", *(_table(name, model) for name, model in models.items())])


def _table(name: str, model: type[BaseModel]) -> str:
    lines = [f"### `{name}`\n"] if name else []
    told = (model.__doc__ or "").strip().split("\n\n")[0]
    lines += [" ".join(told.split()) + "\n", "| key | values | default | |", "|---|---|---|---|"]
    lines += [_row(key, field) for key, field in model.model_fields.items() if key not in ("kind", "source")]
    return "\n".join(lines) + "\n" if len(lines) > 3 + bool(name) else "\n".join(lines[: 1 + bool(name)])


def _row(key: str, field: FieldInfo) -> str:
    default = "*required*" if field.is_required() else f"`{_default(field)}`"
    told = " ".join((field.description or "").split())
    return f"| `{key}` | {_values(field)} | {default} | {told} |".replace("|  |", "| |")


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        plain = value.model_dump(mode="json", exclude_defaults=True)
        if kind := getattr(value, "kind", None):
            plain = {"kind": kind} | plain
        return json.dumps(plain) if plain else "{}"
    return json.dumps(value if not isinstance(value, tuple) else list(value))


def _values(field: FieldInfo) -> str:
    bounds = {
        "Ge": "≥", "Gt": ">", "Le": "≤", "Lt": "<",
    }  # fmt: skip
    limits = [
        f"{bounds[name]} {getattr(limit, name.lower()):g}"
        for limit in _metadata(field)
        if (name := type(limit).__name__) in bounds
    ]
    return " ".join([*dict.fromkeys(_names(field.annotation)), *dict.fromkeys(limits)]).replace("|", "\\|")


def _metadata(field: FieldInfo) -> Iterator[Any]:
    yield from field.metadata
    yield from (
        item for arg in get_args(field.annotation) if get_origin(arg) is Annotated for item in _opened(arg)
    )


def _opened(annotation: Any) -> Iterator[Any]:
    for item in get_args(annotation)[1:]:
        yield from item.metadata if isinstance(item, FieldInfo) else [item]


def _names(annotation: Any) -> Iterator[str]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is type(None):
        yield "null,"
    elif origin is Annotated:
        yield from _names(arguments[0])
    elif origin is Literal:
        yield ", ".join(f"`{value}`" for value in arguments)
    elif origin in (Union, types.UnionType):
        yield ", ".join(dict.fromkeys(" ".join(_names(arg)).rstrip(",") for arg in arguments))
    elif origin is tuple:
        yield "list of " + " ".join(_names(arguments[0]))
    elif origin is dict:
        yield f"mapping to {' '.join(_names(arguments[1]))}"
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield "mapping"
    else:
        yield {"int": "whole number", "float": "number", "str": "text", "bool": "true or false"}[
            annotation.__name__
        ]


if __name__ == "__main__":
    main()
