"""Texts with spans of characters: what tools of annotation write is read, and what is wrong is named with its line."""

from __future__ import annotations

import json
from itertools import accumulate, product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from raykd.corpora import read_corpus
from raykd.corpora.conll import conll_text
from raykd.corpora.corpus import corpus_id, open_corpus, write_corpus
from raykd.corpora.detect import detect
from raykd.corpora.faults import Faults
from raykd.corpora.format_detection import detect_format
from raykd.corpora.json_items import read_items
from raykd.corpora.labelled_files import LabelledFile, read_labelled
from raykd.corpora.plain_text import word_places
from raykd.corpora.sentence import Faulty
from raykd.corpora.span_alignment import CharacterSpan, SpanError, align
from raykd.corpora.span_files import SpanSource, parse
from raykd.deploy.export import export_run
from raykd.errors import CorpusError
from raykd.figures.results import RunResult
from raykd.metrics.bioes import read_spans
from raykd.storage.layout import RESULT
from raykd.storage.store import Storage
from raykd.training.prepare import prepare
from tests.corpora.parts import read
from tests.corpora.test_command import run as corpus_command
from tests.sweep.in_process import call
from tests.training.small import executed, recipe, student_of

TEXT = "Ada lives in London"
NAMES = [(0, 3, "PER"), (13, 19, "LOC")]
TAGS = ["B-PER", "O", "O", "B-LOC"]
SPLIT = {"train": 1, "dev": 1, "test": 1}


def as_objects(start="start", end="end", label="label", *, listed=False, **more):
    return [{start: s, end: e, label: [kind] if listed else kind, **more} for s, e, kind in NAMES]


def label_studio(*annotations, text=TEXT, **more):
    return {"id": 1, "data": {"text": text}, "annotations": list(annotations), "predictions": [], **more}


def annotation(spans=NAMES, name="label", **more):
    results = [
        {
            "id": str(s), "from_name": name, "to_name": "text", "type": "labels", "origin": "manual",
            "value": {"start": s, "end": e, "text": TEXT[s:e], "labels": [kind]},
        }
        for s, e, kind in spans
    ]  # fmt: skip
    other_spans = [
        {"from_id": "0", "to_id": "13", "type": "relation", "direction": "right"},
        {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}},
    ]
    return {"id": 7, "completed_by": 1, "result": [*results, *other_spans], "was_cancelled": False, **more}


