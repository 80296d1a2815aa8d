"""Dependency parsers as teachers: biaffine scores of arcs, without or with scores of pairs of arcs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from raykd.forms import TREE, LabelForm
from raykd.layers.optimisation import TrainingConfig
from raykd.layers.tagger_config import Size
from raykd.teachers.bilstm_teacher import BiLSTMTeacher

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from raykd.forms import TagSet


class ParserTraining(TrainingConfig):
    """Training settings of Dozat & Manning (2017, Table 1) and Wang & Tu (2020), except Adam's β₂ and slow decay."""

    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.33
    loss_average: Literal["sentence", "token"] = "token"


class ParserTeacher(BiLSTMTeacher):
    """The encoder of `bilstm_crf`, deeper, with the head of a subclass.

    It gives log P(head) of each word and, for every head, log P(relation | head).
    """

    hidden_dim: Size = 400
    """Hidden size of each direction."""
    layers: Size = 3
    character_dim: Annotated[int, Field(ge=0)] = 50
    """Components of a character's vector; 0: it reads no characters."""
    character_hidden: Size = 50
    """Hidden size of each direction of the character encoder."""
    arc_dim: Size = 500
    """Components of a word's vector as dependent and as head."""
    relation_dim: Size = 100
    """Components of these vectors for the scores of relations."""
    training: ParserTraining = ParserTraining()
    """By default its dropout is 0.33 and its `loss_average` is `token`."""
    forms: ClassVar[tuple[LabelForm, ...]] = (TREE,)
    export_obstacle: ClassVar[str] = "scores arcs"
    model_signals: ClassVar[tuple[str, ...]] = ("arcs", "relations", "hidden", "hidden_int8")
    decoder: ClassVar[Literal["crf", "maxent", "spans", "arcs"]] = "arcs"
    sizes: ClassVar[tuple[str, ...]] = (*BiLSTMTeacher.sizes, "arc_dim", "relation_dim")

    @model_validator(mode="after")
    def _averages_scores(self) -> Self:
        if self.count > 1 and self.combine == "posteriors":
            # A mixture does not factor into P(head) and P(relation | head), so it cannot be stored as these.
            raise ValueError("parsers cannot be averaged by their posteriors; set combine: scores")
        return self


class BiaffineParserTeacher(ParserTeacher):
    """A biaffine score for all possible heads of a word, and for all relations (Dozat & Manning 2017).

    Each word's head is chosen independently, without the constraint that heads form a tree (Wang et al., ACL 2021, case
    1b).
    """

    kind: Literal["biaffine_parser"] = "biaffine_parser"

    @override
    def _head(self, tag_set: TagSet, dropout: float) -> Callable[[int], nn.Module]:
        from raykd.layers.arcs import ParserHead

        return partial(
            ParserHead,
            relations=len(tag_set),
            arc_dim=self.arc_dim,
            relation_dim=self.relation_dim,
            dropout=dropout,
        )


class SecondOrderParserTeacher(ParserTeacher):
    """`biaffine_parser` with scores of pairs of arcs too: siblings, and a word with its grandparent.

    log P(head) comes from some iterations of mean field (Wang & Tu, AACL 2020; Wang et al., ACL 2021, case 2b);
    relations are those of `biaffine_parser`. Time and memory grow with the cube of a sentence's length.
    """

    kind: Literal["second_order_parser"] = "second_order_parser"
    pair_dim: Size = 100
    """Components of a word's vector in each place of a pair."""
    iterations: Size = 3
    """Iterations of mean field."""
    sizes: ClassVar[tuple[str, ...]] = (*ParserTeacher.sizes, "pair_dim", "iterations")

    @override
    def _head(self, tag_set: TagSet, dropout: float) -> Callable[[int], nn.Module]:
        from raykd.layers.second_order import SecondOrderParserHead

        return partial(
            SecondOrderParserHead,
            relations=len(tag_set),
            arc_dim=self.arc_dim,
            relation_dim=self.relation_dim,
            pair_dim=self.pair_dim,
            iterations=self.iterations,
            dropout=dropout,
        )
