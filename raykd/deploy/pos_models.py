"""Part-of-speech models of corpora (`corpus.predicted_pos`), run by onnxruntime and numpy."""

from __future__ import annotations

from raykd.corpora.predicted_pos import HINT, PosModel
from raykd.errors import CorpusError
from raykd.serving.labeller import LabellerError, load


def open_pos_model(folder: str) -> PosModel:
    """Load the exported model in `folder`.

    Args:
        folder: Folder written by `raykd export`.

    Raises:
        CorpusError: The model cannot be loaded.
    """
    try:
        return load(folder)
    except LabellerError as error:
        raise CorpusError(folder, None, str(error), HINT) from None
