"""Labels of words from those of their pieces, against the enumeration of all labellings of the pieces.

Shapes: P pieces, T words, L labels.
"""

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.errors import StoreError
from raykd.forms import FLAT, SPANS
from raykd.layers.label_map import match_labels
from raykd.layers.piece_labels import Words, piece_labels
from raykd.layers.transition_biases import BIASES_FILE, TransitionBiases
from raykd.structures import kbest, log_partition, score

TAGS = SPANS.tag_set(["X"])
NAMES = TAGS.tags
KINDS = {
    "OO": "background_stay", "OB": "background_to_start", "OS": "background_to_start", "EO": "end_to_background",
    "SO": "end_to_background", "EB": "end_to_start", "ES": "end_to_start", "SB": "end_to_start", "SS": "end_to_start",
    "BI": "inside_to_continue", "II": "inside_to_continue", "BE": "inside_to_end", "IE": "inside_to_end",
}  # fmt: skip
NUMBERS = st.floats(-2, 2, width=32)


def words_of(counts, spaces=()):
    """One sentence; `counts` are the pieces of each word, `spaces` says which begin with a space of their own."""
    starts = [sum(counts[:t]) for t in range(len(counts))]
    is_space = torch.zeros(1, sum(counts), dtype=torch.bool)
    for start, space in zip(starts, spaces, strict=False):
        is_space[0, start] = space
    return Words(torch.tensor([starts]), torch.tensor([sum(counts)]), torch.tensor([len(counts)]), is_space)


def full(letter):
    return letter if letter == "O" else f"{letter}-X"


def legal_score(letters, log_PL, biases):
    """Score of the letters of pieces; None for an illegal labelling."""
    if letters[0] in "IE" or letters[-1] in "BI":
        return None
    total = sum(log_PL[place, NAMES.index(full(letter))] for place, letter in enumerate(letters))
    for pair in pairwise(letters):
        if "".join(pair) not in KINDS:
            return None
        total = total + getattr(biases, KINDS["".join(pair)])
    return total


def spans(letters):
    starts = [place for place, letter in enumerate(letters) if letter in "BS"]
    ends = [place + 1 for place, letter in enumerate(letters) if letter in "ES"]
    return list(zip(starts, ends, strict=True))


def as_words(letters, counts, spaces):
    """Letters of the words; None if a span cuts a word, or begins with the space before one."""
    starts = [sum(counts[:t]) for t in range(len(counts))]
    words = zip(starts, counts, spaces, strict=True)
    first = {start + (space and count > 1): t for t, (start, count, space) in enumerate(words)}
    last = {start + count: t for t, (start, count) in enumerate(zip(starts, counts, strict=True))}
    read = ["O"] * len(counts)
    for start, end in spans(letters):
        if start not in first or end not in last:
            return None
        inside = range(first[start], last[end] + 1)
        for t in inside:
            read[t] = "I"
        read[inside[0]], read[inside[-1]] = "B", "E"
        if len(inside) == 1:
            read[inside[0]] = "S"
    return tuple(read)


@st.composite
def sentences(draw):
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4).filter(lambda counts: sum(counts) <= 6))
    spaces = tuple(draw(st.booleans()) for _ in counts)
    values = draw(st.lists(NUMBERS, min_size=5 * sum(counts), max_size=5 * sum(counts)))
    biases = {name: draw(NUMBERS) for name in TransitionBiases.model_fields}
    if any(spaces):  # the bias from a span to the next is the one that a space between them may change
        away, back = biases["end_to_background"], biases["background_to_start"]
        biases["end_to_start"] = away + back - biases["background_stay"]
    return tuple(counts), spaces, torch.tensor(values).reshape(-1, 5), TransitionBiases(**biases)


@settings(max_examples=60, deadline=None)
@given(sentences())
def test_words_have_the_probabilities_of_their_pieces(sentence):
    counts, spaces, logits_PL, biases = sentence
    labels = piece_labels(match_labels(NAMES, TAGS, {}, checkpoint="x"), TAGS, biases)
    words, log_PL = words_of(counts, spaces), torch.log_softmax(logits_PL, -1)
    chain = labels.chain(labels.emissions(logits_PL[None], words), words.lengths_B)
    by_words, all_scores = {}, []
    for letters in product("OBIES", repeat=len(logits_PL)):
        total = legal_score(letters, log_PL, biases)
        if total is None:
            continue
        all_scores.append(total)
        if (word_letters := as_words(letters, counts, spaces)) is not None:
            assert word_letters not in by_words
            by_words[word_letters] = total
    scores = torch.stack([*by_words.values()])
    paths = torch.tensor([[NAMES.index(full(x)) for x in letters] for letters in by_words])
    single = chain.select(torch.zeros(len(paths), dtype=torch.long))
    torch.testing.assert_close(
        score(single, paths) - log_partition(single), torch.log_softmax(scores, 0), rtol=1e-4, atol=1e-4
    )
    left_out = 1 - (torch.logsumexp(scores, 0) - torch.logsumexp(torch.stack(all_scores), 0)).exp()
    torch.testing.assert_close(
        labels.left_out(logits_PL[None], words)[0].float(), left_out, rtol=1e-4, atol=1e-5
    )
    best = kbest(chain, len(paths))
    torch.testing.assert_close(best[1][0].diff().clamp(min=0), torch.zeros(len(paths) - 1))
    assert {tuple(path) for path in best[0][0].tolist()} == {tuple(path) for path in paths.tolist()}


