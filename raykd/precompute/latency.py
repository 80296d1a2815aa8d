"""Latency: the time that a model takes for synthetic batches, on one CPU thread with nothing beside it.

A process is slow at first (code is compiled and loaded; the first rounds after that are a third slower), and machines
are disturbed for tenths of seconds at a time. So all calls take turns, pass after pass, and only the calmest passes of
each count. Two measurements of one shape then agree, in any order, and several shapes are disturbed alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TypeVar

import numpy as np
import torch

from raykd.corpora.encoded_text import TokenBatch
from raykd.corpora.vocabulary import WordVocabulary
from raykd.corpora.word_pieces import Vocabulary
from raykd.identity import PlainObject
from raykd.layers.model import Model
from raykd.layers.pointer_generator import PointerGenerator
from raykd.layers.threads import one_thread
from raykd.objectives.labels import negative_log_likelihood
from raykd.precompute.processor import processor_name
from raykd.progress import with_progress
from raykd.recipes.stored_vocabulary import StoredVocabulary
from raykd.structures import viterbi

# The timed sentences have 32 pieces, 24 words (WikiAnn has 1.3 pieces a word) and 6 characters a word.
PIECES, WORDS, CHARACTERS = 32, 24, 6
PASSES, MIN_PASSES, COUNTED_PASSES = 30, 5, 6
"""Passes over all calls; least number of passes of a slow call, whose rounds take `SECONDS` together; passes that
count."""
ROUNDS, PASS_S, WARM_UP = 10, 0.01, 5
"""Rounds of one pass; its time in seconds, after which no further round begins; rounds before the first pass."""
SECONDS = 1.0
BATCH, TRAINING_ROUNDS = 32, 5
TRAINING_S = 0.5
"""Seconds after which no further training step is timed."""

Name = TypeVar("Name")


@dataclass(frozen=True)
class Timing:
    """The time of one call.

    Attributes:
        p50_ms: Median of the rounds, in milliseconds.
        p90_ms: 90th percentile of the rounds, in milliseconds.
        spread: Standard deviation of the medians of the counted passes, as a share of the median.
    """

    p50_ms: float
    p90_ms: float
    spread: float = 0.0


def hardware(node_processor: str | None = None) -> PlainObject:
    """Return the description of the hardware of a latency, part of the identity of a cost.

    Args:
        node_processor: name of the processor of another node; None for this machine.
    """
    versions = {"torch": str(torch.__version__), "onnxruntime": version("onnxruntime")}
    return {"processor": node_processor or processor_name(), **versions, "threads": 1}


def labelling_call(model: Model, batch: TokenBatch) -> Callable[[], object]:
    """Return a function for labelling `batch` once, decoding included.

    A model that generates writes one step for each word: an untrained model does not know when to end.

    Args:
        model: in evaluation mode.
        batch: the sentences.
    """
    if isinstance(model, PointerGenerator):
        return lambda: viterbi(model.generate(batch, steps=WORDS))

    def label() -> object:
        output = model(batch)
        return viterbi(output.distribution, output.legal)

    return label


def time_in_turns(calls: Mapping[Name, Callable[[], object]]) -> dict[Name, Timing]:
    """Return the timings of some calls, which take turns on one thread; only the calmest passes of each count.

    Args:
        calls: functions by name.
    """
    passes: dict[Name, list[list[float]]] = {name: [] for name in calls}
    spent_ms = dict.fromkeys(calls, 0.0)
    with torch.inference_mode(), one_thread():
        for call in calls.values():
            _pass(call, WARM_UP)
        for number in with_progress(range(PASSES)):
            for name, call in calls.items():
                if number >= MIN_PASSES and spent_ms[name] > SECONDS * 1e3:
                    continue
                # Another call has filled the caches, so call once untimed. A call longer than a pass needs no warm-up.
                if spent_ms[name] <= number * PASS_S * 2e3:
                    call()
                rounds = _pass(call, ROUNDS)
                passes[name].append(rounds)
                spent_ms[name] += sum(rounds)
    return {name: _calmest_timing(passes_of_call) for name, passes_of_call in passes.items()}


def time_training(model: Model, batch: TokenBatch) -> Timing:
    """Return the timing of an optimiser step with random labels, on one thread or on a GPU. Changes the model.

    Args:
        model: in training mode afterwards.
        batch: on the device of the model.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser, times = torch.optim.Adam(parameters), list[float]()
    model.train()
    with one_thread():
        while len(times) <= TRAINING_ROUNDS and (len(times) < 2 or sum(times[1:]) < TRAINING_S):
            started = time.perf_counter()
            distribution = model(batch).distribution
            labels_BT = batch.first_BT.new_zeros(len(batch.lengths_B), int(batch.lengths_B.max()))
            negative_log_likelihood(distribution, labels_BT).mean().backward()
            optimiser.step()
            optimiser.zero_grad()
            if batch.lengths_B.device.type == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - started)
    steps_ms = [1e3 * seconds for seconds in times[1:]]  # the first one loads code
    median = statistics.median(steps_ms)
    spread = statistics.stdev(steps_ms) / median if len(steps_ms) > 1 else 0.0
    return Timing(median, max(steps_ms), spread)


def synthetic_batch(sentences: int, vocabulary: StoredVocabulary) -> TokenBatch:
    """Return a batch of random sentences of 32 pieces in 24 words.

    Args:
        sentences: number of sentences.
        vocabulary: decides the pieces; encoders and characters get random input too.
    """
    draw = torch.Generator().manual_seed(0)
    batch = _pieces(sentences, vocabulary.pieces, draw)
    context = (
        # A table of word vectors reads whole words.
        _pieces(sentences, part, draw, pieces=WORDS if isinstance(part, WordVocabulary) else PIECES)
        for part in vocabulary.context
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


def _pass(call: Callable[[], object], rounds: int) -> list[float]:
    """The times of the rounds, in milliseconds."""
    times: list[float] = []
    while len(times) < rounds and sum(times) < PASS_S * 1e3:
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1e3)
    return times


def _calmest_timing(passes: list[list[float]]) -> Timing:
    """The timing over the passes with the lowest means."""
    calmest = sorted(passes, key=statistics.fmean)[:COUNTED_PASSES]
    p50, p90 = np.quantile([round_ms for rounds in calmest for round_ms in rounds], (0.5, 0.9))
    medians = [statistics.median(rounds) for rounds in calmest]
    spread = statistics.stdev(medians) / float(p50) if len(medians) > 1 else 0.0
    return Timing(round(float(p50), 4), round(float(p90), 4), round(spread, 4))


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
