"""JSON Lines: what is read, and which lines are refused."""

from __future__ import annotations

import json

import pytest

from raykd.corpora import read_corpus
from raykd.corpora.detect import detect
from raykd.corpora.faults import Faults
from raykd.corpora.jsonl import JsonlSource, read
from raykd.errors import CorpusError

WORDS = {"tokens": ["Anna", "lives"], "ner_tags": ["B-PER", "O"]}
SPLIT = {"train": 8, "dev": 1, "test": 1}


def sentences(folder, lines, languages=("en",), **settings):
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = JsonlSource(
        source="jsonl", root=str(folder), languages=languages, train="train.jsonl", split=SPLIT, **settings
    )
    return [sentence for _, sentence in Faults(config.on_error).sentences(read(config))]


def test_words_and_tags_of_several_languages(tmp_path):
    lines = [json.dumps({**WORDS, "lang": language, "id": 7}) for language in ("en", "de", "fr")]
    columns = {"token": "tokens", "tag": "ner_tags", "language": "lang"}
    read = sentences(tmp_path, [lines[0], "", *lines[1:]], ("de", "en"), columns=columns)
    assert [(sentence.language, sentence.tokens, sentence.tags) for sentence in read] == [
        ("en", ["Anna", "lives"], ["B-PER", "O"]),
        ("de", ["Anna", "lives"], ["B-PER", "O"]),
    ]


def test_a_text_and_its_class_which_may_be_a_number(tmp_path):
    columns = {"text": "text", "label": "stars"}
    (sentence,) = sentences(tmp_path, ['{"text": "schön  hier", "stars": 5}'], columns=columns, scheme="flat")
    assert (sentence.tokens, sentence.tags, sentence.unit) == (["schön", "hier"], ["5"], "sentence")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "train.jsonl:2: the line is not a JSON object"),
        ("{'a': 1}", "train.jsonl:2: the line is not a JSON object"),
        (
            '{"tokens": ["a"]}',
            "train.jsonl:2: there is no 'ner_tags' in the object; set corpus.columns (tokens)",
        ),
        (
            '{"tokens": "a b", "ner_tags": ["O"]}',
            """train.jsonl:2: 'tokens' has "a b" where a list is expected""",
        ),
        (
            '{"tokens": ["a", 1], "ner_tags": ["O", "O"]}',
            "train.jsonl:2: 'tokens' has 1 where a text is expected",
        ),
        (
            '{"tokens": ["a", null], "ner_tags": ["O", "O"]}',
            "train.jsonl:2: 'tokens' has null where a text is expected",
        ),
        (
            '{"tokens": ["a"], "ner_tags": [["O"]]}',
            """train.jsonl:2: 'ner_tags' has ["O"] where a label is expected""",
        ),
        ('{"tokens": ["a"], "ner_tags": [NaN]}', "train.jsonl:2: 'ner_tags' has nan, which is no label"),
        (
            '{"tokens": ["a"], "ner_tags": [1]}',
            "train.jsonl:2: 'ner_tags' is not of the type that it has in line 1",
        ),
        (
            r'{"tokens": ["\ud83d"], "ner_tags": ["O"]}',
            r"""train.jsonl:2: 'tokens' has half of a character ("\ud83d")""",
        ),
        (r'{"tokens": ["a\u0000b"], "ner_tags": ["O"]}', "train.jsonl:2: the line has a zero byte in a word"),
        ('{"tokens": [""], "ner_tags": ["O"]}', "train.jsonl:2: the line has an empty word"),
        ('{"tokens": ["a", "b"], "ner_tags": ["O"]}', "train.jsonl:2: the line has 2 words and 1 tag"),
        ('{"tokens": [], "ner_tags": ["O"]}', "train.jsonl:2: the line has tags and no words"),
        (
            '{"tokens": ["a"], "ner_tags": [null]}',
            "train.jsonl:2: 'ner_tags' has null where a label is expected",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path, line, message):
    with pytest.raises(CorpusError) as refused:
        sentences(tmp_path, [json.dumps(WORDS), line])
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"text": ["a b"], "label": "x"}',
            """train.jsonl:3: 'text' has ["a b"] where one text is expected""",
        ),
        (
            '{"text": "a b", "label": ["x", "y"]}',
            """train.jsonl:3: 'label' has ["x", "y"] where one is expected""",
        ),
        ('{"text": "a b", "label": []}', "train.jsonl:3: 'label' has [] where one is expected"),
        ('{"text": "a b", "label": NaN}', "train.jsonl:3: 'label' has nan, which is no label"),
        (
            r'{"text": "a \udc00", "label": "x"}',
            r"""train.jsonl:3: 'text' has half of a character ("\udc00")""",
        ),
        ('{"text": "a b", "label": 3}', "train.jsonl:3: 'label' is not of the type that it has in line 1"),
    ],
)
def test_a_text_that_cannot_be_read_is_named_by_its_line(tmp_path, line, message):
    columns = {"text": "text", "label": "label"}
    with pytest.raises(CorpusError) as refused:
        sentences(tmp_path, ['{"text": "a b", "label": "x"}', "", line], columns=columns, scheme="flat")
    assert message in str(refused.value)


