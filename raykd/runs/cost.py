"""What a shape costs: parameters, bytes, latency. It depends on the shape alone, so it is known before training."""

from __future__ import annotations

import platform
import statistics
import time
from dataclasses import replace
from typing import Any

import torch

from raykd.corpora.encoding import TokenBatch
from raykd.corpora.pieces import Vocabulary
from raykd.identity import identity
from raykd.layers import Tagger
from raykd.runs.data import corpus_of
from raykd.runs.execute import build_model, count_parameters, model_config, parameter_bytes
from raykd.runs.run import Run
from raykd.runs.vocabularies import StoredVocabulary, open_vocabulary
from raykd.storage import Storage
from raykd.structures import viterbi

# What is timed: sentences of 32 pieces, 24 words (WikiAnn has 1.3 pieces a word), 6 characters a word.
PIECES, WORDS, CHARACTERS = 32, 24, 6
WARM_UP, ROUNDS = 5, 30
FORMAT = 1


def hardware() -> dict[str, Any]:
    """What a latency is measured on, part of its identity in the cache."""
    return {"processor": _processor(), "torch": str(torch.__version__), "threads": 1}


def shape_of(storage: Storage, run: Run) -> dict[str, Any]:
    """All that a run's cost depends on; two runs of one shape cost the same."""
    vocabulary = open_vocabulary(storage, run.vocabulary_id)
    return {
        "model": model_config(run).shape(),
        "models": len(run.members) or 1,
        "pieces": vocabulary.pieces.size,
        "characters": vocabulary.characters.size if vocabulary.characters else 0,
        "context": vocabulary.context.size if vocabulary.context else 0,
        "tags": len(corpus_of(storage.uri, run.corpus_id).tag_set),
    }


def cost_key(storage: Storage, run: Run) -> str:
    """Where the cost of a run's shape on this hardware is kept."""
    return identity("cost", {"format": FORMAT, "shape": shape_of(storage, run), "hardware": hardware()})


def find_cost(storage: Storage, run: Run) -> dict[str, Any] | None:
    """The cost of the run's shape, if it was measured on this hardware before."""
    name = f"costs/{cost_key(storage, run)}.json"
    return storage.read_json(name) if storage.exists(name) else None


def measure_cost(store_uri: str, run: Run) -> dict[str, Any]:
    """Parameters, bytes, and latency at batch 1 and 32, p50 and p90 in ms, decoding included, on one CPU thread.

    To be called where nothing else computes. The weights do not matter, so an untrained model is timed.
    """
    storage = Storage(store_uri)
    found = find_cost(storage, run)
    if found is not None:
        return found
    model = build_model(storage, run, dropout=0.0).eval()
    vocabulary = open_vocabulary(storage, run.vocabulary_id)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        one, many = (time_batches(model, synthetic_batch(size, vocabulary)) for size in (1, 32))
    finally:
        torch.set_num_threads(threads)
    cost = {
        "parameters": count_parameters(model),
        "bytes": parameter_bytes(model),
        "latency_ms": one[0],
        "latency_ms_p90": one[1],
        "latency_ms_batch32": many[0],
        "latency_ms_batch32_p90": many[1],
        "shape": shape_of(storage, run),
        "hardware": hardware(),
    }
    storage.write_json(f"costs/{cost_key(storage, run)}.json", cost)
    return cost


def time_batches(model: Tagger, batch: TokenBatch) -> tuple[float, float]:
    """p50 and p90, in milliseconds, of tagging `batch` once."""
    times = []
    with torch.inference_mode():
        for i in range(WARM_UP + ROUNDS):
            started = time.perf_counter()
            viterbi(model(batch))
            if i >= WARM_UP:
                times.append((time.perf_counter() - started) * 1e3)
    return round(statistics.median(times), 4), round(statistics.quantiles(times, n=10)[-1], 4)


def synthetic_batch(sentences: int, vocabulary: StoredVocabulary) -> TokenBatch:
    """`sentences` sentences of 32 pieces in 24 words, drawn at random; so many of an encoder's pieces, too."""
    draw = torch.Generator().manual_seed(0)
    batch = _pieces(sentences, vocabulary.pieces, draw)
    if vocabulary.context is not None:
        batch = replace(batch, context=_pieces(sentences, vocabulary.context, draw))
    if vocabulary.characters is None:
        return batch
    spelt = (sentences, WORDS, CHARACTERS)
    return replace(
        batch,
        characters_BTC=torch.randint(2, vocabulary.characters.size, spelt, generator=draw),
        character_lengths_BT=torch.full(spelt[:2], CHARACTERS),
    )


def _pieces(sentences: int, vocabulary: Vocabulary, draw: torch.Generator) -> TokenBatch:
    spread = torch.arange(WORDS) * PIECES // WORDS
    return TokenBatch(
        pieces_BP=torch.randint(2, vocabulary.size, (sentences, PIECES), generator=draw),
        piece_lengths_B=torch.full((sentences,), PIECES),
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
