"""Writes SWEEP_FILE.md, the reference of every key, from the configuration models: `python docs/sweep_file.py`."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from raykd.corpora.annotated_records import SpanColumns
from raykd.corpora.config import SOURCES
from raykd.corpora.conll import Columns as ConllColumns
from raykd.corpora.predicted_pos import PredictedPos
from raykd.corpora.source import Split
from raykd.corpora.table_rows import TableColumns
from raykd.corpora.tsv import Columns as TsvColumns
from raykd.layers.contextual import EncoderConfig
from raykd.layers.optimisation import TrainingConfig
from raykd.layers.stage_schedule import ScheduleConfig
from raykd.layers.word_vectors import WordVectorsConfig
from raykd.objectives import OBJECTIVES, Part
from raykd.recipes.card_config import CardConfig
from raykd.recipes.recipe import Stage, Strategy, TeacherCorpus
from raykd.recipes.resources import AddedNodes, LatencyTarget, PrecomputeRole, Resources, Role
from raykd.students import STUDENTS
from raykd.students.embeddings import EMBEDDINGS
from raykd.students.vocabulary import StudentVocabulary
from raykd.sweep.early_stopping import StoppingConfig
from raykd.sweep.spec import (
    SEARCHABLE,
    BudgetConfig,
    ConfirmConfig,
    SearchConfig,
    SweepFile,
    TrackingConfig,
)
from raykd.teachers import TEACHERS

VOCABULARIES: tuple[type[BaseModel], ...] = get_args(get_args(StudentVocabulary)[0])

HEAD = """# The sweep file

One YAML 1.2 file. A plain value fixes a setting. `--set key=value` overrides any key from the command line. Unknown
keys are refused, and `raykd check` reports all faults together, each with its file and line.

## Searches

A mapping with one of these keys searches a setting. An option of a choice may hold further searches:

| written | searched |
|---|---|
| `{{choice: [16, 32, 64]}}` | one of the options |
| `{{int: [1, 10]}}`, with `step` or `log: true` | a whole number |
| `{{float: [0.1, 1.0]}}`, with `step` or `log: true` | a number |

Settings of {searchable} can be searched. The space of `student` must be finite, because every shape is measured
before the search: give a `step` to every `float` in it.

## Secrets

Write `${{NAME}}` in `store`, `corpus.root` or `tracking.uri` for the environment variable `NAME`. It is filled in
when a connection is made; in user and password it is quoted as URIs need it. Store, records, output and MLflow keep
`${{NAME}}`. In a flow mapping put quotes around it: `tracking: {{uri:
"postgresql://raykd:${{DB_PASSWORD}}@db/mlflow"}}`. On a cluster, set the variables of the store on every node.

## Variants

`variants` holds named changes to the file. Choose one with `--variant NAME`; `--small` is short for `--variant
small`. The name of the sweep becomes `name-variant`.

```yaml
variants:
  small: {{corpus: {{source: builtin, train: 200}}, search: {{trials: 3}}}}
```

A mapping changes the keys that it names and keeps the others. A mapping with `kind`, `source` or a search replaces the
whole value, and so does a value that is not a mapping. A mapping with whole numbers for keys changes these items of a
list, counted from 0: `stages: {{1: {{schedule: {{epochs: 2}}}}}}`.

`small` is for a quick try: `raykd check` warns if it is larger than the file in anything that takes time.

## Stages

`objective` is the short form of one stage. `stages` lists several: each trains its objective on its text and starts
from the best state of the stage before. What a stage does not set, it takes from the top-level `schedule` and
`training`. An objective that reads the teacher's distribution is weighed by λ against labels (see `schedule`); λ does
not apply to labels, hidden states and a `mix`.

```yaml
stages:
  - objective: {{kind: representation, layer: 1}}
    select: loss                               # the best state has the lowest loss on held-out text
  - objective:
      kind: mix
      parts:
        - {{objective: {{kind: posterior}}, weight: {{float: [0.1, 10], log: true}}}}
        - {{objective: {{kind: gold}}}}
  - objective: {{kind: gold}}
    head: new                                  # the stage begins with a newly initialised head
    layers: unfreeze                           # head, then projection, encoder and embeddings
    schedule: {{epochs: 20, patience: 3}}        # for each of these steps
```

A part of a `mix` with `text: labelled` or `text: unlabelled` counts only on these sentences, and its weight applies
to the mean over them. So weights do not depend on the amount of either text. The share of labelled text is that of
the rows that the stage trains on; with `corpus.sampling_alpha`, the expected share of the rows that are drawn.

## Strategies

`strategies` holds lists of stages by name. Write `strategy: NAME` instead of `stages`. Names can be searched: the
searches inside a strategy apply when the strategy is chosen.

```yaml
extends: ../base/strategies.yaml             # D0, D0-S, D1, D2, D3.1, D3.2, D4.1, D4.2 (XtremeDistil)
strategy: {{choice: [D1, D4.2, ours]}}
strategies:
  D1: {{stages: {{0: {{objective: {{parts: {{0: {{weight: {{float: [0.01, 100], log: true}}}}}}}}}}}}}}   # α is searched
  D4.2: {{stages: {{0: {{objective: {{layer: 6}}}}}}}}
  ours:
    stages:
      - {{objective: {{kind: logits}}, text: unlabelled}}
      - {{objective: {{kind: gold}}, head: new}}
```

