"""Tiny checkpoints made with classes of Transformers: nothing is downloaded."""

from pathlib import Path

import torch
import transformers
from transformers import BertTokenizerFast

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
MARKS = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
ARCHITECTURES = {
    "DistilBert": lambda longest: {"hidden_dim": 32},
    # RoBERTa numbers positions from after the padding's id.
    "XLMRoberta": lambda longest: {
        "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "max_position_embeddings": longest + 2,
        "type_vocab_size": 1,
    },
    # The settings of DeBERTa-v3, with fewer positions.
    "DebertaV2": lambda longest: {
        "pad_token_id": 0, "type_vocab_size": 0, "relative_attention": True, "position_buckets": 4,
        "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p", "position_biased_input": False,
        "max_relative_positions": -1,
    },
    "ModernBert": lambda longest: {
        **MARKS, "cls_token_id": 2, "sep_token_id": 3, "type_vocab_size": 0, "local_attention": 4,
        "global_attn_every_n_layers": 2, "attention_dropout": 0.1, "mlp_dropout": 0.1, "embedding_dropout": 0.1,
    },
    "EuroBert": lambda longest: {
        **MARKS, "mask_token_id": 4, "type_vocab_size": 0, "attention_dropout": 0.1,
    },
    "OpenAIPrivacyFilter": lambda longest: {
        **MARKS, "num_local_experts": 4, "num_experts_per_tok": 2, "num_key_value_heads": 1, "head_dim": 8,
        "sliding_window": 8, "classifier_dropout": 0.1,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    },
}  # fmt: skip
"""Beginning of the names of classes in Transformers → settings that differ from BERT's, for a length in pieces."""
SENTENCEPIECES = {
    "XLMRoberta": ("<s>", "<pad>", "</s>", "<unk>"),
    "DebertaV2": ("[PAD]", "[CLS]", "[SEP]", "[UNK]"),
}
"""Beginning of the names of classes with a unigram tokenizer → its first pieces."""


UNTRACED = ("OpenAIPrivacyFilter",)
"""Models that PyTorch's exporter cannot trace: which experts a piece is read by depends on its values."""


def write_tokenizer(folder: Path, kind: str, longest: int) -> None:
    """Write a small tokenizer into a folder: SentencePiece's for models that have one, else BERT's.

    Args:
        folder: the folder.
        kind: see `make_checkpoint`.
        longest: most pieces that the model reads at once.
    """
    if kind in SENTENCEPIECES:
        pieces = [*((piece, 0.0) for piece in SENTENCEPIECES[kind]), ("▁", -3.0)]
        pieces += [*((letter, -4.0) for letter in "abcdefghij"), ("▁an", -1.5), ("▁bo", -1.5)]
        tokenizer_class = getattr(transformers, f"{kind}Tokenizer")
        tokenizer = tokenizer_class(vocab=pieces, model_max_length=longest)
    else:
        vocabulary = folder / "vocab.txt"
        vocabulary.write_text("\n".join(PIECES))
        tokenizer = BertTokenizerFast(vocab=str(vocabulary), do_lower_case=False, model_max_length=longest)
    tokenizer.save_pretrained(folder)


def make_checkpoint(
    folder: Path, *, labels=IOB2, longest=16, head=True, seed=0, layers=1, types=2, kind="Bert"
) -> str:
    """Write a small model with random weights, and a tokenizer, into a folder and return the path.

    Args:
        folder: the folder.
        labels: names of the labels; None leaves them nameless.
        longest: most pieces that the model reads at once.
        head: True for a token classifier, "sequence" for a classifier of sentences, "masked" for a masked language
            model, False for a bare encoder.
        seed: seed of the weights.
        layers: layers of the encoder.
        types: types of pieces; 2 marks the second text of a pair.
        kind: beginning of the names of the classes in Transformers: `Bert`, or one of `ARCHITECTURES`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder, kind, longest)
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
    sizes |= ARCHITECTURES[kind](longest) if kind in ARCHITECTURES else {}
    config = getattr(transformers, f"{kind}Config")(**sizes, **label_names, initializer_range=0.5)
    torch.manual_seed(seed)
    heads = {True: "ForTokenClassification", False: "Model", "sequence": "ForSequenceClassification"}
    heads["masked"] = "ForMaskedLM"
    getattr(transformers, kind + heads[head])(config).save_pretrained(folder)
    return str(folder)