def test_a_name_of_one_word_and_two_pieces_is_one_span():
    logits_PL = torch.full((3, 5), -9.0)
    for place, label in enumerate(("B-X", "E-X", "O")):
        logits_PL[place, NAMES.index(label)] = 9.0
    labels = piece_labels(match_labels(NAMES, TAGS, {}, checkpoint="x"), TAGS, TransitionBiases())
    emissions_BTY = labels.emissions(logits_PL[None], words_of((2, 1)))
    assert [NAMES[y] for y in emissions_BTY[0].argmax(-1)] == ["S-X", "O"]
    # The first piece alone says B, which no word ends.
    assert labels.left_out(logits_PL[None], words_of((1, 2)))[0] > 0.99


def test_sentences_of_a_batch_do_not_touch():
    generator = torch.Generator().manual_seed(0)
    logits_BPL = torch.randn(2, 6, 5, generator=generator)
    labels = piece_labels(
        match_labels(NAMES, TAGS, {}, checkpoint="x"), TAGS, TransitionBiases(background_stay=1)
    )
    # Pieces 0 and the last are those around a sentence.
    both = Words(
        torch.tensor([[1, 3, 4], [1, 2, 0]]), torch.tensor([5, 4]), torch.tensor([3, 2]),
        torch.zeros(2, 6, dtype=torch.bool),
    )  # fmt: skip
    emissions_BTY, left_out_B = labels.emissions(logits_BPL, both), labels.left_out(logits_BPL, both)
    for b, counts in enumerate([(2, 1, 1), (1, 2)]):
        single = logits_BPL[b : b + 1, 1 : 1 + sum(counts)]
        expected_TY = labels.emissions(single, words_of(counts))[0]
        torch.testing.assert_close(emissions_BTY[b, : len(counts)], expected_TY)
        torch.testing.assert_close(left_out_B[b], labels.left_out(single, words_of(counts))[0])


def test_iob2_of_pieces_becomes_bioes_of_words():
    """Of independent pieces: O … O, B I … I and I … I, then what the next word says."""
    names = ("O", "B-X", "I-X")
    logits_PL = torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    label_map = match_labels(names, TAGS, {}, checkpoint="x")
    labels = piece_labels(label_map, TAGS, TransitionBiases())
    assert labels.transitions is None
    log_PL = torch.log_softmax(logits_PL, -1)
    paths = [(0, 0), (1, 2), (2, 2)]
    first_N = torch.stack([log_PL[0, first] + log_PL[1, second] for first, second in paths])
    word_2N = torch.stack([first_N, log_PL[2]])
    expected_BTY = label_map.emissions(word_2N[None], torch.tensor([2]))
    torch.testing.assert_close(labels.emissions(logits_PL[None], words_of((2, 1))), expected_BTY)


def test_labels_without_spans_are_the_same_on_every_piece():
    tag_set = FLAT.tag_set(["NOUN", "VERB"])
    labels = piece_labels(
        match_labels(("NOUN", "VERB"), tag_set, {}, checkpoint="x"), tag_set, TransitionBiases()
    )
    logits_PL = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    expected_TY = torch.log_softmax(torch.stack([logits_PL[0] + logits_PL[1], logits_PL[2]]), -1)
    torch.testing.assert_close(labels.emissions(logits_PL[None], words_of((2, 1)))[0], expected_TY)


def test_operating_points_are_read_from_the_file_beside_the_weights(tmp_path):
    assert TransitionBiases.read(tmp_path, "default") == TransitionBiases()
    with pytest.raises(StoreError, match=f"no {BIASES_FILE}, and so no operating point 'recall'"):
        TransitionBiases.read(tmp_path, "recall")
    file = tmp_path / BIASES_FILE
    file.write_text(
        '{"operating_points": {"recall": {"biases": {"transition_bias_background_to_start": 1.5}}}}'
    )
    assert TransitionBiases.read(tmp_path, "recall") == TransitionBiases(background_to_start=1.5)
    with pytest.raises(StoreError, match=r"no operating point 'default'.*recall"):
        TransitionBiases.read(tmp_path, "default")


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"points": {}}',
        '{"operating_points": {"default": {"biases": {"transition_bias_sideways": 1}}}}',
        '{"operating_points": {"default": {"biases": {"transition_bias_end_to_start": "much"}}}}',
        '{"operating_points": {"default": {"biases": {"transition_bias_end_to_start": NaN}}}}',
    ],
)
def test_a_file_of_another_form_is_refused_by_name(tmp_path, content):
    (tmp_path / BIASES_FILE).write_text(content)
    with pytest.raises(StoreError, match=rf"{BIASES_FILE}.*expected") as caught:
        TransitionBiases.read(tmp_path, "default")
    assert "operating_points" in str(caught.value)
