"""Head codes: against the definition of each encoding, word by word, and back to the head."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.forms.tree.codes import ENCODINGS, NONE, TreeLabels, encode_tree, possible_heads

POS = ("ADJ", "NOUN", "VERB")
RELATIONS = ("obj", "nsubj", "root")


@st.composite
def sentences(
    draw: st.DrawFn, parts_of_speech: tuple[str, ...] = POS
) -> list[tuple[list[int], list[str], list[str]]]:
    """(heads, relations, parts of speech); heads are any other word or the root, trees or not."""
    drawn_sentences = []
    for length in draw(st.lists(st.integers(1, 7), min_size=1, max_size=4)):
        heads = [
            draw(st.integers(0, length).filter(lambda head, word=word: head != word + 1))
            for word in range(length)
        ]
        relations = [draw(st.sampled_from(RELATIONS)) for _ in range(length)]
        drawn_sentences.append(
            (heads, relations, [draw(st.sampled_from(parts_of_speech)) for _ in range(length)])
        )
    return drawn_sentences


def by_definition(word: int, head: int, pos: list[str], encoding: str) -> str:
    """The code of a head (0 the root), by counting words one after the other."""
    if head == 0:
        return "-1@ROOT" if encoding == "relative_pos" else "+0@ROOT"
    if encoding == "relative_position":
        return f"{head - 1 - word:+d}@"
    step, place, count = (1, word, 0) if head - 1 > word else (-1, word, 0)
    while place != head - 1:
        place += step
        count += pos[place] == pos[head - 1]
    return f"{step * count:+d}@{pos[head - 1]}"


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(sentences())
def test_labels_are_those_of_the_definition(encoding, given_sentences):
    for heads, relations, pos in given_sentences:
        expected = [
            f"{by_definition(word, head, pos, encoding)}@{relation}"
            for word, (head, relation) in enumerate(zip(heads, relations, strict=True))
        ]
        assert encode_tree(heads, relations, pos, encoding) == expected


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(sentences())
def test_a_label_means_the_head_that_it_was_made_of_in_a_padded_batch(encoding, given_sentences):
    written = [encode_tree(*sentence, encoding) for sentence in given_sentences]
    labels = labels_of(written, encoding)
    pos_BT, lengths_B = padded(given_sentences)
    heads_BTY = labels.heads(pos_BT, lengths_B)
    for number, (heads, relations, _) in enumerate(given_sentences):
        for word, label in enumerate(written[number]):
            place = labels.tags.index(label)
            assert heads_BTY[number, word, place] == heads[word]
            assert labels.relations[labels.relations_Y[place]] == relations[word]


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(sentences())
def test_a_code_and_a_relation_are_the_number_of_their_label(encoding, given_sentences):
    written = [encode_tree(*sentence, encoding) for sentence in given_sentences]
    labels = labels_of(written[:1], encoding)
    pos_BT, lengths_B = padded(given_sentences)
    codes_BTH = labels.codes(pos_BT, lengths_B)
    for number, (heads, relations, _) in enumerate(given_sentences):
        codes_T = codes_BTH[number, np.arange(len(heads)), heads]
        numbers_T = labels.label_numbers(
            codes_T, np.array([RELATIONS.index(relation) for relation in relations])
        )
        expected = [labels.tags.index(tag) if tag in labels.tags else NONE for tag in written[number]]
        assert numbers_T.tolist() == expected


def test_labels_are_read_back_as_they_were_written():
    labels = labels_of([["+1@NOUN@nsubj", "-1@ROOT@root"]], "relative_pos")
    assert TreeLabels.from_plain(json.loads(json.dumps(labels.to_plain()))) == labels
    assert len(labels) == 2


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(sentences())
def test_codes_and_heads_agree_for_every_word_and_every_label(encoding, given_sentences):
    labels = labels_of((encode_tree(*sentence, encoding) for sentence in given_sentences), encoding)
    pos_BT, lengths_B = padded(given_sentences)
    codes_BTH, heads_BTY = labels.codes(pos_BT, lengths_B), labels.heads(pos_BT, lengths_B)
    allowed_BTH = possible_heads(lengths_B, pos_BT.shape[1])
    assert (codes_BTH[~allowed_BTH] == NONE).all()
    for (batch, word, head), code in np.ndenumerate(codes_BTH):
        if code != NONE:
            heads = heads_BTY[batch, word, labels.codes_Y == code]
            assert (heads == head).all()
    for (batch, word, label), head in np.ndenumerate(heads_BTY):
        if head != NONE:
            assert codes_BTH[batch, word, head] == labels.codes_Y[label]


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(sentences(), sentences(parts_of_speech=(*POS, "INTJ", "SCONJ", "SYM", "X")))
def test_a_head_has_a_code_where_a_label_names_it_whatever_part_of_speech_it_is(encoding, learnt, read):
    """Labels of a treebank without some universal parts of speech, for sentences with these."""
    labels = labels_of((encode_tree(*sentence, encoding) for sentence in learnt), encoding)
    codes_by_name = {
        tag.rpartition("@")[0]: code for tag, code in zip(labels.tags, labels.codes_Y, strict=True)
    }
    pos_BT, lengths_B = padded(read, labels.known_pos)
    codes_BTH = labels.codes(pos_BT, lengths_B)
    for number, (heads, _, pos) in enumerate(read):
        for word in range(len(heads)):
            possible = [head for head in range(len(heads) + 1) if head != word + 1]
            expected = [
                codes_by_name.get(by_definition(word, head, pos, encoding), NONE) for head in possible
            ]
            assert codes_BTH[number, word, possible].tolist() == expected


def test_a_label_of_no_word_has_no_head():
    labels = labels_of([["+1@NOUN@nsubj", "-1@ROOT@root"]], "relative_pos")
    heads_BTY = labels.heads(np.array([[2, 1]]), np.array([2]))
    assert heads_BTY.tolist() == [[[2, 0], [NONE, 0]]]


@pytest.mark.parametrize("tag", ["nsubj", "+1@NOUN", "+1@DET@nsubj", "x@NOUN@nsubj", "+1@NOUN@det"])
def test_a_tag_of_another_form_is_refused(tag):
    with pytest.raises(ValueError, match="offset@POS@relation"):
        labels_of([[tag]], "relative_pos")


def labels_of(sentences, encoding) -> TreeLabels:
    return TreeLabels.from_sentences(sentences, pos=POS, relations=RELATIONS, encoding=encoding)


def padded(given_sentences: list, names: tuple[str, ...] = POS) -> tuple[np.ndarray, np.ndarray]:
    """Pad parts of speech with numbers that must not matter; return lengths too."""
    lengths_B = np.array([len(pos) for _, _, pos in given_sentences])
    pos_BT = np.full((len(lengths_B), lengths_B.max()), 1)
    for row, (_, _, pos) in zip(pos_BT, given_sentences, strict=True):
        row[: len(pos)] = [names.index(name) for name in pos]
    return pos_BT, lengths_B