def test_a_class_in_a_list_of_one_is_that_class(tmp_path):
    columns = {"text": "text", "label": "label"}
    lines = ['{"text": "a b", "label": ["x"], "other": NaN}', '{"text": "c d", "label": "y"}']
    read = sentences(tmp_path, lines, columns=columns, scheme="flat")
    assert [sentence.tags for sentence in read] == [["x"], ["y"]]


def test_init_sees_a_class_in_a_list_of_one_and_skips_a_line_that_is_broken(tmp_path):
    rows = [
        json.dumps({"text": f"a text of words {number}", "label": [("good", "bad")[number % 2]]})
        for number in range(60)
    ]
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.jsonl").write_text("\n".join([*rows, r'{"text": "x \ud800", "label": ["bad"]}']))
    detected = detect(str(tmp_path))
    assert detected.settings["columns"] == {"text": "text", "label": "label"}
    with pytest.raises(CorpusError, match=r"train.jsonl:61: 'text' has half of a character"):
        read_corpus(detected.config)


def test_init_does_not_take_several_classes_for_words(tmp_path):
    row = json.dumps({"text": "a text of words", "label": ["good", "long"]})
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.jsonl").write_text(f"{row}\n" * 9)
    with pytest.raises(CorpusError, match="label has several classes of one text: give every text one class"):
        detect(str(tmp_path))
    # Of words of another name each sentence has its own.
    for part in ("train", "dev", "test"):
        rows = [
            {"text": "it is x", "ws": ["it", "is", f"{part}{n}"], "ner": ["O", "O", "B-X"]} for n in range(9)
        ]
        (tmp_path / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert detect(str(tmp_path)).settings["columns"] == {"token": "ws", "tag": "ner"}


def test_values_of_several_types_after_an_empty_list_are_named(tmp_path):
    lines = [
        '{"tokens": [], "ner_tags": []}',
        '{"tokens": ["a"], "ner_tags": [1]}',
        '{"tokens": ["a"], "ner_tags": ["O"]}',
    ]
    with pytest.raises(CorpusError, match="jsonl:3: 'ner_tags' is not of the type that it has in line 2"):
        sentences(tmp_path, lines, tag_names=("O", "X"))
    with pytest.raises(CorpusError, match="jsonl:1: 'ner_tags' has several types"):
        sentences(tmp_path, ['{"tokens": ["a", "b"], "ner_tags": [1, "O"]}'])


def test_the_line_of_a_sentence_is_that_of_the_file(tmp_path):
    read = sentences(
        tmp_path,
        [json.dumps(WORDS), "", json.dumps({**WORDS, "tokens": [], "ner_tags": []}), json.dumps(WORDS)],
    )
    file = str(tmp_path / "train.jsonl")
    assert [sentence.origin for sentence in read] == [(file, 1), (file, 4)]


@pytest.mark.parametrize(
    ("number", "hint"), [(-100, "pieces of a tokenizer"), (-1, "label is missing"), (9, "tag_names")]
)
def test_a_tag_number_without_a_name_is_named_with_its_line(tmp_path, number, hint):
    lines = [{"tokens": ["a", "b"], "ner_tags": tags} for tags in ([1, 0], [0, number], [0, 0])]
    lines = [json.dumps(lines[0]), "", *map(json.dumps, lines[1:])]
    with pytest.raises(CorpusError) as refused:
        sentences(tmp_path, lines, tag_names=("O", "B-X"))
    assert f"train.jsonl:3: the line has a tag number outside 0 … 1: {number}" in str(refused.value)
    assert hint in refused.value.hint
    read = sentences(tmp_path, lines, tag_names=("O", "B-X"), on_error="skip")
    assert [(sentence.tags, sentence.origin[1]) for sentence in read] == [(["B-X", "O"], 1), (["O", "O"], 4)]


def test_lines_that_cannot_be_read_are_left_out_where_asked(tmp_path):
    lines = ["[1]", json.dumps(WORDS), '{"tokens": ["a"]}', "\x00", json.dumps(WORDS)]
    read = sentences(tmp_path, lines, on_error="skip", most_skipped=1)
    assert [sentence.tokens for sentence in read] == [["Anna", "lives"]] * 2