TOKENS = [
    {"text": TEXT[start:end], "start": start, "end": end, "id": place, "ws": True}
    for place, (start, end) in enumerate(word_places(TEXT))
]
SHAPES = {
    "doccano": {"id": 1, "text": TEXT, "label": NAMES, "Comments": []},
    "doccano, labels": {"text": TEXT, "labels": NAMES},
    "doccano, data": {"id": 1, "data": TEXT, "label": NAMES},
    "doccano, relations": {
        "text": TEXT, "entities": as_objects("start_offset", "end_offset", id=4),
        "relations": [{"id": 0, "from_id": 4, "to_id": 5, "type": "in"}],
    },
    "Label Studio": label_studio(annotation()),
    "Label Studio 0.x": {"id": 1, "data": {"review": TEXT, "stars": 3}, "completions": [annotation()]},
    "Label Studio, one cancelled": label_studio(annotation([], was_cancelled=True), annotation()),
    "Label Studio, agreed": label_studio(annotation(), annotation(NAMES[::-1])),
    "Label Studio, ground truth": label_studio(annotation(NAMES[:1]), annotation(ground_truth=True)),
    "Label Studio, JSON-MIN": {
        "text": TEXT, "id": 1, "label": as_objects("start", "end", "labels", listed=True), "annotator": 1,
        "annotation_id": 2, "lead_time": 3.5,
    },
    "Label Studio, JSON-MIN, another name": {"text": TEXT, "ner": as_objects(label="labels", listed=True)},
    "Prodigy": {
        "text": TEXT, "_input_hash": 1, "_task_hash": 2, "tokens": TOKENS, "answer": "accept", "meta": {},
        "spans": as_objects(token_start=0, token_end=0),
    },
    "spaCy 2": [TEXT, {"entities": NAMES}],
    "NER Annotator for spaCy": {"classes": ["PER"], "annotations": [None, [TEXT, {"entities": NAMES}]]},
    "spaCy 3, Doc.to_json": {
        "text": TEXT, "ents": as_objects(), "sents": [{"start": 0, "end": 19}],
        "tokens": [{"id": t["id"], "start": t["start"], "end": t["end"], "tag": "NN"} for t in TOKENS],
    },
    "Dataturks": {
        "content": TEXT, "extras": None, "annotation": [
            {"label": [kind], "points": [{"start": s, "end": e - 1, "text": TEXT[s:e]}]} for s, e, kind in NAMES
        ],
    },
    "Rasa": {"rasa_nlu_data": {"common_examples": [
        {"text": TEXT, "intent": "x", "entities": as_objects(label="entity", value="a synonym")}
    ], "entity_synonyms": []}},
    "Vertex AI": {
        "textContent": TEXT,
        "textSegmentAnnotations": [
            {"startOffset": str(s), "endOffset": str(e), "displayName": kind} for s, e, kind in NAMES
        ],
    },
    "AutoML": {
        "text_snippet": {"content": TEXT}, "annotations": [
            {"text_extraction": {"text_segment": {"start_offset": s, "end_offset": e}}, "display_name": kind}
            for s, e, kind in NAMES
        ],
    },
    "Azure": {"text": TEXT, "entities": [
        {"category": kind, "offset": s, "length": e - s} for s, e, kind in NAMES
    ]},
    "Argilla 1": {
        "text": TEXT, "tokens": TEXT.split(), "prediction": [["ORG", 0, 3, 0.9]],
        "annotation": [[kind, s, e] for s, e, kind in NAMES],
    },
    "labelbuddy": {"text": TEXT, "annotations": as_objects("start_char", "end_char", "label_name")},
    "LightTag": {"examples": [{"content": TEXT, "annotations": as_objects(label="tag")}]},
    "SuperAnnotate": {
        "metadata": {"name": "x"}, "tags": [], "freeText": TEXT,
        "instances": as_objects(label="className", type="entity"),
    },
    "UBIAI": {"document": TEXT, "tokens": as_objects(label="entityLabel"), "relations": []},
    "Presidio": {
        "full_text": TEXT, "masked": "{{PERSON}} lives in {{GPE}}", "template_id": 1, "metadata": None, "spans": [
            {"entity_type": kind, "entity_value": TEXT[s:e], "start_position": s, "end_position": e}
            for s, e, kind in reversed(NAMES)
        ],
    },
    "ai4privacy": {
        "source_text": TEXT, "masked_text": "[PER] lives in [LOC]", "language": "en", "privacy_mask": [
            {"value": TEXT[s:e], "start": s, "end": e, "label": kind} for s, e, kind in NAMES
        ],
    },
    "a pipeline of Transformers": {"text": TEXT, "entities": as_objects(label="entity_group", score=0.9)},
    "spans and types": {"text": TEXT, "spans": as_objects(label="type")},
}  # fmt: skip


def config(folder, name="train.jsonl", **settings):
    return SpanSource(
        source="spans", root=str(folder), languages=("en",), train=name, split=SPLIT, **settings
    )


def sentences(folder, *records, name="train.jsonl", **settings):
    """The training sentences of records, one in each line; a text is a line as it is."""
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read(config(folder, name, **settings))["train"]


def tags_of(folder, *records, **settings):
    return [sentence.tags for sentence in sentences(folder, *records, **settings)]


def notes(folder, *records, **settings):
    """Note → (how often, the first example without its folder), and the sentences."""
    lines = [json.dumps(record) for record in records]
    faults = Faults()
    source_config = config(folder, **settings)
    stream = (
        ("train", sentence) for sentence in parse(source_config, lines, file="f", language="en", part="train")
    )
    tags = [sentence.tags for _, sentence in faults.sentences(stream)]
    return {
        note: (tally.total(), tally.examples["train"]["en"][0]) for note, tally in faults.notes.items()
    }, tags


def refusal(folder, *records, **settings):
    with pytest.raises(CorpusError) as refused:
        sentences(folder, *records, **settings)
    return str(refused.value)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_tools_write_is_found_and_read(tmp_path, shape):
    record = SHAPES[shape]
    for form, text in (
        ("train.jsonl", json.dumps(record) + "\n"),
        ("train.json", json.dumps([record])),
        ("array.json", json.dumps([record], indent=2)),
        ("object.json", json.dumps(record if isinstance(record, dict) else [record], indent=2)),
    ):
        (tmp_path / form).write_text(text)
        guess = detect_format(Storage(str(tmp_path)), form)
        assert (guess.source, guess.readable, guess.labelled, guess.settings) == ("spans", True, True, {}), (
            form
        )
        (sentence,) = read(config(tmp_path, form))["train"]
        assert (sentence.tokens, sentence.tags) == (TEXT.split(), TAGS), form
        assert (sentence.text, list(sentence.offsets)) == (TEXT, list(word_places(TEXT)))


