import itertools

import pytest
import torch

from raykd.forms import FLAT, SPANS, TagSet
from raykd.layers.model_config import BuildInputs
from raykd.structures import score, viterbi
from raykd.teachers import BiaffineNERTeacher
from raykd.teachers.biaffine_ner import span_tags
from tests.layers.batches import CHARACTERS, PIECES, make_batch

TAGS = SPANS.tag_set(["PER", "LOC"])


def build(tag_set: TagSet, **settings):
    teacher = BiaffineNERTeacher(embedding_dim=6, hidden_dim=4, biaffine_dim=5, **settings)
    return teacher.build(
        BuildInputs(vocabulary_size=PIECES.size, characters=CHARACTERS.size, tag_set=tag_set)
    )


def test_its_tags_are_those_of_the_tag_set():
    numbers = span_tags(TAGS)
    for row, letter in zip((numbers.begin, numbers.inside, numbers.end, numbers.single), "BIES", strict=True):
        assert [TAGS.tags[number] for number in row] == [f"{letter}-{label}" for label in TAGS.labels]
    assert TAGS.tags[numbers.outside] == "O"


def test_what_it_decodes_is_valid_bioes_with_the_score_that_viterbi_gives():
    torch.manual_seed(0)
    model, batch = build(TAGS).eval(), make_batch()
    torch.nn.init.normal_(model.head.weights, std=3.0)
    spans = model(batch).distribution
    paths_BT, scores_B = viterbi(spans)
    torch.testing.assert_close(score(spans, paths_BT), scores_B)
    allowed, start, end = TAGS.form.allowed_transitions(TAGS.tags)
    for path, length in zip(paths_BT.tolist(), batch.lengths_B.tolist(), strict=True):
        tags = path[:length]
        assert start[tags[0]]
        assert end[tags[-1]]
        assert all(allowed[a, b] for a, b in itertools.pairwise(tags))
    assert paths_BT.any()


def test_flat_tags_are_refused():
    with pytest.raises(ValueError, match="spans need BIOES tags; the tag set is flat"):
        build(FLAT.tag_set(["NOUN", "VERB"]))


def test_its_shape_holds_the_biaffine_size():
    assert BiaffineNERTeacher(biaffine_dim=7).shape() != BiaffineNERTeacher(biaffine_dim=8).shape()
