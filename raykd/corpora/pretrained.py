"""The vocabulary of a Transformers checkpoint, with the checkpoint's tokenizer, ids and special tokens."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer, normalizers

from raykd.corpora.pruning import prune as pruned_tokenizer
from raykd.corpora.word_pieces import Special, split_words
from raykd.errors import CorpusError, StoreError
from raykd.forms.ragged import Ragged, offsets_from_lengths
from raykd.forms.utterance_marks import UTTERANCE

if TYPE_CHECKING:
    from collections.abc import Sequence

_SPACE = "Ġ"
"""A space in the pieces of byte-level tokenizers."""
_TOKENIZERS = ("tokenizer.json", "vocab.*", "*.model")


def require_tokenizer(path: str) -> None:
    """Raise StoreError for a folder without a tokenizer; a name on the Hub is not checked.

    Args:
        path: Local folder, or a name on the Hugging Face Hub.

    Raises:
        StoreError: The folder has no file of a tokenizer.
    """
    folder = Path(path)
    if folder.is_dir() and not any(any(folder.glob(pattern)) for pattern in _TOKENIZERS):
        raise StoreError(
            path, "has no tokenizer (tokenizer.json)", "copy the files of the checkpoint's tokenizer into it"
        )


@dataclass(frozen=True)
class HFVocabulary:
    """A pretrained tokenizer. The whole definition is stored, so that the checkpoint is not needed to read it.

    Attributes:
        definition: Definition of the tokenizer, in the form of `tokenizer.json`.
        size: Number of pieces, added tokens included.
        special: Special tokens of the checkpoint: [PAD], [UNK], [CLS] before a text, [SEP] after it and between two.
        checkpoint_ids: Ids of the pieces in the checkpoint, for a pruned vocabulary; None: the same ids.
        full_size: Size before pruning.
        used: Size after pruning to the text that the vocabulary was made for; 0 without such a text.
    """

    definition: str
    size: int
    special: Special
    checkpoint_ids: tuple[int, ...] | None = None
    full_size: int = 0
    used: int = 0

    @classmethod
    def load(cls, path: str) -> HFVocabulary:
        """Load the tokenizer of a checkpoint.

        Args:
            path: Local folder, or a name on the Hugging Face Hub.

        Raises:
            CorpusError: The checkpoint has no fast tokenizer.
        """
        # Transformers takes seconds to import, and only pretrained vocabularies need it.
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(
                path, use_fast=True, add_prefix_space=True, trust_remote_code=False
            )
            backend = _with_spaces(Tokenizer.from_str(tokenizer.backend_tokenizer.to_str()))
        except (OSError, ValueError, AttributeError) as error:
            hint = "give a checkpoint with a fast tokenizer (tokenizer.json), or a folder that has one"
            reason = str(error).split("\n")[0]
            raise CorpusError(path, None, f"no tokenizer could be loaded from it ({reason})", hint) from error
        backend.no_truncation()
        backend.no_padding()
        prefix, suffix, separator = _special_ids(backend)
        largest = max(backend.get_vocab(with_added_tokens=True).values())
        padding = 0 if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        unknown = padding if tokenizer.unk_token_id is None else tokenizer.unk_token_id
        special = Special(padding, unknown, prefix, suffix, separator, tokenizer.mask_token_id)
        return cls(backend.to_str(), largest + 1, special, full_size=largest + 1)

    def for_words(self, words: Sequence[str], *, prune: bool) -> HFVocabulary:
        """Return the vocabulary for a text: with all pieces, or pruned to those that the text needs.

        Args:
            words: Distinct words of the text.
            prune: True to prune it.

        Raises:
            CorpusError: The tokenizer is of a kind that cannot be pruned.
        """
        special = self.special
        # Models that number positions from the padding's id keep it.
        around = (special.prefix, special.suffix, special.separator)
        always = {*range(special.padding + 1), special.unknown, *(id for ids in around for id in ids)}
        always |= set() if special.mask is None else {special.mask}
        if not prune and not words:
            return replace(self, used=0)
        if not prune:
            pieces = self.pieces(words).values
            return replace(self, used=len(always | set(np.unique(pieces).tolist())))
        definition, checkpoint_ids = pruned_tokenizer(self.definition, words, always, special.unknown)
        new_ids = {old: new for new, old in enumerate(checkpoint_ids)}
        pruned_special = Special(
            new_ids[special.padding],
            new_ids[special.unknown],
            *(tuple(new_ids[id] for id in ids) for ids in around),
            mask=None if special.mask is None else new_ids[special.mask],
        )
        return HFVocabulary(
            definition,
            len(checkpoint_ids),
            pruned_special,
            checkpoint_ids,
            self.full_size,
            len(checkpoint_ids),
        )

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer.from_str(self.definition)

    @property
    def spaces(self) -> tuple[int, ...]:
        """Ids of pieces that are a space, as a word may begin with one."""
        ids = (self._tokenizer.token_to_id(space) for space in (_SPACE, "▁"))
        return tuple(number for number in ids if number is not None)

    def pieces(self, words: Sequence[str]) -> Ragged:
        """Return one row of int32 ids per word.

        The word that stands for an utterance has no piece where the checkpoint puts a special one before every
        sentence: it is read at that one.
        """
        rows = split_words(self._tokenizer, words, self.special.unknown, self.special.separator)
        if not self.special.prefix or UTTERANCE not in words:
            return rows
        has_pieces = np.array([word != UTTERANCE for word in words])
        return Ragged(
            rows.values[np.repeat(has_pieces, rows.lengths)], offsets_from_lengths(rows.lengths * has_pieces)
        )

    def to_json(self) -> str:
        """Return the vocabulary as JSON."""
        content = {"kind": "pretrained", "definition": self.definition, "size": self.size}
        content |= {"kept": self.checkpoint_ids, "full_size": self.full_size, "used": self.used}
        return json.dumps(content | {"special": asdict(self.special)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> HFVocabulary:
        """Return the vocabulary written by `to_json`."""
        content = json.loads(text)
        special = content["special"]
        special |= {name: tuple(special[name]) for name in ("prefix", "suffix", "separator")}
        checkpoint_ids = None if content["kept"] is None else tuple(content["kept"])
        return cls(
            content["definition"],
            content["size"],
            Special(**special),
            checkpoint_ids,
            content["full_size"],
            content["used"],
        )


def _with_spaces(tokenizer: Tokenizer) -> Tokenizer:
    """Return a byte-level tokenizer (RoBERTa's, ModernBERT's) that splits single words as it splits running text.

    There a word begins with the space before it. Only some classes of Transformers see to that themselves.
    """
    is_byte_level = any(piece.startswith(_SPACE) for piece in tokenizer.get_vocab(with_added_tokens=False))
    pieces = tokenizer.encode(["a"], is_pretokenized=True, add_special_tokens=False).tokens
    if not is_byte_level or any(piece.startswith(_SPACE) for piece in pieces):
        return tokenizer
    before = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
    tokenizer.normalizer = normalizers.Sequence([*before, normalizers.Prepend(" ")])
    return tokenizer


def _special_ids(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Ids before a sentence, after it, and between two sentences, found around one encoded word."""
    bare = tokenizer.encode(["a"], is_pretokenized=True, add_special_tokens=False).ids
    whole = tokenizer.encode(["a"], is_pretokenized=True).ids
    start = next(i for i in range(len(whole)) if whole[i : i + len(bare)] == bare)
    prefix, suffix = whole[:start], whole[start + len(bare) :]
    both = tokenizer.encode(["a"], ["a"], is_pretokenized=True).ids
    return tuple(prefix), tuple(suffix), tuple(both[start + len(bare) : len(both) - len(bare) - len(suffix)])