def test_other_json_is_left_to_its_readers(tmp_path):
    tagged = {"tokens": TEXT.split(), "ner_tags": TAGS}
    for name, record in {
        "words and tags": tagged,
        "words, tags and spans": {**tagged, "text": TEXT, "spans": as_objects()},
        "texts of words": {**tagged, "spans": ["PER: Ada"]},
        "classes": {"text": TEXT, "label": "good"},
        "lists of classes": {"text": TEXT, "label": ["good"]},
        "numbers": {"text": TEXT, "label": [1, 2, 3]},
        "token offsets": {"tokenized_text": TEXT.split(), "ner": [[0, 0, "PER"]]},
    }.items():
        (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n")
        assert detect_format(Storage(str(tmp_path)), "a.jsonl").source == "jsonl", name
    for text in ("null\n", "{", "[", "[]", "{}\n", "[[]]", '{"text": "\\ud800"}\n'):
        (tmp_path / "a.jsonl").write_text(text)
        assert detect_format(Storage(str(tmp_path)), "a.jsonl").source != "spans", text


def test_two_names_that_touch_and_one_of_several_words(tmp_path):
    text = "Ada Lovelace/Bo."
    spans = [[13, 15, "PER"], [0, 12, "PER"], [12, 13, "MARK"]]
    (sentence,) = sentences(tmp_path, {"text": text, "label": spans})
    assert list(zip(sentence.tokens, sentence.tags, strict=True)) == [
        ("Ada", "B-PER"), ("Lovelace", "I-PER"), ("/", "B-MARK"), ("Bo", "B-PER"), (".", "O"),
    ]  # fmt: skip


def test_tokens_of_the_record_are_its_words(tmp_path):
    tokens = [
        {"text": "don", "start": 0, "end": 3}, {"text": "'t", "start": 3, "end": 5},
        {"text": " ", "start": 5, "end": 6}, {"text": "go", "start": 6, "end": 8},
    ]  # fmt: skip
    record = {"text": "don't go", "tokens": tokens, "spans": [{"start": 3, "end": 5, "label": "NEG"}]}
    (sentence,) = sentences(tmp_path, record)
    assert (sentence.tokens, sentence.tags) == (["don", "'t", "go"], ["O", "B-NEG", "O"])
    wrong = {**record, "tokens": [tokens[0], {"text": "'s", "start": 3, "end": 5}]}
    assert 'train.jsonl:1: in tokens: the span [3, 5]  says "\'s"' in refusal(tmp_path, wrong)
    assert "tokens are not in order" in refusal(tmp_path, {**record, "tokens": tokens[1::-1]})


def test_a_span_that_cuts_a_word_takes_it_whole_and_is_counted(tmp_path):
    text = "in Londonderry now"
    counts, tags = notes(tmp_path, {"text": text, "label": [[3, 9, "LOC"]]}, {"text": "a b", "label": []})
    assert tags == [["O", "B-LOC", "O"], ["O", "O"]]
    assert counts == {"widened": (1, "f:1: 'London' [3, 9] LOC is read as 'Londonderry'")}
    assert "'London' [3, 9] LOC is read as 'Londonderry'; correct the span" in refusal(
        tmp_path, {"text": text, "label": [[3, 9, "LOC"]]}, on_error="stop"
    )
    spaced = {"text": text, "label": [[2, 15, "LOC"], [2, 15, "LOC"]]}
    assert notes(tmp_path, spaced) == ({}, [["O", "B-LOC", "O"]]), "white space is no word, twice is once"


def test_overlaps_are_refused_or_the_longest_span_is_read(tmp_path):
    text = "University of Rome"
    nested = {"text": text, "label": [[14, 18, "LOC"], [0, 18, "ORG"]]}
    message = refusal(tmp_path, {"text": "a", "label": []}, nested)
    assert "train.jsonl:2: 'University of Rome' [0, 18] ORG and 'Rome' [14, 18] LOC overlap" in message
    assert "set corpus.nested: outermost" in message
    counts, tags = notes(tmp_path, nested, nested="outermost")
    assert (counts, tags) == ({"inner": (1, "f:1: 'Rome' [14, 18] LOC")}, [["B-ORG", "I-ORG", "I-ORG"]])
    glued = {"text": "Berlin-Paris", "label": [[0, 6, "LOC"], [7, 12, "ORG"]]}
    assert "are in one word, 'Berlin-Paris'" in refusal(tmp_path, glued)
    twice = {"text": "Rome", "label": [[0, 4, "LOC"], [0, 4, "ORG"]]}
    assert "'Rome' [0, 4] LOC and 'Rome' [0, 4] ORG overlap" in refusal(tmp_path, twice)
    assert notes(tmp_path, twice, nested="outermost")[1] == [["B-LOC"]], "the first of equals"
    thrice = {"text": "Ada Ada", "label": [[0, 3, "A"], [2, 5, "A"], [0, 5, "A"]]}
    assert notes(tmp_path, thrice, nested="outermost")[1] == [["B-A", "I-A"]], "the longest of one label"


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ([[0, 99, "A"]], "the span [0, 99] A ends behind the text, which has 19 characters"),
        ([[3, 0, "A"]], "the ends of the span [3, 0] A are swapped"),
        ([[3, 3, "A"]], "the span [3, 3] A is empty"),
        ([[3, 4, "A"]], "the span [3, 4] A has nothing but white space in it"),
        ([[-3, 4, "A"]], "the span [-3, 4] A begins before the text"),
        ([[0.0, 3, "A"]], "the start of a span is 0.0, not a whole number"),
        ([[0, True, "A"]], "the end of a span is True, not a whole number"),
        ([[0, "3 ", "A"]], "the end of a span is '3 ', not a whole number"),
        ([{"start": "/p[1]/text()[1]", "end": 3, "label": "A"}], "the start of a span is '/p[1]/text()[1]'"),
        ([[0, 3]], 'expected a span, [0, 3, "PER"] or {start, end, label}, got [0, 3]'),
        ([[0, 3, None]], "the span [0, 3] has no label"),
        ([[0, 3, " "]], "the span [0, 3] has no label"),
        ([[0, 3, ["A", "B"]]], "the span [0, 3] has 2 labels (A, B)"),
        (["PER"], "expected a span"),
        ({"name": {"Ada": [[0, 2]]}}, "'label' is no list of spans"),
        ("PER", "'label' is no list of spans: 'PER'"),
    ],
)
def test_spans_that_cannot_be_are_named_with_their_line(tmp_path, label, expected):
    message = refusal(tmp_path, {"text": "fine", "label": []}, {"text": TEXT, "label": label})
    assert f"train.jsonl:2: {expected}" in message
    assert "; " in message, "a hint"
    assert tags_of(tmp_path, {"text": TEXT, "label": label}, {"text": "b", "label": []}, on_error="skip") == [
        ["O"]
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a", "label": [[0, NaN, "A"]]}', "the line is not JSON (NaN is no number)"),
        ('{"text": "a\\ud83d", "label": []}', "character 1 of the text is half of a surrogate pair"),
        (
            '{"text": "a", "label": [[0, 1, "\\udc00"]]}',
            "character 0 of the text is half of a surrogate pair",
        ),
        ('{"text": "a\\u0000", "label": []}', "character 1 of the text is a zero byte"),
        ('{"text": "a", "label": [', "the line is not JSON"),
        ('["a"]', "expected an object with a text and its spans"),
        ("null", "expected an object with a text and its spans"),
        ("{}", "the record has no text (its keys: none); set corpus.columns.text"),
        ('{"txt": "a", "label": []}', "the record has no text (its keys: txt, label)"),
        ("[" * 100_000, "the line is not read: its brackets are nested too deep"),
    ],
)
def test_lines_that_cannot_be_read_are_named(tmp_path, line, message):
    assert f"train.jsonl:2: {message}" in refusal(tmp_path, {"text": "a", "label": []}, line)