A strategy may have a `scope`, which replaces `student.scope`. `--set strategies.D4.2.stages.0.objective.layer=6`
changes a strategy like any other value. Strategies that you do not name must be well-formed, but have no effect.

## Extending another file

`extends` names a sweep file with the settings that several sweeps share. The path is relative to the file that names
it.

```yaml
name: posterior
extends: ../base/conll_corpus.yaml
objective: {{kind: posterior}}
variants:
  small: {{search: {{trials: 1}}}}
```

The settings of the file replace those of the extended file by the rules of a variant. Variants are inherited, and
variants of the same name are merged. Then come `--variant` and, last, `--set`. An extended file may extend a further
one, and it may be incomplete: it is checked through the files that extend it.

`raykd check FILE` also checks the variants. A variant in `FILE` itself must fit. An inherited variant need not fit,
for example if `FILE` has another `student.kind`: `check` warns about it, and it is refused when you choose it.

*The rest of this page is written from the configuration models by `python docs/sweep_file.py`.*
"""

GRAMMAR = """\
| `extends` | text | | Path of the sweep file that this one extends, relative to this file |
| `strategies` | mapping to mappings | `{}` | Strategies by their names, for `strategy: NAME` |
| `variants` | mapping to mappings | `{}` | Named changes for `--variant NAME` |
"""

SECTIONS: Mapping[str, Mapping[str, type[BaseModel]]] = {
    "`corpus`": {f"source: {name}": model for name, model in SOURCES.items()}
    | {"split": Split, "predicted_pos": PredictedPos},
    "`corpus.columns`": {
        "source: conll": ConllColumns,
        "source: tsv": TsvColumns,
        "source: jsonl, parquet, huggingface": TableColumns,
        "source: spans": SpanColumns,
    },
    "`teachers`": {f"kind: {name}": model for name, model in TEACHERS.items()},
    "`contextual`": {"an encoder": EncoderConfig, "word vectors": WordVectorsConfig},
    "`teacher_corpus`": {"": TeacherCorpus},
    "`student`": {f"kind: {name}": model for name, model in STUDENTS.items()},
    "`embeddings`": {f"kind: {name}": model for name, model in EMBEDDINGS.items()},
    "`vocabulary`": {
        f"kind: {get_args(model.model_fields['kind'].annotation)[0]}": model for model in VOCABULARIES
    },
    "`objective`": {f"kind: {name}": model for name, model in OBJECTIVES.items()} | {"parts of a mix": Part},
    "`stages`": {"": Stage},
    "`strategies`": {"": Strategy},
    "`schedule`": {"": ScheduleConfig},
    "`training`": {"": TrainingConfig},
    "`search`": {"": SearchConfig, "stopping": StoppingConfig, "confirm": ConfirmConfig},
    "`budget`": {"": BudgetConfig},
    "`resources`": {
        "": Resources,
        "teachers, students": Role,
        "precompute": PrecomputeRole,
        "latency": LatencyTarget,
        "autoscale": AddedNodes,
    },
    "`tracking`": {"": TrackingConfig},
    "`card`": {"": CardConfig},
}


def main() -> None:
    """Write the page."""
    Path(__file__).with_name("SWEEP_FILE.md").write_text(reference(), encoding="utf-8")


def reference() -> str:
    """Return the whole page."""
    searchable = [f"`{section}`" for section in SEARCHABLE]
    head = HEAD.format(searchable=f"{', '.join(searchable[:-1])} and {searchable[-1]}")
    parts = [head, _section("The file", {"": SweepFile}) + GRAMMAR]
    return "\n".join([*parts, *(_section(title, models) for title, models in SECTIONS.items())])


def _section(title: str, models: Mapping[str, type[BaseModel]]) -> str:
    return "\n".join([f"## {title}\n", *(_table(name, model) for name, model in models.items())])


def _table(name: str, model: type[BaseModel]) -> str:
    lines = [f"### `{name}`\n"] if name else []
    # Google's sections (`Attributes:`, `Examples:`) are for readers of the code.
    summary = re.split(r"\n\s*(?:Attributes|Examples|Raises|References):\n", model.__doc__ or "")[0]
    lines += [" ".join(summary.split()) + "\n", "| key | values | default | |", "|---|---|---|---|"]
    lines += [_row(key, field) for key, field in model.model_fields.items() if key not in ("kind", "source")]
    return "\n".join(lines) + "\n" if len(lines) > 3 + bool(name) else "\n".join(lines[: 1 + bool(name)])


def _row(key: str, field: FieldInfo) -> str:
    default = "*required*" if field.is_required() else f"`{_default(field)}`"
    description = " ".join((field.description or "").split())
    return f"| `{key}` | {_values(field)} | {default} | {description} |".replace("|  |", "| |")


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True, validated_data={})
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
        item for arg in get_args(field.annotation) if get_origin(arg) is Annotated for item in _unpacked(arg)
    )


def _unpacked(annotation: Any) -> Iterator[Any]:
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
