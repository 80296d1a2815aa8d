"""A student as an MLflow model: the files of `raykd export` as a `python_function` that MLflow serves.

    MLmodel, model_code.py, requirements.txt, …    MLflow's own; `model_code.py` is run when the model is loaded
    artifacts/student/                             the files of the export, as they are

Nothing in it is pickled, and serving it needs no raykd: `requirements.txt` names numpy, onnxruntime, pandas and mlflow.
"""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raykd.storage.layout import CARD, LABELS
from raykd.tracking.server import environment_variables, only_warnings

if TYPE_CHECKING:
    from mlflow.models import ModelSignature
    from pandas import DataFrame

STUDENT = "artifacts/student"
"""Folder of the export in the model."""
CODE = Path(__file__).with_name("model_code.py")
EXAMPLE = "Ada Lovelace lives in London."
CONFIG = {"file": "model.onnx", "threads": 1}
"""Settings that `load_model(…, model_config=…)` and `mlflow models serve` may change."""


def save_model(export: Path, to: Path, *, model_id: str | None = None, run_id: str | None = None) -> None:
    """Write the MLflow model of an exported student.

    Args:
        export: Folder of an export, or a folder with one export per language.
        to: New folder for the model.
        model_id: Id of the model in MLflow.
        run_id: Run of the student's trial.
    """
    # Importing it takes seconds, and only the end of a sweep needs it.
    from mlflow import pyfunc
    from mlflow.models import Model

    cards = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(export.rglob(CARD))]
    per_language = not (export / CARD).is_file()
    names = ["onnxruntime", "numpy", "pandas", "mlflow"]
    names += ["tokenizers"] if any(card["tokenizer"] == "package" for card in cards) else []
    # MLflow would add the project file of the working directory, and log a line on each input example.
    with environment_variables(MLFLOW_UV_AUTO_DETECT="false"), only_warnings("mlflow.pyfunc"):
        pyfunc.save_model(
            path=str(to),
            python_model=str(CODE),
            mlflow_model=Model(model_id=model_id, run_id=run_id),
            signature=_signature(cards[0], per_language=per_language),
            input_example=_example(cards[0], export, per_language=per_language),
            pip_requirements=[f"{name}=={version(name)}" for name in names],
            model_config=CONFIG,
        )
    shutil.copytree(export, to / STUDENT)
    written = Model.load(str(to))
    # MLflow records paths of this machine's temporary folder; relative names are enough.
    flavor = written.flavors[pyfunc.FLAVOR_NAME]
    flavor["model_code_path"] = CODE.name
    flavor["artifacts"] = {"student": {"path": STUDENT, "uri": STUDENT}}
    written.save(str(to / "MLmodel"))


def _example(card: dict[str, Any], export: Path, *, per_language: bool) -> DataFrame:
    import pandas

    first = min(folder.name for folder in export.iterdir()) if per_language else "."
    row: dict[str, Any] = {"text": EXAMPLE}
    if trees := card.get("trees"):
        row = {"tokens": EXAMPLE.split()}
        if trees["pos"]:
            tags = json.loads((export / first / LABELS).read_text(encoding="utf-8"))["pos"]
            row["pos"] = tags[:1] * len(row["tokens"])
    return pandas.DataFrame([row | ({"language": first} if per_language else {})])


def _signature(card: dict[str, Any], *, per_language: bool) -> ModelSignature:
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema
    from mlflow.types.schema import Array, Object, Property

    # A single column without a name also accepts lists of strings.
    columns = (
        [ColSpec("string", "text"), ColSpec("string", "language")] if per_language else [ColSpec("string")]
    )
    trees = card.get("trees")
    if trees:
        names = ["tokens", "pos"] if trees["pos"] else ["tokens"]
        columns = [ColSpec(Array(DataType.string), name) for name in names]
        columns += [ColSpec("string", "language")] if per_language else []
    fields = {"text": DataType.string, "start": DataType.long, "end": DataType.long, "label": DataType.string}
    span = Object(
        [Property(name, kind) for name, kind in (fields | {"probability": DataType.double}).items()]
    )
    if card["unit"] == "sentence":
        outputs = [ColSpec("string", "label"), ColSpec("double", "probability")]
    else:
        outputs = [ColSpec(Array(span), "words"), ColSpec(Array(span), "spans")]
        outputs += [ColSpec(Array(DataType.long), "heads")] if trees else []
    return ModelSignature(Schema([*columns]), Schema([ColSpec("string", "text"), *outputs]))