def test_bytes_that_are_no_text_are_named(tmp_path):
    for lines, message in (
        (b'{"text": "a", "label": []}\n{"text": "\xe9", "label": []}\n', ":2: byte 0xe9 is not utf-8"),
        (b'{"text": "a", "label": []}\n{"text": "\0", "label": []}\n', ":2: a zero byte is inside the line"),
        (b'[\n{"text": "\xe9", "label": []}\n]\n', ":2: byte 0xe9 is not utf-8"),
    ):
        (tmp_path / "t.json").write_bytes(lines)
        with pytest.raises(CorpusError) as refused:
            read(config(tmp_path, "t.json"))
        assert f"t.json{message}" in str(refused.value)


def test_the_item_of_an_array_is_named_with_its_line(tmp_path):
    text = json.dumps([{"text": "a", "label": []}, {"text": "b", "label": [[0, 5, "X"]]}], indent=1)
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(CorpusError) as refused:
        read(config(tmp_path, "t.json"))
    line = 1 + text[: text.index('"b"')].count("\n") - 1
    assert f"t.json:{line}: item 2: the span [0, 5] X ends behind the text" in str(refused.value)
    for broken, message in (
        (
            '[{"text": "a", "label": []},\n{"text": "b"',
            ":2: item 2: the file ends inside of what begins here",
        ),
        ('[{"text": "a", "label": []},\nnull]', ":2: item 2: expected an object, got 'null'"),
        ('[{"text": "a", "label": []}]\n{}', ":2: item 2: expected an object, got '{}'"),
        ('[{"text": "a" "label": []}]', ":1: item 1: what begins here is not JSON"),
    ):
        (tmp_path / "t.json").write_text(broken)
        with pytest.raises(CorpusError) as refused:
            read(config(tmp_path, "t.json"))
        assert f"t.json{message}" in str(refused.value)


