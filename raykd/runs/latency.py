"""Latency, measured alone: a model times synthetic batches on one CPU thread."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import torch

from raykd.corpora.encoding import TokenBatch
from raykd.corpora.pieces import Vocabulary
from raykd.corpora.vocabulary import WordVocabulary
from raykd.layers import Model
from raykd.layers.threads import one_thread
from raykd.objectives.labels import negative_log_likelihood
from raykd.runs.deployed import Session
from raykd.runs.vocabularies import StoredVocabulary
from raykd.structures import viterbi

# What is timed: sentences of 32 pieces, 24 words (WikiAnn has 1.3 pieces a word), 6 characters a word.
PIECES, WORDS, CHARACTERS = 32, 24, 6
WARM_UP, ROUNDS, FEWEST = 5, 30, 10
"""Rounds that are not timed; those that are, of which a slow model has the fewest when `SECONDS` have passed."""
SECONDS = 5.0
BATCH, TRAINING_ROUNDS = 32, 5


def hardware() -> dict[str, Any]:
    """What a latency is measured on, part of its identity in the cache."""
    versions = {"torch": str(torch.__version__), "onnxruntime": version("onnxruntime")}
    return {"processor": _processor(), **versions, "threads": 1}


def time_batches(model: Model, batch: TokenBatch) -> tuple[float, float]:
    """p50 and p90, in milliseconds, of labelling `batch` once, decoding included, on one thread."""
    with torch.inference_mode(), one_thread():
        return _timed(lambda: viterbi(model(batch).distribution))


def time_session(session: Session, batch: TokenBatch) -> tuple[float, float]:
    """The same of a deployed model, on the threads that it has."""
    return _timed(lambda: session.labels(batch))


def time_training(model: Model, batch: TokenBatch) -> float:
    """Median seconds of one optimiser step on `batch` with random labels, on one thread. Changes the model."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser, times = torch.optim.Adam(parameters), []
    model.train()
    with one_thread():
        for i in range(1 + TRAINING_ROUNDS):
            started = time.perf_counter()
            distribution = model(batch).distribution
            labels_BT = torch.zeros(len(batch.lengths_B), int(batch.lengths_B.max()), dtype=torch.long)
            negative_log_likelihood(distribution, labels_BT).mean().backward()
            optimiser.step()
            optimiser.zero_grad()
            if i:
                times.append(time.perf_counter() - started)
    return statistics.median(times)


def synthetic_batch(sentences: int, vocabulary: StoredVocabulary) -> TokenBatch:
    """`sentences` sentences of 32 pieces in 24 words, drawn at random; as many of an encoder's pieces, too."""
    draw = torch.Generator().manual_seed(0)
    batch = _pieces(sentences, vocabulary.pieces, draw)
    context = (
        # A table of vectors reads words.
        _pieces(sentences, own, draw, pieces=WORDS if isinstance(own, WordVocabulary) else PIECES)
        for own in vocabulary.context
    )
    batch = replace(batch, context=tuple(context))
    if vocabulary.characters is None:
        return batch
    spelt = (sentences, WORDS, CHARACTERS)
    return replace(
        batch,
        characters_BTC=torch.randint(2, vocabulary.characters.size, spelt, generator=draw),
        character_lengths_BT=torch.full(spelt[:2], CHARACTERS),
    )


def _timed(label: Callable[[], object]) -> tuple[float, float]:
    """p50 and p90, in milliseconds."""
    for _ in range(WARM_UP):
        label()
    times: list[float] = []
    while len(times) < ROUNDS and (len(times) < FEWEST or sum(times) < SECONDS * 1e3):
        started = time.perf_counter()
        label()
        times.append((time.perf_counter() - started) * 1e3)
    return round(statistics.median(times), 4), round(statistics.quantiles(times, n=10)[-1], 4)


def _pieces(
    sentences: int, vocabulary: Vocabulary, draw: torch.Generator, *, pieces: int = PIECES
) -> TokenBatch:
    spread = torch.arange(WORDS) * pieces // WORDS
    return TokenBatch(
        pieces_BP=torch.randint(2, vocabulary.size, (sentences, pieces), generator=draw),
        piece_lengths_B=torch.full((sentences,), pieces),
        first_BT=spread.expand(sentences, WORDS).contiguous(),
        lengths_B=torch.full((sentences,), WORDS),
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
