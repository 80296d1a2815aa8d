"""The settings of vocabularies: whole words, WordPieces, BERT's or RoBERTa's tokenizer, or that of a checkpoint."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from raykd.corpora.pretrained import HFVocabulary, require_tokenizer
from raykd.corpora.vocabulary import WordPieceVocabulary, WordVocabulary, wordpiece_tokenizer
from raykd.corpora.word_pieces import CONTINUING, Special
from raykd.spec import Frozen

BERT_MARKS = ("[CLS]", "[SEP]", "[MASK]")
BERT_SPECIAL = Special(prefix=(2,), suffix=(3,), separator=(3,), mask=4)
"""The ids of `BERT_MARKS`, behind padding and unknown."""
ROBERTA_MARKS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
ROBERTA_SPECIAL = Special(padding=1, unknown=3, prefix=(0,), suffix=(2,), separator=(2, 2), mask=4)
"""The ids of `ROBERTA_MARKS`."""


class PiecesConfig(Frozen):
    """Base of the configurations of vocabularies."""

    of_checkpoint: ClassVar[bool] = False
    """True if the pieces are those of a given checkpoint."""
    has_mask: ClassVar[bool] = False
    """True if one of the pieces is a mask."""
    as_sampled: ClassVar[bool] = False
    """True if the pieces are trained on languages as they are sampled, for encoders that are pretrained on them."""


class WordConfig(PiecesConfig):
    """Whole words that occur at least `min_count` times in training."""

    kind: Literal["word"]
    min_count: int = Field(default=1, ge=1)

    def build(self, words: Iterable[str]) -> WordVocabulary:
        """Build the vocabulary of a text's words."""
        return WordVocabulary.build(words, min_count=self.min_count)


class WordPieceConfig(PiecesConfig):
    """At most `size` WordPieces trained on the corpus."""

    kind: Literal["wordpiece"]
    size: int = Field(default=8000, ge=100)

    def build(self, words: Iterable[str]) -> WordPieceVocabulary:
        """Train the vocabulary on a text's words."""
        return WordPieceVocabulary.build(words, size=self.size)


class BertConfig(PiecesConfig):
    """At most `size` WordPieces trained on the corpus, with the special pieces of BERT.

    It is a tokenizer as Transformers reads it, so running text is split at white space and signs first.
    """

    kind: Literal["bert"]
    has_mask: ClassVar[bool] = True
    as_sampled: ClassVar[bool] = True
    size: int = Field(default=16000, ge=200)
    lower_case: bool = False
    """Read text in lower case."""

    def build(self, words: Iterable[str]) -> HFVocabulary:
        """Train the vocabulary on a text's words."""
        text = bert_tokenizer([], lower_case=self.lower_case)
        counts: Counter[str] = Counter()
        for word, count in Counter(words).items():
            for part, _ in text.pre_tokenizer.pre_tokenize_str(text.normalizer.normalize_str(word)):
                counts[part] += count
        # Padding and unknown are among them, and have the first numbers.
        trained = WordPieceVocabulary.build(counts, size=self.size - len(BERT_MARKS)).entries
        entries = [*trained[:2], *BERT_MARKS, *trained[2:]]
        tokenizer = bert_tokenizer(entries, lower_case=self.lower_case)
        return HFVocabulary(tokenizer.to_str(), len(entries), BERT_SPECIAL, full_size=len(entries))


def bert_tokenizer(entries: Sequence[str], *, lower_case: bool) -> Tokenizer:
    """Return the tokenizer of BERT with the given WordPieces.

    Args:
        entries: WordPieces in the order of their ids; empty for normalization and splitting only.
        lower_case: True to read text in lower case.
    """
    tokenizer = wordpiece_tokenizer({entry: number for number, entry in enumerate(entries or ["[UNK]"])})
    bert = normalizers.BertNormalizer(lowercase=lower_case, strip_accents=False)
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), bert])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(CONTINUING)
    if entries:
        tokenizer.add_special_tokens(["[PAD]", "[UNK]", *BERT_MARKS])
        around = [(mark, entries.index(mark)) for mark in BERT_MARKS[:2]]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=around
        )
    return tokenizer


class RobertaConfig(PiecesConfig):
    """At most `size` pieces of byte pairs, trained on the corpus, with the special pieces of RoBERTa.

    Source: BPE, Sennrich et al. 2016. It is a tokenizer as Transformers reads it; no text is unknown to it.
    """

    kind: Literal["roberta"]
    has_mask: ClassVar[bool] = True
    as_sampled: ClassVar[bool] = True
    size: int = Field(default=16000, ge=300)

    def build(self, words: Iterable[str]) -> HFVocabulary:
        """Train the vocabulary on a text's words."""
        counts = Counter(words)
        # As special tokens bytes have the same numbers in every process; ties between merges are broken by these.
        first = [*ROBERTA_MARKS, *sorted(pre_tokenizers.ByteLevel.alphabet())]
        trained = _byte_level_tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(
            vocab_size=self.size, min_frequency=2, show_progress=False, special_tokens=first
        )
        trained.train_from_iterator((word for word in sorted(counts) for _ in range(counts[word])), trainer)
        model = json.loads(trained.to_str())["model"]
        merges = [tuple(merge) for merge in model["merges"]]
        tokenizer = _byte_level_tokenizer(models.BPE(vocab=model["vocab"], merges=merges))
        tokenizer.add_special_tokens([*ROBERTA_MARKS])
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
        size = len(model["vocab"])
        return HFVocabulary(tokenizer.to_str(), size, ROBERTA_SPECIAL, full_size=size)


def _byte_level_tokenizer(model: models.BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


class PretrainedConfig(PiecesConfig):
    """The tokenizer of a Transformers checkpoint, by name or local folder."""

    kind: Literal["pretrained"]
    of_checkpoint: ClassVar[bool] = True
    has_mask: ClassVar[bool] = True
    path: str = Field(min_length=1)
    pruned: bool = False
    """Keep only the pieces of the training and unlabelled text, which is split as before; other text is split into
    these pieces."""

    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        """Raise StoreError for a folder without a tokenizer."""
        require_tokenizer(self.path)

    def build(self, words: Iterable[str]) -> HFVocabulary:
        """Load the checkpoint's vocabulary, pruned to a text's words if `pruned` is set."""
        return HFVocabulary.load(self.path).for_words(list(dict.fromkeys(words)), prune=self.pruned)


VocabularyConfig = Annotated[
    WordConfig | WordPieceConfig | BertConfig | RobertaConfig | PretrainedConfig, Field(discriminator="kind")
]