def test_offsets_of_code_units_and_bytes_are_noticed_and_read(tmp_path):
    text = "💩 é Ada"
    ways = {"characters": (4, 7), "utf-16": (5, 8), "utf-8": (8, 11)}
    for offsets, (start, end) in ways.items():
        record = {"text": text, "spans": [{"start": start, "end": end, "label": "PER", "text": "Ada"}]}
        (sentence,) = sentences(tmp_path, record, offsets=offsets)
        assert sentence.tags == ["O", "O", "B-PER"]
        expected = {} if offsets == "characters" else {"offsets": offsets}
        assert detect_format(Storage(str(tmp_path)), "train.jsonl").settings == expected
        if expected:
            message = refusal(tmp_path, record)
            assert f"set corpus.offsets: {offsets}" in message
    inside = {"text": text, "label": [[1, 3, "A"]]}
    assert "offset 1 is inside of a character, counted in utf-16" in refusal(
        tmp_path, inside, offsets="utf-16"
    )
    beyond = {"text": text, "label": [[5, 9, "PER"]]}
    assert "the span [5, 9] PER ends behind the text" in refusal(tmp_path, beyond, offsets="utf-16")
    behind = {"text": "💩 Ada", "label": [[3, 6, "PER"]]}
    assert "where offsets count units of UTF-16, set corpus.offsets: utf-16" in refusal(tmp_path, behind)


def test_ends_that_count_are_noticed_and_read(tmp_path):
    record = {"text": TEXT, "spans": [{"start": 0, "end": 2, "label": "PER", "text": "Ada"}]}
    assert tags_of(tmp_path, record, ends="inclusive") == [["B-PER", "O", "O", "O"]]
    assert detect_format(Storage(str(tmp_path)), "train.jsonl").settings == {"ends": "inclusive"}
    assert "says 'Ada', and the text has 'Ad' there" in refusal(tmp_path, record)
    from_one = {"text": TEXT, "spans": [{"start": 14, "end": 20, "label": "LOC", "text": "London"}]}
    assert "behind the text" in refusal(tmp_path, from_one)
    exclusive = {"text": TEXT, "spans": [{"start": 0, "end": 3, "label": "PER", "text": "Bob"}]}
    assert "correct the offsets, or the text" in refusal(tmp_path, exclusive)
    folded = {"text": "New\nYork", "spans": [{"start": 0, "end": 8, "label": "LOC", "text": "New\\nYork"}]}
    assert tags_of(tmp_path, folded) == [["B-LOC", "I-LOC"]], "as Label Studio writes line ends"


def test_what_annotators_did_not_accept_is_left_out_and_counted(tmp_path):
    records = [
        {"text": "a", "spans": [], "answer": "reject"},
        {"text": "b", "spans": [], "answer": "ignore"},
        {"text": "c", "answer": "accept"},
        {"text": "d"},
        {"text": "e", "label": None, "predictions": [[0, 1, "A"]]},
        {"text": "f", "label": []},
        {"text": " ", "label": []},
        label_studio(annotation(was_cancelled=True)),
        label_studio(),
    ]
    counts, tags = notes(tmp_path, *records)
    assert tags == [["O"], ["O"]], "c and f"
    assert {note: count for note, (count, _) in counts.items()} == {"rejected": 3, "bare": 3, "wordless": 1}
    assert counts["rejected"][1] == "f:1: answer reject"


def test_texts_that_nobody_annotated_may_be_unlabelled_text(tmp_path):
    lines = [json.dumps(record) for record in ({"text": "a b", "label": []}, {"text": "c d"}, {"text": "e"})]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    for part in ("dev", "test"):
        (tmp_path / f"{part}.jsonl").write_text(json.dumps({"text": part, "label": [[0, 3, "X"]]}))
    parts = {part: f"{part}.jsonl" for part in ("dev", "test")}
    source_config = SpanSource(
        source="spans", root=str(tmp_path), languages=("en",), train="t.jsonl", unlabelled="t.jsonl", **parts
    )
    corpus = read_corpus(source_config)
    assert corpus.parts["train"]["tokens"].to_pylist() == [["a", "b"]]
    assert corpus.parts["unlabelled"]["tokens"].to_pylist() == [["c", "d"], ["e"]]
    assert corpus.parts["unlabelled"]["text"].to_pylist() == ["c d", "e"]
    (warning,) = [message for message in corpus.report.warnings() if "no annotations" in message]
    assert warning.startswith("2 records of train en have no annotations and were left out")
    assert f"for example {tmp_path}/t.jsonl:2: 'c d'" in warning


