"""The vocabulary of a Transformers checkpoint: its own tokenizer, ids and special tokens."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer

from raykd.corpora.pruning import prune as pruned_tokenizer
from raykd.corpora.word_pieces import Special, split_words
from raykd.errors import CorpusError, StoreError
from raykd.forms.marks import UTTERANCE
from raykd.forms.ragged import Ragged, offsets_from_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOKENIZERS = ("tokenizer.json", "vocab.*", "*.model")


def require_tokenizer(path: str) -> None:
    """Raise StoreError for a folder without the files of a tokenizer; a name on the Hub is not looked at."""
    folder = Path(path)
    if folder.is_dir() and not any(any(folder.glob(pattern)) for pattern in _TOKENIZERS):
        raise StoreError(
            path, "has no tokenizer (tokenizer.json)", "copy the files of the checkpoint's tokenizer into it"
        )


@dataclass(frozen=True)
class HFVocabulary:
    """A pretrained tokenizer. It has the tokenizer's whole definition, so that it is read without the
    checkpoint.

    `size` counts added tokens too; `special` are the checkpoint's own: [PAD], [UNK], [CLS] before, [SEP]
    after and between two texts. Of a pruned one `kept` has the checkpoint's id of each of its pieces.
    """

    definition: str
    size: int
    special: Special
    checkpoint_ids: tuple[int, ...] | None = None
    full_size: int = 0
    """Its size before it was pruned."""
    used: int = 0
    """Its size if it is pruned to the text that it was made for; 0 where it was made for none."""

    @classmethod
    def load(cls, path: str) -> HFVocabulary:
        """From a local folder or a name on the Hugging Face Hub. CorpusError when there is no fast
        tokenizer.
        """
        # Transformers takes seconds to import, and only pretrained vocabularies need it.
        from transformers import AutoTokenizer

        try:
            # Byte-level tokenizers (RoBERTa) split a word as in running text only with the space before it.
            tokenizer = AutoTokenizer.from_pretrained(
                path, use_fast=True, add_prefix_space=True, trust_remote_code=False
            )
            backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
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
        """The vocabulary for a text of these distinct words: with all of its pieces, or pruned to what the words need.

        Raises:
            CorpusError: it is to be pruned, and its kind of tokenizer cannot be.
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
        definition, kept = pruned_tokenizer(self.definition, words, always, special.unknown)
        there = {old: new for new, old in enumerate(kept)}
        own = Special(
            there[special.padding],
            there[special.unknown],
            *(tuple(there[id] for id in ids) for ids in around),
            mask=None if special.mask is None else there[special.mask],
        )
        return HFVocabulary(definition, len(kept), own, kept, self.full_size, len(kept))

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer.from_str(self.definition)

    def pieces(self, words: Sequence[str]) -> Ragged:
        """One row of int32 ids for each word. The word that stands for an utterance has none where the checkpoint has
        a piece of its own before every sentence: it is read there.
        """
        found = split_words(self._tokenizer, words, self.special.unknown, self.special.separator)
        if not self.special.prefix or UTTERANCE not in words:
            return found
        kept = np.array([word != UTTERANCE for word in words])
        return Ragged(
            found.values[np.repeat(kept, found.lengths)], offsets_from_lengths(found.lengths * kept)
        )

    def to_json(self) -> str:
        """All of it as JSON."""
        content = {"kind": "pretrained", "definition": self.definition, "size": self.size}
        content |= {"kept": self.checkpoint_ids, "full_size": self.full_size, "used": self.used}
        return json.dumps(content | {"special": asdict(self.special)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> HFVocabulary:
        """The vocabulary that `to_json` wrote."""
        content = json.loads(text)
        special = content["special"]
        special |= {name: tuple(special[name]) for name in ("prefix", "suffix", "separator")}
        kept = None if content["kept"] is None else tuple(content["kept"])
        return cls(
            content["definition"],
            content["size"],
            Special(**special),
            kept,
            content["full_size"],
            content["used"],
        )


def _special_ids(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The ids a tokenizer puts before and after a sentence, and between two, found around one encoded word."""
    bare = tokenizer.encode(["a"], is_pretokenized=True, add_special_tokens=False).ids
    whole = tokenizer.encode(["a"], is_pretokenized=True).ids
    start = next(i for i in range(len(whole)) if whole[i : i + len(bare)] == bare)
    prefix, suffix = whole[:start], whole[start + len(bare) :]
    both = tokenizer.encode(["a"], ["a"], is_pretokenized=True).ids
    return tuple(prefix), tuple(suffix), tuple(both[start + len(bare) : len(both) - len(bare) - len(suffix)])
