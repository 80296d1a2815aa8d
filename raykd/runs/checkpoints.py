"""A pretrained encoder as a checkpoint of Transformers: what `AutoModel` and `AutoTokenizer` read, without raykd."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from raykd.corpora.pretrained import HFVocabulary
from raykd.errors import ExportError
from raykd.layers.checkpoint import quietly
from raykd.layers.encoder import MaskedLanguageModel
from raykd.runs.load import load_tagger
from raykd.storage import Storage

CHECKPOINT_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def export_checkpoint(folder: Storage, target: Storage) -> Mapping[str, int]:
    """Write the masked language model in the `folder` of a finished run into `target`; gives the bytes of each file.

    Raises:
        StoreError: the folder is not a run's, or damaged.
        ExportError: the model is none.
    """
    tagger = load_tagger(folder.uri)
    if not isinstance(tagger.model, MaskedLanguageModel) or not isinstance(
        tagger.vocabulary.pieces, HFVocabulary
    ):
        raise ExportError(
            f"{folder.address}: it is no masked language model; only these are written as checkpoints"
        )
    with tempfile.TemporaryDirectory(prefix="raykd-") as place:
        with quietly():
            tagger.model.model.save_pretrained(place)
        _tokenizer(tagger.vocabulary.pieces, tagger.model.piece_limit).save_pretrained(place)
        files = [file for file in sorted(Path(place).iterdir()) if file.is_file()]
        for file in files:
            target.write(file.name, file.read_bytes())
        return {file.name: file.stat().st_size for file in files}


def _tokenizer(pieces: HFVocabulary, limit: int) -> Any:
    """The vocabulary as Transformers has it."""
    from transformers import PreTrainedTokenizerFast  # takes seconds to import

    tokenizer, special = Tokenizer.from_str(pieces.definition), pieces.special
    ids = {"pad_token": special.padding, "unk_token": special.unknown, "mask_token": special.mask}
    ids |= {"cls_token": special.prefix[0]} if special.prefix else {}
    ids |= {"sep_token": special.suffix[-1]} if special.suffix else {}
    names = {name: tokenizer.id_to_token(number) for name, number in ids.items() if number is not None}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=limit, **names)