def test_marks_inside_of_texts_count_as_places_do(tmp_path):
    lines = [json.dumps({"text": "x\ufeffy in Charles", "label": [[7, 14, "PER"]]}, ensure_ascii=False)] * 3
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    parts = dict.fromkeys(("train", "dev", "test"), "t.jsonl")
    source_config = SpanSource(
        source="spans", root=str(tmp_path), languages=("en",), duplicates="keep", overlaps="keep", **parts
    )
    corpus = read_corpus(source_config)
    tags = corpus.tag_set.decode(corpus.parts["test"]["tags"].to_pylist()[0])
    words = corpus.parts["test"]["tokens"].to_pylist()[0]
    assert words[tags.index("S-PER")] == "Charles"


DOCUMENT = "Ada Lovelace met Mr. Babbage.  He was in London!\n\nShe wrote. A note"


def test_documents_are_split_into_sentences_with_their_spans(tmp_path):
    spans = [[0, 12, "PER"], [17, 28, "PER"], [41, 47, "LOC"], [54, 67, "WORK"]]
    split = sentences(tmp_path, {"text": DOCUMENT, "label": spans}, form="documents")
    tagged_words = [
        [(word, tag) for word, tag in zip(s.tokens, s.tags, strict=True) if tag != "O"] for s in split
    ]
    assert tagged_words == [
        [("Ada", "B-PER"), ("Lovelace", "I-PER"), ("Mr", "B-PER"), (".", "I-PER"), ("Babbage", "I-PER")],
        [("London", "B-LOC")],
        [("wrote", "B-WORK"), (".", "I-WORK"), ("A", "I-WORK"), ("note", "I-WORK")],
    ], "no sentence ends inside of a span"
    for sentence in split:
        assert [sentence.text[start:end] for start, end in sentence.offsets] == sentence.tokens
    assert " ".join(sentence.text for sentence in split).split() == DOCUMENT.split()
    (whole,) = sentences(tmp_path, {"text": DOCUMENT, "label": spans})
    assert [*whole.tokens] == [word for sentence in split for word in sentence.tokens]
    assert [*whole.tags] == [tag for sentence in split for tag in sentence.tags]


def test_long_texts_are_doubted(tmp_path):
    for words, count in ((60, 0), (110, 1)):
        record = {"text": "Ada " * words, "label": [[0, 3, "PER"]]}
        (tmp_path / "train.jsonl").write_text(json.dumps(record))
        doubts = detect_format(Storage(str(tmp_path)), "train.jsonl").doubts
        assert len([doubt for doubt in doubts if "form: documents" in doubt]) == count


def test_several_annotations_of_one_text(tmp_path):
    task = label_studio(annotation(NAMES[:1], created_at="2022"), annotation(NAMES[1:], created_at="2021"))
    assert "the task has 2 annotations that differ; mark one as ground truth" in refusal(tmp_path, task)
    assert tags_of(tmp_path, task, several="first") == [["O", "O", "O", "B-LOC"]]
    assert tags_of(tmp_path, task, several="last") == [["B-PER", "O", "O", "O"]]
    both = label_studio(
        {"result": [*annotation(NAMES[:1], "ner")["result"], *annotation(NAMES, "pos")["result"]]}
    )
    assert "set corpus.columns.spans to one of them (ner, pos)" in refusal(tmp_path, both)
    assert tags_of(tmp_path, both, columns={"spans": "ner"}) == [["B-PER", "O", "O", "O"]]


def test_keys_may_be_named(tmp_path):
    record = {"body": TEXT, "names": NAMES, "text": "other", "label": [[0, 1, "X"]]}
    assert tags_of(tmp_path, record, columns={"text": "body", "spans": "names"}) == [TAGS]
    sections = {"text": TEXT, "label": [], "sections": as_objects(label="type")}
    assert tags_of(tmp_path, sections) == [["O"] * 4], "a usual name comes first, also where it has no span"
    only = {"id": 1, "annotations": [{"text": "Ada", "start": 0, "end": 3, "label": "PER"}]}
    assert "the record has no text (its keys: id, annotations)" in refusal(tmp_path, only)
    two = {"text": TEXT, "spans": NAMES, "label": NAMES[:1]}
    assert "'spans' and 'label' have spans; set corpus.columns.spans" in refusal(tmp_path, two)
    assert tags_of(tmp_path, two, columns={"spans": "label"}) == [["B-PER", "O", "O", "O"]]
    assert "no text under 'txt'" in refusal(tmp_path, record, columns={"text": "txt"})


