"""raykd: the smallest and fastest sequence labeller that keeps a teacher's accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from raykd.serving.labeller import Labeller
    from raykd.serving.pipeline import Pipeline
    from raykd.training.load import Tagger

__version__ = "0.1.0"

__all__ = ["load", "pipeline"]


def load(
    folder: str | Path,
    *,
    device: str = "cpu",
    split: str | None = None,
    away: Literal["student", "error"] = "student",
    run_code: bool = False,
) -> Tagger | Labeller:
    """Load a trained model to label text: the folder of a finished run, or one that `raykd export` wrote.

        import raykd
        tagger = raykd.load(".raykd/runs/run-…")
        tagger.label([["Ada", "Lovelace", "lives", "in", "London"]])

    A sentence is a list of words. It gets one label per word, or one label for a task that labels whole sentences. For
    a model that parses, call `parse`: it returns the head and the relation of each word.

    Args:
        folder: the folder of a student (`…/runs/run-…`) or a teacher (`…/teachers/teacher-…`): a path, s3://… or gs://….
            The folder may have been copied elsewhere or downloaded from MLflow. The model needs neither the corpus nor
            the store. Only a model that reads frozen encoders or word vectors (`contextual`), or is a checkpoint used
            as it is, also reads these files, at the paths in `model.json`; their checksums must not have changed.
        device: where the model computes: "cpu", "cuda", …; an exported model computes on the CPU.
        split: how an exported model splits texts into words: `signs` (at white space and at signs) or `whitespace` (at
            white space alone). Default: the setting stored in the export. The model of a run takes words, not texts.
        away: for a cascade whose teacher is away or fails: give the answer of the `student`, marked, or raise an
            `error`.
        run_code: for a cascade whose teacher is an annotator: open it, which runs a Python file of the folder, or loads
            the pipeline that the folder names. Set it only if you trust the folder. False: that teacher is away.

    Raises:
        LabellerError: a file of an exported model is missing or damaged, or `split` does not fit the model.
        ValueError: `split` was given for the model of a run.
        StoreError: a file is missing or not in raykd's format, or the folder belongs to an ensemble.
    """
    # Imported here, not above: torch takes seconds to import, and an exported model does not need it.
    if Path(folder, "export.json").is_file():
        from raykd.serving.labeller import load as load_labeller

        return load_labeller(folder, split=split, away=away, run_code=run_code)
    if split is not None:
        raise ValueError(
            f"{folder}: split is for exported models, and the model of a run takes words; leave it out"
        )
    from raykd.training.load import load_tagger

    return load_tagger(folder, device=device)


def pipeline(task: str, model: str | Path, **options: Any) -> Pipeline:
    """Return an exported model with the interface of Transformers' pipelines, without Transformers.

        import raykd
        label = raykd.pipeline("token-classification", "student", aggregation_strategy="simple")
        label("Ada Lovelace lives in London.")
        # [{"entity_group": "PER", "score": 0.98, "word": "Ada Lovelace", "start": 0, "end": 12}, …]

    Args:
        task: "token-classification" (or "ner"), or "text-classification" for a model with one label for a text.
        model: a folder that `raykd export` wrote.
        options: `aggregation_strategy` "none" (the default: an entry for each word) or "simple" (one for each span),
            `int8=True` for the file of 8 bits, `threads`, `batch_size`, `split`, `away` and `run_code` as
            of `load`.

    Raises:
        LabellerError: a file of the model is missing or damaged, the model is for the other task, or it is a parser.
        ValueError: the task or the strategy is unknown.
    """
    from raykd.serving.pipeline import Pipeline

    return Pipeline(task, model, **options)
