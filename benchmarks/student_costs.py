"""Costs of small students beside a teacher of mBERT's shape: the cost columns of XtremeDistil's Table 16.

    python benchmarks/student_costs.py                 all sixteen (E, H), with the projection and without (10 minutes)
    python benchmarks/student_costs.py --sizes 50,200 300,600

The teacher has mBERT's shape (119,547 pieces, 12 layers of 768) and random weights, which cost the same. A student is
embedding, BiLSTM, projection to 768 with GELU (or none), softmax, over the same pieces. Latencies are p50 on one thread
with decoding, for sentences of 32 pieces, at batch 1 and 32. A speed-up compares exports in ONNX Runtime with the same
number of bits, or PyTorch with PyTorch. `--rows` are numbers of embedding rows for which the bytes of the exports are
compared, the same for teacher and student. The output is a Markdown table with the paper's columns.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from safetensors.torch import save
from transformers import BertConfig, BertForTokenClassification

from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.word_pieces import Special
from raykd.deploy.onnx_files import Session, onnx_files
from raykd.forms import SPANS
from raykd.layers.hf_tagger import HFTagger
from raykd.layers.label_map import match_labels
from raykd.layers.model import Model
from raykd.layers.model_config import BuildInputs
from raykd.precompute.latency import BATCH, labelling_call, synthetic_batch, time_in_turns
from raykd.recipes.stored_vocabulary import StoredVocabulary
from raykd.students import BiLSTMStudent

ROWS, WIDTH = 119_547, 768
TAGS = SPANS.tag_set(["LOC", "ORG", "PER"])
VOCABULARY = StoredVocabulary("pieces", HFVocabulary("", ROWS, Special()), None)
# (E, H): parameters in millions, compression, speed-up at batch 32 (GPU) and at batch 1 (CPU), F1.
PAPER = {
    (300, 600): (31.8, 5.6, 14, 8, 88.64),
    (200, 600): (22.5, 8.0, 15, 9, 88.50),
    (300, 400): (29.4, 6.1, 23, 11, 88.21),
    (200, 400): (20.2, 8.9, 25, 12, 88.16),
    (100, 600): (13.1, 13.7, 16, 9, 87.93),
    (100, 400): (11.1, 16.1, 24, 13, 87.70),
    (50, 600): (8.5, 21.1, 16, 10, 87.67),
    (300, 200): (27.7, 6.6, 40, 15, 87.54),
    (200, 200): (18.7, 9.6, 46, 16, 87.47),
    (50, 400): (6.5, 27.5, 27, 13, 87.19),
    (100, 200): (9.6, 18.6, 49, 15, 86.89),
    (50, 200): (5.1, 35.1, 51, 16, 86.46),
    (300, 100): (27.0, 6.6, 62, 16, 86.19),
    (200, 100): (18.1, 9.9, 68, 17, 85.88),
    (100, 100): (9.2, 19.5, 74, 15, 85.64),
    (50, 100): (4.7, 38.1, 77, 16, 84.60),
}


@dataclass(frozen=True)
class Measured:
    """The measured costs of one model."""

    parameters: int
    width: int
    """Width of the embedding of pieces."""
    safetensors: int
    onnx: int
    int8: int
    ms: dict[tuple[str, int], float]
    """(onnx, int8 or torch; batch) to p50 in milliseconds."""

    def with_rows(self, rows: int) -> int:
        """Return the bytes of the export with `rows` pieces."""
        return self.onnx + 4 * (rows - ROWS) * self.width


def teacher() -> Model:
    names = list(TAGS.tags)
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
    model = BertForTokenClassification(BertConfig(vocab_size=ROWS, num_labels=len(names), **labels))
    return HFTagger(
        model, match_labels(names, TAGS, {}, checkpoint=""), unit="word", limit=512, prefix=0, suffix=0
    )


def student(embedding: int, hidden: int, projection: int | None) -> Model:
    config = BiLSTMStudent(
        embedding_dim=embedding, hidden_dim=hidden, projection=projection, decoder="maxent"
    )
    return config.build(BuildInputs(vocabulary_size=ROWS, tag_set=TAGS))


def measure(model: Model, width: int) -> Measured:
    model.eval()
    batches = {size: synthetic_batch(size, VOCABULARY) for size in (1, BATCH)}
    weights = len(save({name: value.clone() for name, value in model.state_dict().items()}))
    files = onnx_files(model)
    calls: dict[tuple[str, int], Callable[[], object]] = {}
    for form, file in (("onnx", files.float32), ("int8", files.int8)):
        session = Session(file)
        calls |= {(form, size): partial(session.labels, batch) for size, batch in batches.items()}
    calls |= {("torch", size): labelling_call(model, batch) for size, batch in batches.items()}
    ms = {key: timing.p50_ms for key, timing in time_in_turns(calls).items()}
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return Measured(parameters, width, weights, len(files.float32), len(files.int8), ms)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="*", default=[f"{e},{h}" for e, h in PAPER])
    parser.add_argument("--rows", nargs="*", type=int, default=[ROWS, 88_000, 30_000])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    large = measure(teacher(), WIDTH)
    gc.collect()
    ms = ", ".join(f"{form} batch {size}: {value:.1f}" for (form, size), value in large.ms.items())
    print(f"teacher: {large.parameters / 1e6:.1f}M parameters, {large.safetensors / 1e6:.0f} MB, ", end="")
    print(f"ONNX {large.onnx / 1e6:.0f} MB, in 8 bits {large.int8 / 1e6:.0f} MB; ms: {ms}\n")
    rows = [f"smaller, {count:,} rows" for count in arguments.rows]
    speeds = [f"{form} ×{size}" for form in ("onnx", "int8", "torch") for size in (1, BATCH)]
    heads = [
        "E, H",
        "projection",
        "parameters",
        *rows,
        "MB",
        "ONNX",
        "int8",
        *speeds,
    ]
    print("| " + " | ".join([*heads, "paper: M, smaller, ×32 GPU, ×1 CPU"]) + " |")
    print("|" + "---|" * (len(heads) + 1))
    for size in arguments.sizes:
        embedding, hidden = map(int, size.split(","))
        for projection in (WIDTH, None):
            small = measure(student(embedding, hidden, projection), embedding)
            cells = [
                f"{embedding}, {hidden}",
                "768" if projection else "none",
                f"{small.parameters / 1e6:.1f}M",
            ]
            cells += [f"{large.with_rows(count) / small.with_rows(count):.1f}×" for count in arguments.rows]
            cells += [f"{count / 1e6:.1f}" for count in (small.safetensors, small.onnx, small.int8)]
            cells += [f"{large.ms[key] / small.ms[key]:.0f}×" for key in small.ms]
            published = PAPER.get((embedding, hidden)) if projection else None
            cells.append("{:.1f}, {:.1f}×, {}×, {}×".format(*published[:4]) if published else "")
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
