"""Small batches of words for the tests of models."""

import numpy as np

from raykd.corpora.encoded_text import TokenBatch, encode_text
from raykd.corpora.vocabulary import CharacterVocabulary, WordPieceVocabulary

SENTENCES = (
    ("Anna", "lives", "in", "Amsterdam", "."),
    ("Unbelievable",),
    ("Anna", "and", "Bob", "met", "near", "the", "river", "Amstel"),
    ("Bob", "slept"),
)
PIECES = WordPieceVocabulary.build([word for words in SENTENCES for word in words for _ in range(2)], size=60)
CHARACTERS = CharacterVocabulary.build([word for words in SENTENCES for word in words])


def make_batch(rows=(0, 1, 2, 3), *, vocabulary=PIECES, characters=True, sentences=SENTENCES) -> TokenBatch:
    """The batch of some of the sentences."""
    text = encode_text([list(words) for words in sentences], vocabulary, CHARACTERS if characters else None)
    return text.gather(np.array(rows))
