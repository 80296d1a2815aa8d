import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.corpora.hashes import sentence_hashes
from raykd.errors import StoreError
from raykd.storage.store import Storage
from raykd.transfer import Text, open_text, write_text

SENTENCES = [["Zoë", "lives", "here"], ["日本"], ["a", "", "b"]]


def forms():
    plain = pa.array(SENTENCES, pa.list_(pa.string()))
    padded = pa.array([["no"], *SENTENCES, ["no"]], pa.list_(pa.string()))
    yield "lists", SENTENCES
    yield "column", plain
    yield "chunks", pa.chunked_array([plain.slice(0, 1), plain.slice(1, 2)])
    yield "slice of a longer column", padded.slice(1, 3)
    yield "large", plain.cast(pa.large_list(pa.large_string()))


@pytest.mark.parametrize(("name", "form"), list(forms()), ids=[name for name, _ in forms()])
def test_the_same_sentences_are_one_text_however_they_came(name, form):
    text = Text.from_tokens(form)
    assert text.id == Text.from_tokens(SENTENCES).id
    assert text.lengths.tolist() == [3, 1, 3]
    assert text.sentences(np.array([2, 0])) == [SENTENCES[2], SENTENCES[0]]


@pytest.mark.parametrize(
    "different",
    [
        SENTENCES[::-1],
        SENTENCES[:2],
        [["Zoëlives", "here"], *SENTENCES[1:]],
        [*SENTENCES[:2], ["a", "b", ""]],
    ],
)
def test_other_sentences_are_another_text(different):
    assert Text.from_tokens(different).id != Text.from_tokens(SENTENCES).id


def test_the_border_between_sentences_counts():
    assert Text.from_tokens([["a", "b"], ["c"]]).id != Text.from_tokens([["a"], ["b", "c"]]).id


@pytest.mark.parametrize("bad", [[["a"], []], pa.array([["a"], None])])
def test_a_sentence_without_tokens_is_refused(bad):
    with pytest.raises(ValueError, match="at least one token"):
        Text.from_tokens(bad)


def test_a_stored_text_comes_back_and_is_written_once(tmp_path):
    store, text = Storage(str(tmp_path)), Text.from_tokens(SENTENCES)
    write_text(store, text)
    (path,) = tmp_path.rglob("text.arrow")
    written = path.stat().st_mtime_ns
    write_text(store, text)
    assert path.stat().st_mtime_ns == written
    back = open_text(store, text.id)
    assert back.id == text.id
    assert back.sentences(np.arange(3)) == SENTENCES


def test_a_damaged_or_missing_text_is_refused_by_name(tmp_path):
    store, text = Storage(str(tmp_path)), Text.from_tokens(SENTENCES)
    with pytest.raises(StoreError, match=r"text\.arrow: the text is not in the store"):
        open_text(store, text.id)
    write_text(store, text)
    (path,) = tmp_path.rglob("text.arrow")
    whole = path.read_bytes()
    place = whole.index(b"lives")
    path.write_bytes(whole[:place] + b"L" + whole[place + 1 :])
    with pytest.raises(StoreError, match="checksum"):
        open_text(store, text.id)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreError, match="cannot be read"):
        open_text(store, text.id)


def spelled(text: Text) -> list[list[str]]:
    return text.sentences(np.arange(len(text)))


def test_a_union_is_the_longest_text_and_what_the_others_add_once():
    small = Text.from_tokens([["new"], ["日本"], ["new"], ["a", "b"]])
    union = Text.union([small, Text.from_tokens(SENTENCES), Text.from_tokens([["new"], ["newer"]])])
    assert spelled(union) == [
        *[list(words) for words in spelled(small)],
        SENTENCES[0],
        SENTENCES[2],
        ["newer"],
    ]
    reordered = Text.union([Text.from_tokens(SENTENCES), small, Text.from_tokens([["new"], ["newer"]])])
    assert sorted(spelled(reordered)) == sorted(spelled(union))


@pytest.mark.parametrize("added", [[], [SENTENCES], [SENTENCES[1:]], [SENTENCES[:1] * 2]])
def test_a_union_that_adds_nothing_is_the_same_text(added):
    text = Text.from_tokens(SENTENCES)
    assert Text.union([text, *map(Text.from_tokens, added)]) is text or len(added[0]) == len(SENTENCES)
    assert Text.union([text, *map(Text.from_tokens, added)]).id == text.id


WORDS = st.lists(
    st.lists(st.sampled_from(["a", "b", "ab", ""]), min_size=1, max_size=3), min_size=1, max_size=6
)


@settings(max_examples=50)
@given(st.lists(WORDS, min_size=1, max_size=3))
def test_each_text_finds_its_sentences_in_the_union(several):
    texts = [Text.from_tokens(sentences) for sentences in several]
    union = Text.union(texts)
    assert len(union) <= sum(map(len, texts))
    for text, sentences in zip(texts, several, strict=True):
        assert union.sentences(union.rows(text.hashes)) == sentences


def test_sentences_are_found_or_absent():
    text = Text.from_tokens(forms_in_chunks())
    queries = [["日本"], ["ja"], SENTENCES[2], ["a", "b", ""], SENTENCES[0]]
    assert text.rows(sentence_hashes(queries)).tolist() == [1, -1, 2, -1, 0]
    assert text.rows(sentence_hashes([])).tolist() == []


def test_a_text_of_some_rows_has_these_sentences_alone():
    text = Text.from_tokens(forms_in_chunks())
    rows = np.array([2, 0])
    assert text.subset(rows).sentences(np.arange(2)) == text.sentences(rows)
    twice = Text.from_tokens([*SENTENCES, *SENTENCES[:2]])
    assert twice.first_rows.tolist() == list(range(len(SENTENCES)))


def forms_in_chunks():
    return pa.chunked_array([pa.array([sentence], pa.list_(pa.string())) for sentence in SENTENCES])


def test_stored_hashes_are_not_computed_again_unless_they_are_missing(tmp_path, monkeypatch):
    store, text = Storage(str(tmp_path)), Text.from_tokens(forms_in_chunks())
    write_text(store, text)
    (path,) = tmp_path.rglob("hashes.bin")
    with monkeypatch.context() as patch:
        patch.setattr("raykd.transfer.text.sentence_hashes", lambda *_: pytest.fail("hashed again"))
        assert np.array_equal(open_text(store, text.id).hashes, text.hashes)
    path.unlink()
    assert np.array_equal(open_text(store, text.id).hashes, text.hashes)
    write_text(store, text)
    assert path.exists()


@pytest.mark.parametrize("place", [5, 40])
def test_damaged_hashes_are_refused_by_name(tmp_path, place):
    store, text = Storage(str(tmp_path)), Text.from_tokens(SENTENCES)
    write_text(store, text)
    (path,) = tmp_path.rglob("hashes.bin")
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    with pytest.raises(StoreError, match=r"hashes\.bin: the text is damaged: its content"):
        open_text(store, text.id).rows(text.hashes)
    for short in (b"", whole[:31], whole[:-3]):
        path.write_bytes(short)
        with pytest.raises(StoreError, match=r"hashes\.bin: the text is damaged"):
            open_text(store, text.id).rows(text.hashes)


def test_ids_stay_what_they_are():
    """Names of signals in existing stores contain the ids."""
    assert Text.from_tokens(SENTENCES).id == "text-86594e7f4974115a"
