"""What teachers and students share: embeddings, character encoder, BiLSTM and Transformer, heads, models of these."""

from raykd.layers.biaffine import BiaffineHead
from raykd.layers.bilstm import BiLSTM
from raykd.layers.characters import CharacterEncoder
from raykd.layers.dropout import VariationalDropout, WordDropout
from raykd.layers.embedding import TokenEmbedding
from raykd.layers.ensemble import Ensemble
from raykd.layers.heads import CRFHead, MaxEntHead
from raykd.layers.model import Model, Output, load_weights, save_weights
from raykd.layers.tagger import Projection, Tagger, TaggerShape
from raykd.layers.transformer import Transformer

__all__ = [
    "BiLSTM",
    "BiaffineHead",
    "CRFHead",
    "CharacterEncoder",
    "Ensemble",
    "MaxEntHead",
    "Model",
    "Output",
    "Projection",
    "Tagger",
    "TaggerShape",
    "TokenEmbedding",
    "Transformer",
    "VariationalDropout",
    "WordDropout",
    "load_weights",
    "save_weights",
]
