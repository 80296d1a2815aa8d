"""The layout of a store: the folder of each kind of stored part, and the files that raykd writes there.

A *stored part* is a folder, or a file, whose name is an identity. A *corpus part* is one of train, unlabelled, dev and
test.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

PARTS = ("train", "unlabelled", "dev", "test")
"""The corpus parts, in the order in which they are stored and shown."""
CORPUS, SOURCES = "corpus.json", "sources"
"""The manifest of a corpus, written last; the folder beside the corpora that records their source files."""
WEIGHTS, VOCABULARY, LABELS, ARCHITECTURE = (
    "model.safetensors",
    "vocabulary.json",
    "labels.json",
    "architecture.json",
)
RESULT, MODEL = "result.json", "model.json"
"""The result of a run, written last, and the run itself as plain data."""
CARD, ONNX = "export.json", "model.onnx"
"""The description of an export, with the checksums of its files; the model in float32."""
RUN_FILES = (WEIGHTS, MODEL, VOCABULARY, LABELS, RESULT, ARCHITECTURE)
"""The files of a finished run: everything that the model needs. Only a model that started from pretrained weights has
`architecture.json`. Weights that raykd did not train, and those of an ensemble's members, are not copied here."""
CHECKPOINT = "checkpoint.pt"
"""The state of an unfinished training run, beside the run's files. Elsewhere a checkpoint is a pretrained model."""

MANIFEST, INDEX, TEXT = "manifest.json", "shards.index", "text.arrow"
"""A teacher's signals for a text: the manifest, written last; the place of each sentence; the text itself."""
HASHES = "hashes.bin"
"""Beside a text: the sha256 of the rest of the file, then one hash of 16 bytes for each sentence."""

EMBEDDINGS, EMBEDDINGS_MANIFEST, ROWS = "embeddings", "embeddings.json", "rows.safetensors"
"""Initial embeddings of a student: their folder; the manifest, written last; the matrix."""
IMPORTANCE = "importance"
"""Folder of the importance of the parts of encoders that students are cut from."""
ENCODED, ENCODED_MANIFEST = "encoded", "encoded.json"
"""Text cut into the pieces of a vocabulary: its folder; the manifest, written last."""
ENCODERS, ENCODER = "encoders", "encoder.json"
"""Frozen encoders with stored features: their folder; the configuration of one."""
LABEL_SETS = "labels"
"""Folder of the label sets that are not the tags of a corpus."""
ANSWERS, ANNOTATOR = "answers", "annotator.json"
"""The answers of annotators: their folder; the description of an annotator."""

COMPLETION_FILES = (RESULT, MANIFEST, CORPUS, ENCODED_MANIFEST, EMBEDDINGS_MANIFEST, ANNOTATOR)
"""Files that mark a stored part as finished: written last, removed first."""

ID = "[0-9a-f]{16,64}"
_RUN = "|".join(map(re.escape, (*RUN_FILES, CHECKPOINT)))
FILE_PATTERNS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        kind: re.compile(pattern)
        for kind, pattern in {
            "runs": rf"run-{ID}/({_RUN})",
            "transfer": rf"[a-z0-9_]+-{ID}/((k\d+/)?({MANIFEST}|{INDEX}|shard-\d+-\d+\.arrow)|{TEXT}|{HASHES})",
            EMBEDDINGS: rf"embeddings-{ID}/({EMBEDDINGS_MANIFEST}|{ROWS})",
            IMPORTANCE: rf"importance-{ID}\.json",
            ENCODED: rf"encoded-{ID}/({ENCODED_MANIFEST}|block-\d+\.arrow)",
            ENCODERS: rf"(encoder|vectors)-{ID}/({ENCODER}|text-{ID}\.json)",
            "teachers": rf"teacher-{ID}/({_RUN})",
            "vocabularies": rf"vocabulary-{ID}\.json",
            LABEL_SETS: rf"labels-{ID}\.json",
            "corpora": rf"corpus-{ID}/({CORPUS}|({'|'.join(PARTS)})\.arrow)|{SOURCES}/source-{ID}\.json",
            "costs": rf"cost-{ID}\.json",
            ANSWERS: rf"answers-{ID}/({ANNOTATOR}|batch-\d+-{ID}\.arrow)",
        }.items()
    }
)
"""Kind of stored part → pattern of its files below the kind's folder. Kinds come before the kinds that they are
computed from."""
