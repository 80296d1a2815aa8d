"""Features of frozen encoders, computed once per sentence by Ray Data and read by all teachers and students.

    <store>/encoders/<encoder id>/encoder.json        the encoder's configuration and path
    <store>/encoders/<encoder id>/<text id>.json      a text whose features are stored, as the signal `features`

A second sweep, language or larger corpus computes the features of new sentences only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from raykd.corpora.batching import plan_batches
from raykd.corpora.encoded_text import TokenBatch, encode_text
from raykd.corpora.word_pieces import Vocabulary
from raykd.layers.contextual import FrozenConfig, FrozenFeatures, part_class
from raykd.precompute.plan import PrecomputePlan, PrecomputeTask
from raykd.precompute.shard_writer import TeacherHandle
from raykd.recipes.run import Run, validate_plain
from raykd.signals import EncoderOutput, Sizes
from raykd.storage.layout import ENCODER, ENCODERS
from raykd.storage.store import Storage
from raykd.training.data import cached_corpus
from raykd.training.stored_features import FEATURES, frozen_encoder_configs, stored_texts
from raykd.transfer import Text

SHARDS = 64
"""Least number of shards of a text, as long as a shard has `SMALLEST_SHARD` sentences."""
SMALLEST_SHARD = 250
LOADER = "raykd.precompute.features:load_encoder"


@dataclass(frozen=True)
class EncoderTask:
    """The sentences to read by one frozen encoder for some runs."""

    config: FrozenConfig
    sentences: int
    """Number of different sentences that the runs need."""
    texts: tuple[Text, ...]
    """The sentences that are not stored, and stored texts with a lost shard."""

    @property
    def new(self) -> int:
        """The largest number of sentences to read."""
        return sum(map(len, self.texts))


def encoder_tasks(storage: Storage, runs: Iterable[Run], texts: Mapping[str, Text]) -> list[EncoderTask]:
    """Return the sentences to read by frozen encoders, so that all runs find their features in the store.

    Args:
        storage: the store.
        runs: their corpora are read.
        texts: run id of a teacher → the text that it labels.

    Returns:
        One task for each encoder.
    """
    configs: dict[str, FrozenConfig] = {}
    corpora: dict[str, list[Text]] = {}
    texts_by_encoder: dict[str, dict[str, Text]] = {}
    for run in runs:
        for config in frozen_encoder_configs(run):
            configs[config.id] = config
            if run.corpus_id not in corpora:
                corpora[run.corpus_id] = _texts_of(storage.uri, run.corpus_id)
            labelled = [texts[run.id]] if run.id in texts else []
            run_texts = {text.id: text for text in (*corpora[run.corpus_id], *labelled)}
            texts_by_encoder[config.id] = texts_by_encoder.get(config.id, {}) | run_texts
    return [
        _encoder_task(storage, configs[name], tuple(run_texts.values()))
        for name, run_texts in texts_by_encoder.items()
    ]


def _encoder_task(storage: Storage, config: FrozenConfig, texts: Sequence[Text]) -> EncoderTask:
    text = Text.union(texts)
    new = different = text.first_rows
    damaged: list[Text] = []
    for stored in stored_texts(storage, config.id):
        stored_sentences = stored.rows(text.hashes[new]) >= 0
        if stored_sentences.any() and not _is_whole(storage, config, stored):
            damaged.append(stored)
        new = new[~stored_sentences]
    if not len(new):
        return EncoderTask(config, len(different), tuple(damaged))
    missing = text if len(new) == len(text) else text.subset(new)
    return EncoderTask(config, len(different), (*damaged, missing))


def _is_whole(storage: Storage, config: FrozenConfig, text: Text) -> bool:
    (covered,) = PrecomputePlan(storage.uri, (_task(storage, config, text),)).coverage()
    return all(part.complete for part in covered.parts)


def feature_plan(storage: Storage, tasks_of_encoders: Iterable[EncoderTask]) -> PrecomputePlan | None:
    """Return the plan for missing features; None if there are none.

    Args:
        storage: the store.
        tasks_of_encoders: from `encoder_tasks`.
    """
    tasks = tuple(_task(storage, task.config, text) for task in tasks_of_encoders for text in task.texts)
    return PrecomputePlan(storage.uri, tasks) if tasks else None


def store_encoder_config(storage: Storage, config: FrozenConfig) -> None:
    """Store the configuration and the path of an encoder; the path may have changed since another sweep."""
    storage.child(ENCODERS, config.id).write_json(ENCODER, {"config": config.model_dump(mode="json")})


def mark_texts_encoded(storage: Storage, task: EncoderTask) -> None:
    """Record the texts of a task as stored."""
    folder = storage.child(ENCODERS, task.config.id)
    for text in task.texts:
        folder.write_json(f"{text.id}.json", {"sentences": len(text)})


class LoadedEncoder:
    """A frozen encoder in memory, with the interface of a teacher for the precompute's actors."""

    def __init__(self, features: FrozenFeatures, vocabulary: Vocabulary, device: torch.device):
        self._features, self._vocabulary, self._device = features, vocabulary, device

    def outputs(
        self, sentences: Sequence[Sequence[str]], token_budget: int, *, layers: Sequence[int] = ()
    ) -> Iterator[tuple[list[int], TokenBatch, EncoderOutput]]:
        """Yield the features of all sentences, in batches of similar length.

        Args:
            sentences: lists of words.
            token_budget: pieces of a batch, padding included.
            layers: ignored; an encoder gives its one layer.

        Yields:
            The positions of the batch's sentences, the batch, and the features as layer 0.
        """
        text = encode_text(sentences, self._vocabulary)
        plan = plan_batches(text.piece_lengths, batch_tokens=token_budget, seed=0, epoch=0, shuffle=False)
        for rows in plan:
            batch = text.gather(rows).to(self._device)
            yield rows.tolist(), batch, EncoderOutput({0: self._features.compute(batch)})


def load_encoder(storage: Storage, encoder_id: str, device: torch.device) -> LoadedEncoder:
    """Load the encoder called `encoder_id` on a device."""
    plain = storage.read_json(f"{ENCODERS}/{encoder_id}/{ENCODER}")
    config = validate_plain(part_class(plain["config"]), plain["config"])
    return LoadedEncoder(config.build(), config.vocabulary(), device)


def _task(storage: Storage, config: FrozenConfig, text: Text) -> PrecomputeTask:
    sizes = Sizes(0, {0: config.build().output_size})
    handle = TeacherHandle(
        storage.uri, config.id, LOADER, sizes, weights_sha256=config.checksum or "", offers=(FEATURES.signal,)
    )
    # Encoders are slow: with few large shards, most actors would wait for the last one.
    shard = min(max(len(text) // SHARDS, SMALLEST_SHARD), PrecomputePlan.shard_sentences)
    return PrecomputeTask(handle, text, (FEATURES,), shard)


def _texts_of(store_uri: str, corpus_id: str) -> list[Text]:
    """The sentences of all parts of a corpus."""
    parts = cached_corpus(store_uri, corpus_id).parts.values()
    return [Text.from_tokens(part["tokens"]) for part in parts if part.num_rows]
