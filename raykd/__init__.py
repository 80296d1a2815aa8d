"""raykd: the smallest and fastest sequence labeller that keeps a teacher's accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raykd.serving.labeller import Labeller
    from raykd.serving.pipeline import Pipeline
    from raykd.training.load import Tagger

__version__ = "0.1.0"

__all__ = ["load", "pipeline"]


def load(folder: str | Path, *, device: str = "cpu", split: str | None = None) -> Tagger | Labeller:
    """The trained model in the folder of a finished run, or in one that `raykd export` wrote, ready to label text.

        import raykd
        tagger = raykd.load(".raykd/runs/run-…")
        tagger.label([["Ada", "Lovelace", "lives", "in", "London"]])

    A sentence is a list of words, and gets one label per word, or one label where the task labels whole sentences. A
    model that parses is asked by `parse`: of each word its head and its relation.

    Args:
        folder: a student's (`…/runs/run-…`) or a teacher's (`…/teachers/teacher-…`), on this machine, as s3://… or
            gs://…, copied elsewhere, or downloaded from MLflow. It needs neither the corpus nor the store. Only a
            model that reads frozen encoders or word vectors (`contextual`), or is a checkpoint used as it is, also
            reads these, at the paths in `model.json`; they must be the same by their checksums.
        device: where the model computes: "cpu", "cuda", …; an exported model computes on the CPU.
        split: how an exported model splits texts into words: `signs`, at white space and at signs, or `whitespace`, at
            white space alone. Default: as the export says. The model of a run is given words.

    Raises:
        LabellerError: a file of an exported model is missing or damaged, or `split` does not fit it.
        ValueError: `split` for the model of a run.
        StoreError: a file is missing or not what raykd writes, or the folder is an ensemble's.
    """
    # torch takes seconds to import, and an exported model does without; `import raykd` defines names only.
    if Path(folder, "export.json").is_file():
        from raykd.serving.labeller import load as load_labeller

        return load_labeller(folder, split=split)
    if split is not None:
        raise ValueError(f"{folder}: split is for exported models, and a run's is given words; leave it out")
    from raykd.training.load import load_tagger

    return load_tagger(folder, device=device)


def pipeline(task: str, model: str | Path, **options: Any) -> Pipeline:
    """An exported model that answers in the form of Transformers' pipelines, without Transformers.

        import raykd
        label = raykd.pipeline("token-classification", "student", aggregation_strategy="simple")
        label("Ada Lovelace lives in London.")
        # [{"entity_group": "PER", "score": 0.98, "word": "Ada Lovelace", "start": 0, "end": 12}, …]

    Args:
        task: "token-classification" (or "ner"), or "text-classification" for a model with one label for a text.
        model: a folder that `raykd export` wrote.
        options: `aggregation_strategy` "none" (the default: an entry for each word) or "simple" (one for each span),
            `int8=True` for the file of 8 bits, `threads`, `batch_size`, `split` as of `load`.

    Raises:
        LabellerError: a file of the model is missing or damaged, or the model is for the other task, or parses.
        ValueError: the task or the strategy is unknown.
    """
    from raykd.serving.pipeline import Pipeline

    return Pipeline(task, model, **options)