words = st.sampled_from(["Ada", "don't", "x", ",", "3.5", "𝒜b", "東京", "né́e"])
separators = st.sampled_from([" ", "  ", "", "\n"])


@st.composite
def spans_of_texts(draw):
    text = "".join(draw(words) + draw(separators) for _ in range(draw(st.integers(1, 5))))
    ends = st.integers(0, len(text))
    pairs = draw(st.lists(st.tuples(ends, ends, st.sampled_from("AB")), max_size=4))
    return text, [CharacterSpan(*sorted(pair[:2]), pair[2]) for pair in pairs if pair[0] != pair[1]]


@settings(deadline=None)
@given(spans_of_texts())
def test_words_of_a_span_are_those_that_share_a_character_with_it(case):
    """Against enumeration of characters."""
    text, spans = case
    places = word_places(text)
    inside = {
        span: [word for word, (start, end) in enumerate(places) if {*range(start, end)} & {*range(*span[:2])}]
        for span in spans
    }
    if not all(inside.values()):
        with pytest.raises(SpanError, match="has no word in it"):
            align(text, places, spans)
        return
    same = {(tuple(span_words), span.label) for span, span_words in inside.items()}
    clash = any(first != second and {*first[0]} & {*second[0]} for first, second in product(same, same))
    if clash:
        with pytest.raises(SpanError, match=r"overlap|in one word"):
            align(text, places, spans)
    aligned = align(text, places, spans, keep_outermost=True)
    read_back = {(tuple(range(start, end)), kind) for start, end, kind in read_spans(aligned.tags)}
    assert read_back <= same
    assert not clash or aligned.inner
    for span, span_words in inside.items():
        # Each span is read, or one that is at least as long stands in its place.
        longer = [
            candidate for candidate in inside if candidate.end - candidate.start >= span.end - span.start
        ]
        span_kept = {
            word
            for candidate in longer
            for word in inside[candidate]
            if (tuple(inside[candidate]), candidate.label) in read_back
        }
        assert (tuple(span_words), span.label) in read_back or {*span_words} & span_kept
    cut = {
        span for span, span_words in inside.items()
        if {*range(places[span_words[0]][0], places[span_words[-1]][1])} - {*range(*span[:2])}
    }  # fmt: skip
    assert {*aligned.widened} == cut
    if not clash:
        assert read_back == same
        assert align(text, places, spans) == aligned


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
objects = st.lists(st.dictionaries(st.text(max_size=4), values, max_size=3), min_size=1, max_size=5)


@settings(deadline=None)
@given(objects, st.sampled_from([None, 0, 2]), st.booleans(), st.booleans())
def test_the_values_of_a_file_however_it_is_laid_out(records, indent, array, plain):
    # A first line that is whole says that every line is.
    assume(array or indent is None or records[0])
    dumped = [json.dumps(record, indent=indent, ensure_ascii=plain) for record in records]
    text = json.dumps(records, indent=indent, ensure_ascii=plain) if array else "\n".join(dumped)
    items = list(read_items(text.split("\n"), "f", "en"))
    assert [item.value for item in items] == records
    heights = [0, *accumulate(lines.count("\n") + 1 for lines in dumped)]
    if array:
        assert [item.number for item in items] == [*range(1, len(records) + 1)]
        assert [item.line for item in items] == (
            [1] * len(items) if indent is None else [2 + height for height in heights[:-1]]
        )
    else:
        assert [(item.number, item.line) for item in items] == [(None, 1 + height) for height in heights[:-1]]


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damaged_files_end_in_a_sentence(data):
    """Random cuts and insertions in a file."""
    shape = data.draw(st.sampled_from([*SHAPES.values()]))
    text = json.dumps(
        data.draw(st.sampled_from([shape, [shape], [shape, shape]])),
        indent=data.draw(st.sampled_from([None, 1])),
    )
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    inserted = data.draw(
        st.text(max_size=5)
        | st.sampled_from(["null", "NaN", "1e9", '"', "[", "}", "-1", "{}", "[]", "\\ud800"])
    )
    text = text[:start] + inserted + text[end:]
    source_config = SpanSource(source="spans", languages=("en",), train="f", split=SPLIT, nested="outermost")
    for item in parse(source_config, text.split("\n"), file="f", language="en", part="train"):
        if isinstance(item, Faulty):
            assert all(fault.line and fault.problem and fault.hint for fault in item.faults)
        elif hasattr(item, "tokens"):
            assert len(item.tokens) == len(item.tags) > 0
            assert [item.text[start:end] for start, end in item.offsets] == item.tokens


