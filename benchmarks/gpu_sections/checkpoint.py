"""A Transformers checkpoint of multilingual-e5-small's shape with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertModel, BertTokenizerFast

from raykd.corpora import read_corpus
from raykd.corpora.builtin import BuiltinSource

PIECES = 8000
LONGEST = 512
SIZES = {"num_hidden_layers": 12, "hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536}
SMALL_SIZES = {"num_hidden_layers": 2, "hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 48}


def make_checkpoint(folder: Path, corpus: dict[str, Any], *, small: bool) -> str:
    """Write the encoder, with a tokenizer trained on the training part of a built-in corpus.

    The vocabulary has at most 8,000 pieces, as after pruning; e5 has 250,037, for a hundred languages.

    Args:
        folder: Folder that is made.
        corpus: The `corpus` section of a sweep file.
        small: Two layers of size 24, instead of twelve of 384.

    Returns:
        The path of the folder.
    """
    folder.mkdir()
    sentences = (
        read_corpus(BuiltinSource.model_validate_json(json.dumps(corpus)))
        .parts["train"]["tokens"]
        .to_pylist()
    )
    trainer = BertWordPieceTokenizer(lowercase=False)
    trainer.train_from_iterator(map(" ".join, sentences), vocab_size=PIECES, show_progress=False)
    trainer.save_model(str(folder))
    tokenizer = BertTokenizerFast(
        vocab=str(folder / "vocab.txt"), do_lower_case=False, model_max_length=LONGEST
    )
    tokenizer.save_pretrained(folder)
    sizes = SMALL_SIZES if small else SIZES
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=LONGEST, **sizes)
    BertModel(config).save_pretrained(folder)
    return str(folder)
