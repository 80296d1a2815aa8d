"""Tiny checkpoints made with Transformers' own classes: nothing is downloaded."""

from pathlib import Path

import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    BertTokenizerFast,
)

PIECES = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *"abcdefghij",
    *(f"##{c}" for c in "abcdefghij"),
    "an",
    "bo",
)
IOB2 = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def make_checkpoint(folder: Path, *, labels=IOB2, longest=16, head=True, seed=0, layers=1, types=2) -> str:
    """A small BERT token classifier with its tokenizer in `folder`, or one of sentences (`head="sequence"`), a masked
    language model (`head="masked"`), or a bare encoder; labels of None stay nameless.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(PIECES))
    tokenizer = BertTokenizerFast(vocab=str(vocabulary), do_lower_case=False, model_max_length=longest)
    tokenizer.save_pretrained(folder)
    named = {}
    if labels is not None:
        named = {"id2label": dict(enumerate(labels)), "label2id": {x: i for i, x in enumerate(labels)}}
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    sizes |= {
        "vocab_size": len(PIECES),
        "max_position_embeddings": longest,
        "num_labels": len(labels or IOB2),
        "type_vocab_size": types,
    }
    config = BertConfig(**sizes, **named, initializer_range=0.5)
    torch.manual_seed(seed)
    heads = {True: BertForTokenClassification, False: BertModel, "sequence": BertForSequenceClassification}
    heads["masked"] = BertForMaskedLM
    heads[head](config).save_pretrained(folder)
    return str(folder)
