"""Tiny checkpoints made with classes of Transformers: nothing is downloaded."""

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
    """Write a small BERT model and tokenizer into a folder and return the path.

    Args:
        folder: the folder.
        labels: names of the labels; None leaves them nameless.
        longest: most pieces that the model reads at once.
        head: True for a token classifier, "sequence" for a classifier of sentences, "masked" for a masked language
            model, False for a bare encoder.
        seed: seed of the weights.
        layers: layers of the encoder.
        types: types of pieces; 2 marks the second text of a pair.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(PIECES))
    tokenizer = BertTokenizerFast(vocab=str(vocabulary), do_lower_case=False, model_max_length=longest)
    tokenizer.save_pretrained(folder)
    label_names = {}
    if labels is not None:
        label_names = {"id2label": dict(enumerate(labels)), "label2id": {x: i for i, x in enumerate(labels)}}
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
    config = BertConfig(**sizes, **label_names, initializer_range=0.5)
    torch.manual_seed(seed)
    heads = {True: BertForTokenClassification, False: BertModel, "sequence": BertForSequenceClassification}
    heads["masked"] = BertForMaskedLM
    heads[head](config).save_pretrained(folder)
    return str(folder)
