"""The folders and files of a store: of each kind of part the folder, and the files that raykd writes there.

A part is a folder, or a file, whose name is an identity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

PARTS = ("train", "unlabelled", "dev", "test")
"""The parts of a corpus, in the order in which they are stored and shown."""
CORPUS, SOURCES = "corpus.json", "sources"
"""Of a corpus: its manifest, written last; beside the corpora, of which files they were made."""
WEIGHTS, VOCABULARY, LABELS, ARCHITECTURE = (
    "model.safetensors",
    "vocabulary.json",
    "labels.json",
    "architecture.json",
)
RESULT, MODEL = "result.json", "model.json"
"""Of a run: its result, written last, and the run itself as plain data."""
CARD, ONNX = "export.json", "model.onnx"
"""Of an export: what it is, with the checksums of its files; the model in float32."""
RUN_FILES = (WEIGHTS, MODEL, VOCABULARY, LABELS, RESULT, ARCHITECTURE)
"""The files of a finished run: all that using the model takes. Only a model that started as a checkpoint
has `architecture.json`; weights that raykd did not train, and those of an ensemble's members, stay where they are."""
CHECKPOINT = "checkpoint.pt"
"""Beside them, while the run is trained."""

MANIFEST, INDEX, TEXT = "manifest.json", "shards.index", "text.arrow"
"""Of the signals of a teacher for a text: the manifest, written last, and where each sentence is; the text itself."""
HASHES = "hashes.bin"
"""Beside a text: the sha256 of all that follows, then the hash of each sentence, 16 bytes."""

EMBEDDINGS, EMBEDDINGS_MANIFEST, ROWS = "embeddings", "embeddings.json", "rows.safetensors"
ENCODED, ENCODED_MANIFEST = "encoded", "encoded.json"
ENCODERS, ENCODER = "encoders", "encoder.json"
LABEL_SETS = "labels"

COMPLETION_FILES = (RESULT, MANIFEST, CORPUS, ENCODED_MANIFEST, EMBEDDINGS_MANIFEST)
"""Files without which a part was never finished: written last, removed first."""

ID = "[0-9a-f]{16,64}"
_RUN = "|".join(map(re.escape, (*RUN_FILES, CHECKPOINT)))
FILE_PATTERNS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        kind: re.compile(pattern)
        for kind, pattern in {
            "runs": rf"run-{ID}/({_RUN})",
            "transfer": rf"[a-z0-9_]+-{ID}/((k\d+/)?({MANIFEST}|{INDEX}|shard-\d+-\d+\.arrow)|{TEXT}|{HASHES})",
            EMBEDDINGS: rf"embeddings-{ID}/({EMBEDDINGS_MANIFEST}|{ROWS})",
            ENCODED: rf"encoded-{ID}/({ENCODED_MANIFEST}|block-\d+\.arrow)",
            ENCODERS: rf"(encoder|vectors)-{ID}/({ENCODER}|text-{ID}\.json)",
            "teachers": rf"teacher-{ID}/({_RUN})",
            "vocabularies": rf"vocabulary-{ID}\.json",
            LABEL_SETS: rf"labels-{ID}\.json",
            "corpora": rf"corpus-{ID}/({CORPUS}|({'|'.join(PARTS)})\.arrow)|{SOURCES}/source-{ID}\.json",
            "costs": rf"cost-{ID}\.json",
        }.items()
    }
)
"""Kind of part → the names of its files below the kind's folder; what is made from others comes before them."""
