"""Export of a Transformers model as a checkpoint for `AutoModel` and `AutoTokenizer`, without raykd."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.word_pieces import Special
from raykd.errors import ExportError, StoreError
from raykd.layers.checkpoint import quiet_transformers
from raykd.layers.hf_model import HFModel
from raykd.layers.hf_tagger import HFTagger
from raykd.layers.masked_language_model import MaskedLanguageModel
from raykd.storage.store import Storage
from raykd.training.load import load_tagger

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CHECKPOINT_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def export_checkpoint(folder: Storage, target: Storage) -> Mapping[str, int]:
    """Write the masked language model or the classifier of a finished run as a checkpoint of Transformers.

    A pruned vocabulary stays pruned: the tokenizer has only its pieces. `AutoModel` reads neither fewer heads nor
    factorised vectors: missing heads come back with zeros in the place of their output, and vectors are multiplied.

    Args:
        folder: of the run.
        target: the folder of the checkpoint.

    Returns:
        The bytes of each file.

    Raises:
        StoreError: the folder is not a run's, or damaged.
        ExportError: the model is not a Transformers model.
    """
    tagger = load_tagger(folder.uri)
    model, pieces = tagger.model, tagger.vocabulary.pieces
    if not isinstance(model, MaskedLanguageModel | HFTagger) or not isinstance(pieces, HFVocabulary):
        raise ExportError(
            f"{folder.address}: the model is not a Transformers model, and has no checkpoint in their format; "
            "export it without --checkpoint"
        )
    types = bool(model.architecture().get("types"))
    with tempfile.TemporaryDirectory(prefix="raykd-") as place:
        with quiet_transformers():
            _standard_form(model, folder).save_pretrained(place)
        _tokenizer(pieces, model.piece_limit, types=types).save_pretrained(place)
        files = [file for file in sorted(Path(place).iterdir()) if file.is_file()]
        for file in files:
            target.write(file.name, file.read_bytes())
        return {file.name: file.stat().st_size for file in files}


def _standard_form(model: HFModel, folder: Storage) -> PreTrainedModel:
    try:
        return model.standard_form()
    except StoreError as error:
        raise ExportError(f"{folder.address}: the model {error.problem}; {error.hint}") from error


def _tokenizer(pieces: HFVocabulary, limit: int, *, types: bool) -> Any:
    """The vocabulary as a Transformers tokenizer; with `types` the pieces of a second text are of type 1."""
    from transformers import PreTrainedTokenizerFast  # takes seconds to import

    tokenizer, special = Tokenizer.from_str(pieces.definition), pieces.special
    if tokenizer.post_processor is None:  # a pruned vocabulary has none
        tokenizer.post_processor = _template(tokenizer, special, types)
    ids = {"pad_token": special.padding, "unk_token": special.unknown, "mask_token": special.mask}
    ids |= {"cls_token": special.prefix[0]} if special.prefix else {}
    ids |= {"sep_token": special.suffix[-1]} if special.suffix else {}
    names = {name: tokenizer.id_to_token(number) for name, number in ids.items() if number is not None}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=limit, **names)


def _template(tokenizer: Tokenizer, special: Special, types: bool) -> TemplateProcessing:
    """The template for special pieces around a text, and between two texts."""
    around = (special.prefix, special.suffix, special.separator)
    prefix, suffix, separator = ([str(tokenizer.id_to_token(id)) for id in ids] for ids in around)
    second = ["$B", *suffix]
    return TemplateProcessing(
        single=[*prefix, "$A", *suffix],
        pair=[*prefix, "$A", *separator, *(f"{piece}:1" if types else piece for piece in second)],
        special_tokens=[(str(tokenizer.id_to_token(id)), id) for id in sorted({*sum(around, ())})],
    )
