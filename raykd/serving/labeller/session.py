"""The model's graph in ONNX Runtime, and the division of sentences into batches or windows for it.

Shapes: B sentences of a batch, W windows, P pieces, T words, Y labels.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .folder import LabellerError
from .lattice import Chain, best_path
from .pieces import Split, character_inputs, model_inputs, truncate
from .words import UTTERANCE, Sentences

BATCH_PIECES = 2**9
"""Most pieces of a batch, padded to the longest text: ONNX Runtime keeps the memory of the largest batch."""
LONG_TEXT_PIECES = 2**11
"""Pieces from which the memory of a text, which is read alone, is given back."""
LabelsAndScores = tuple[np.ndarray, np.ndarray]
"""Best labels [T] and scores [T, Y] of a sentence."""


class Session:
    """One model file in ONNX Runtime."""

    def __init__(self, folder: Path, name: str, size: int | None, threads: int):
        """Raise LabellerError if the file is missing or does not have `size` bytes, or onnxruntime is missing."""
        file = folder / name
        if not file.is_file():
            raise LabellerError(
                f"{file}: there is no such file; copy the whole folder that raykd export wrote"
            )
        if size is not None and file.stat().st_size != size:
            problem = f"it has {file.stat().st_size:,} bytes, and {size:,} were exported"
            raise LabellerError(f"{file}: {problem}; copy the folder again")
        self._file, self._threads = str(file), threads
        self._open()
        self.inputs: list[str] = [tensor.name for tensor in self._session.get_inputs()]

    def _open(self) -> None:
        self._process = os.getpid()
        self._session = open_session(self._file, self._threads)
        import onnxruntime

        self._shrinking = onnxruntime.RunOptions()
        self._shrinking.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def run(self, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels [B, T] and the scores [B, T, Y]; a long text's memory is given back to the system."""
        if self._process != os.getpid():
            self._open()  # a forked process has none of the session's threads
        options = self._shrinking if inputs["pieces"].size > LONG_TEXT_PIECES else None
        return self._session.run(["labels", "scores"], {name: inputs[name] for name in self.inputs}, options)


def open_session(model: str | bytes, threads: int) -> Any:
    """Open a model in ONNX Runtime.

    Args:
        model: File of the model, or its bytes.
        threads: Threads of the processor.

    Raises:
        LabellerError: onnxruntime is missing.
    """
    # Without this variable onnxruntime sends telemetry from its import on; "0" leaves it so.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime

        if os.environ["ORT_DISABLE_TELEMETRY"] != "0":
            onnxruntime.disable_telemetry_events()  # if it was imported before the variable was set
    except ImportError:
        raise LabellerError("onnxruntime is not installed; run pip install onnxruntime numpy") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3  # errors
    # Without VNNI a processor adds products of 8 bits in 16, which overflows; so they are added in 32.
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@dataclass(frozen=True)
class Reader:
    """Reads sentences with a model: words in, the best labels and the scores out."""

    session: Session
    special: Mapping[str, Any]
    """The pieces around a sentence, on padding and between the texts of a pair: `special` of `export.json`."""
    limit: int | None
    """Pieces that the model reads at once; None without a limit."""
    split: Split
    """Gives the pieces of a word, also of a special word."""
    spell: Split | None
    """Gives the characters of a word; None where the model reads none."""
    one_label: bool
    """True if a sentence has one label."""
    utterances: bool
    """True if a word for the intent is put in front of each sentence."""
    decoding: Chain | None
    """The scores by which the best labelling is found where a sentence is read in windows."""

    def read(self, sentences: Sentences, batch: int) -> list[LabelsAndScores]:
        """Return the best labels and the scores of sentences, read in batches of similar length.

        For an utterance T is one more than its words, the intent first.

        Args:
            sentences: Words of each sentence.
            batch: Sentences that are read together.
        """
        if self.utterances:
            sentences = [[UTTERANCE, *words] for words in sentences]
        rows = [[self.split(word) for word in words] for words in sentences]
        sizes = [sum(map(len, row)) for row in rows]
        special_pieces = len(self.special["prefix"]) + len(self.special["suffix"])
        width = None if self.limit is None else self.limit - special_pieces
        results: list[Any] = [None] * len(rows)
        for places in batches_by_size(sizes, batch):
            group = [(sentences[place], rows[place]) for place in places]
            if width is not None and any(sizes[place] > width for place in places):
                scored = [self._read_long(words, row, width) for words, row in group]
            else:
                scored = self._run(group)
            for place, result in zip(places, scored, strict=True):
                results[place] = result
        return results

    def _run(self, group: Sequence[tuple[Sequence[str], list[list[int]]]]) -> list[LabelsAndScores]:
        rows = [row for _, row in group]
        inputs = model_inputs(rows, self.special)
        if self.spell is not None:
            inputs |= character_inputs([words for words, _ in group], self.spell)
        best_BT, scores_BTY = self.session.run(inputs)
        counts = [1 if self.one_label else len(row) for row in rows]
        return [(best_BT[b, :n], scores_BTY[b, :n]) for b, n in enumerate(counts)]

    def _read_long(self, words: Sequence[str], row: list[list[int]], width: int) -> LabelsAndScores:
        """Read one sentence of any length, in overlapping windows if it has more pieces than the model reads."""
        # A text with one label is cut to its beginning, a pair to both beginnings.
        if self.one_label:
            return self._run([(words, [truncate(words, row, width)])])[0]
        # An utterance's first word has no piece of its own where a model has such a limit.
        body = [piece for pieces in row for piece in pieces]
        if len(body) <= width:
            return self._run([(words, row)])[0]
        front = int(self.utterances)
        starts_W = window_starts(len(body), width)
        # Each piece as a word of its own, so that there are scores for every piece; the first place is the intent's.
        windows = [[*row[:front], *([piece] for piece in body[start : start + width])] for start in starts_W]
        scores_WPY = np.stack([self._run([(words, window)])[0][1] for window in windows])
        first_T = np.cumsum([0, *map(len, row[front:-1])])
        window_T = best_windows(starts_W, len(body), width)[first_T]
        scores_TY = scores_WPY[window_T, front + first_T - np.array(starts_W)[window_T]]
        scores_TY = np.concatenate([scores_WPY[0, :front], scores_TY])
        return best_path(scores_TY, self.decoding), scores_TY


def batches_by_size(sizes: Sequence[int], batch: int) -> Iterator[list[int]]:
    """Yield batches of the places of `sizes`, from the smallest on.

    A batch has up to `batch` entries and BATCH_PIECES padded pieces; a larger entry is alone in its batch.

    Args:
        sizes: Pieces of each sentence.
        batch: Most sentences of a batch.
    """
    places: list[int] = []
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        if places and (len(places) == batch or sizes[place] * (len(places) + 1) > BATCH_PIECES):
            yield places
            places = []
        places.append(place)
    if places:
        yield places


def window_starts(pieces: int, width: int) -> list[int]:
    """Return the first pieces of windows of `width` pieces. Windows overlap by half; the last ends with the text."""
    return [*range(0, pieces - width, max(1, width // 2)), pieces - width]


def best_windows(starts: Sequence[int], pieces: int, width: int) -> np.ndarray:
    """Return by piece [P] the window in which the piece is farthest from a cut; the ends of the text are no cuts."""
    place_P, starts_W1 = np.arange(pieces), np.array(starts)[:, None]
    before_WP = np.where(starts_W1 == 0, pieces, place_P - starts_W1)
    after_WP = np.where(starts_W1 + width == pieces, pieces, starts_W1 + width - 1 - place_P)
    return np.minimum(before_WP, after_WP).argmax(0)