def corpus_files(folder, sizes):
    """Write files of doccano with names where the tags say; the second text of each part has a name that is cut."""
    people, places = ("Ada", "Bo Li", "Cy", "Dora Smith"), ("London", "New York", "Rome")
    for part, size in sizes.items():
        lines = []
        for number in range(size):
            person, city = people[number % 4], places[number % 3]
            text = f"{person} lives in {city}, {part} {number}"
            start = text.index(city)
            spans = [[0, len(person), "PER"], [start, start + len(city) - (number == 1), "LOC"]]
            lines.append(json.dumps({"id": number, "text": text, "label": spans}))
        (folder / f"{part}.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "en").mkdir()
    corpus_files(tmp_path / "en", {"train": 24, "dev": 8, "test": 8})
    return tmp_path


def test_init_finds_them_and_show_counts_what_was_changed(folder):
    detected = detect(str(folder))
    assert detected.settings["source"] == "spans"
    corpus = read_corpus(detected.config)
    assert corpus.report.schemes == {"en": "iob2"}
    assert corpus.labels == ("LOC", "PER")
    (folder / "sweep.yaml").write_text(json.dumps({"task": "ner", "corpus": detected.settings}))
    output = corpus_command("show", folder / "sweep.yaml").output
    assert "1 span of train en cuts a word and was extended to whole words" in output
    assert "train.jsonl:2: 'New Yor' [15, 22] LOC is read as 'New York'" in output


def test_raw_text_and_offsets_are_stored_and_other_corpora_have_none(folder):
    corpus = read_corpus(detect(str(folder)).config)
    store = Storage(str(folder / "store"))
    opened = open_corpus(store, write_corpus(corpus, store))
    for part in ("train", "dev", "test"):
        for row in opened.parts[part].to_pylist():
            places = zip(row["offsets"][::2], row["offsets"][1::2], strict=True)
            assert [row["text"][start:end] for start, end in places] == row["tokens"]
    assert opened.report.notes == corpus.report.notes
    assert opened.select_languages(["en"]).parts["dev"].column_names == opened.parts["dev"].column_names
    plain = folder / "plain" / "en"
    plain.mkdir(parents=True)
    for part in ("train", "dev", "test"):
        (plain / f"{part}.conll").write_text(conll_text(corpus.parts[part], corpus.tag_set))
    columns = read_corpus(detect(str(folder / "plain")).config)
    assert columns.parts["train"].column_names == ["tokens", "tags", "language"]
    assert columns.parts["train"].select(["tokens", "tags"]) == corpus.parts["train"].select(
        ["tokens", "tags"]
    )
    assert corpus_id(columns) != corpus_id(corpus), "the text is content"


def test_a_labelled_file_is_read_as_training_reads_it(folder):
    corpus = read_corpus(detect(str(folder)).config)
    file = LabelledFile(str(folder / "en" / "test.jsonl"), ("en",))
    text = read_labelled([file], unit="word", scheme="iob2")
    assert text.sentences == corpus.parts["test"]["tokens"].to_pylist()
    assert text.labels == [corpus.tag_set.decode(tags) for tags in corpus.parts["test"]["tags"].to_pylist()]
    assert text.origins[1] == (file.name, 2)
    assert text.notes == ["1 span cuts a word and was extended to whole words"]
    refused = [json.dumps({"text": "Rome", "label": [[0, 4, "A"], [0, 4, "B"]]})]
    (folder / "x.jsonl").write_text("\n".join(refused))
    nested = LabelledFile(str(folder / "x.jsonl"), ("en",))
    with pytest.raises(CorpusError, match="overlap"):
        read_labelled([nested], unit="word")
    assert read_labelled([nested], unit="word", overrides=["corpus.nested=outermost"]).labels == [["S-A"]]


def test_the_score_of_a_run_is_that_of_its_export_on_the_file(folder, capsys):
    """From the files to a trained student, its export, and `raykd evaluate` on the same test file."""
    run_recipe = recipe(
        corpus={**detect(str(folder)).settings, "languages": ("en",), "unlabelled": None}, objective={"kind": "gold"},
        schedule={"epochs": 10}, training={"batch_tokens": 40, "learning_rate": 2e-2, "dropout": 0.0},
    )  # fmt: skip
    ready = prepare(run_recipe, Storage(str(folder / "store")))
    run = student_of(ready, run_recipe)
    executed(ready, run)
    trained = ready.storage.child(*run.folder)
    export_run(trained, Storage(str(folder / "student")), store=ready.storage)
    call("evaluate", str(folder / "student"), f"en={folder / 'en' / 'test.jsonl'}", "--json")
    figures = json.loads(capsys.readouterr().out)
    score = trained.read_json(RESULT, RunResult.from_plain).scores.get("test")
    assert score.mean > 0, "a student that finds nothing would prove nothing"
    assert figures["exports"][0]["mean"] == score.mean
    assert figures["sentences"] == 8
