"""The vocabulary of a Transformers checkpoint: its own tokenizer, ids and special tokens."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

from raykd.corpora.pieces import Special, split_words
from raykd.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raykd.corpora.ragged import Ragged


@dataclass(frozen=True)
class HFVocabulary:
    """A pretrained tokenizer. It has the tokenizer's whole definition, so that it is read without the
    checkpoint.

    `size` counts added tokens too; `special` are the checkpoint's own: [PAD], [UNK], [CLS] before, [SEP]
    after.
    """

    definition: str
    size: int
    special: Special

    @classmethod
    def load(cls, path: str) -> HFVocabulary:
        """From a local folder or a name on the Hugging Face Hub. CorpusError when there is no fast
        tokenizer."""
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
        prefix, suffix = _special_ids(backend)
        largest = max(backend.get_vocab(with_added_tokens=True).values())
        padding = 0 if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        unknown = padding if tokenizer.unk_token_id is None else tokenizer.unk_token_id
        return cls(backend.to_str(), largest + 1, Special(padding, unknown, prefix, suffix))

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer.from_str(self.definition)

    def pieces(self, words: Sequence[str]) -> Ragged:
        """One row of int32 ids for each word, none of them empty."""
        return split_words(self._tokenizer, words, self.special.unknown)

    def to_json(self) -> str:
        """All of it as JSON."""
        content = {"kind": "pretrained", "definition": self.definition, "size": self.size}
        return json.dumps(content | {"special": asdict(self.special)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> HFVocabulary:
        """The vocabulary that `to_json` wrote."""
        content = json.loads(text)
        special = content["special"]
        special |= {"prefix": tuple(special["prefix"]), "suffix": tuple(special["suffix"])}
        return cls(content["definition"], content["size"], Special(**special))


def _special_ids(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids a tokenizer puts before and after a sentence, found around one encoded word."""
    bare = tokenizer.encode(["a"], is_pretokenized=True, add_special_tokens=False).ids
    whole = tokenizer.encode(["a"], is_pretokenized=True).ids
    start = next(i for i in range(len(whole)) if whole[i : i + len(bare)] == bare)
    return tuple(whole[:start]), tuple(whole[start + len(bare) :])
