"""What frozen encoders give, computed once for each sentence by Ray Data: every teacher and student reads it.

    <store>/encoders/<encoder id>/encoder.json        what it is, and where it lies
    <store>/encoders/<encoder id>/<text id>.json      a text whose features are stored, as the signal `features`

Another sweep, another language or a larger corpus computes what is new in it.
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
"""Into how many shards a text is cut at least, if these have `SMALLEST_SHARD` sentences or more."""
SMALLEST_SHARD = 250
LOADER = "raykd.precompute.features:load_encoder"


@dataclass(frozen=True)
class EncoderTask:
    """What one frozen encoder has to read for some runs."""

    config: FrozenConfig
    sentences: int
    """Different sentences that the runs need of it."""
    texts: tuple[Text, ...]
    """Those of them that are not stored, and stored texts of which a shard was lost."""

    @property
    def new(self) -> int:
        """How many sentences it has to read at most."""
        return sum(map(len, self.texts))


def encoder_tasks(storage: Storage, runs: Iterable[Run], texts: Mapping[str, Text]) -> list[EncoderTask]:
    """What each frozen encoder has to read so that all `runs` find its features in the store: their corpora, and by run
    id the text that a teacher labels.
    """
    configs: dict[str, FrozenConfig] = {}
    corpora: dict[str, list[Text]] = {}
    asked: dict[str, dict[str, Text]] = {}
    for run in runs:
        for config in frozen_encoder_configs(run):
            configs[config.id] = config
            if run.corpus_id not in corpora:
                corpora[run.corpus_id] = _texts_of(storage.uri, run.corpus_id)
            labelled = [texts[run.id]] if run.id in texts else []
            own = {text.id: text for text in (*corpora[run.corpus_id], *labelled)}
            asked[config.id] = asked.get(config.id, {}) | own
    return [_reading(storage, configs[name], tuple(own.values())) for name, own in asked.items()]


def _reading(storage: Storage, config: FrozenConfig, texts: Sequence[Text]) -> EncoderTask:
    text = Text.union(texts)
    new = different = text.first_rows
    damaged: list[Text] = []
    for stored in stored_texts(storage, config.id):
        found = stored.rows(text.hashes[new]) >= 0
        if found.any() and not _is_whole(storage, config, stored):
            damaged.append(stored)
        new = new[~found]
    if not len(new):
        return EncoderTask(config, len(different), tuple(damaged))
    left = text if len(new) == len(text) else text.subset(new)
    return EncoderTask(config, len(different), (*damaged, left))


def _is_whole(storage: Storage, config: FrozenConfig, text: Text) -> bool:
    (covered,) = PrecomputePlan(storage.uri, (_task(storage, config, text),)).coverage()
    return all(part.complete for part in covered.parts)


def feature_plan(storage: Storage, tasks_of_encoders: Iterable[EncoderTask]) -> PrecomputePlan | None:
    """The plan that computes what is missing; None where nothing is."""
    tasks = tuple(_task(storage, each.config, text) for each in tasks_of_encoders for text in each.texts)
    return PrecomputePlan(storage.uri, tasks) if tasks else None


def store_encoder_config(storage: Storage, config: FrozenConfig) -> None:
    """Note what an encoder is and where it lies, which may have changed since another sweep."""
    storage.child(ENCODERS, config.id).write_json(ENCODER, {"config": config.model_dump(mode="json")})


def mark_texts_encoded(storage: Storage, reading: EncoderTask) -> None:
    """Note that the features of the reading's texts are stored."""
    folder = storage.child(ENCODERS, reading.config.id)
    for text in reading.texts:
        folder.write_json(f"{text.id}.json", {"sentences": len(text)})


class LoadedEncoder:
    """A frozen encoder in memory, as the precompute's actors ask it."""

    def __init__(self, features: FrozenFeatures, vocabulary: Vocabulary, device: torch.device):
        self._features, self._vocabulary, self._device = features, vocabulary, device

    def outputs(
        self, sentences: Sequence[Sequence[str]], token_budget: int, *, layers: Sequence[int] = ()
    ) -> Iterator[tuple[list[int], TokenBatch, EncoderOutput]]:
        """The features of all sentences, in batches of similar length of `token_budget` pieces."""
        text = encode_text(sentences, self._vocabulary)
        plan = plan_batches(text.piece_lengths, batch_tokens=token_budget, seed=0, epoch=0, shuffle=False)
        for rows in plan:
            batch = text.gather(rows).to(self._device)
            yield rows.tolist(), batch, EncoderOutput({0: self._features.compute(batch)})


def load_encoder(storage: Storage, encoder_id: str, device: torch.device) -> LoadedEncoder:
    """The encoder called `encoder_id`, on this device."""
    plain = storage.read_json(f"{ENCODERS}/{encoder_id}/{ENCODER}")
    config = validate_plain(part_class(plain["config"]), plain["config"])
    return LoadedEncoder(config.build(), config.vocabulary(), device)


def _task(storage: Storage, config: FrozenConfig, text: Text) -> PrecomputeTask:
    sizes = Sizes(0, {0: config.build().output_size})
    handle = TeacherHandle(
        storage.uri, config.id, LOADER, sizes, weights_sha256=config.checksum or "", offers=(FEATURES.signal,)
    )
    # Encoders are slow: with few shards, some actors would wait for the last one.
    shard = min(max(len(text) // SHARDS, SMALLEST_SHARD), PrecomputePlan.shard_sentences)
    return PrecomputeTask(handle, text, (FEATURES,), shard)


def _texts_of(store_uri: str, corpus_id: str) -> list[Text]:
    """The sentences of all parts of a corpus."""
    parts = cached_corpus(store_uri, corpus_id).parts.values()
    return [Text.from_tokens(part["tokens"]) for part in parts if part.num_rows]
