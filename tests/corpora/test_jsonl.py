"""JSON Lines: what is read, and which lines are refused."""

from __future__ import annotations

import json

import pytest

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
    found = sentences(tmp_path, [lines[0], "", *lines[1:]], ("de", "en"), columns=columns)
    assert [(each.language, each.tokens, each.tags) for each in found] == [
        ("en", ["Anna", "lives"], ["B-PER", "O"]),
        ("de", ["Anna", "lives"], ["B-PER", "O"]),
    ]


def test_a_text_and_its_class_which_may_be_a_number(tmp_path):
    columns = {"text": "text", "label": "stars"}
    (found,) = sentences(tmp_path, ['{"text": "schön  hier", "stars": 5}'], columns=columns, scheme="flat")
    assert (found.tokens, found.tags, found.unit) == (["schön", "hier"], ["5"], "sentence")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "train.jsonl:2: the line is not a JSON object"),
        ("{'a': 1}", "train.jsonl:2: the line is not a JSON object"),
        (
            '{"tokens": ["a"]}',
            "train.jsonl:2: there is no 'ner_tags' in the object; set corpus.columns (tokens)",
        ),
        ('{"tokens": "a b", "ner_tags": ["O"]}', "the values of one key are of several types"),
        ('{"tokens": ["a", "b"], "ner_tags": ["O"]}', "train.jsonl:2: the line has 2 words and 1 tag"),
        ('{"tokens": [], "ner_tags": ["O"]}', "train.jsonl:2: the line has tags and no words"),
        ('{"tokens": ["a"], "ner_tags": [null]}', "train.jsonl:2: the line has a null; give every word"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path, line, message):
    with pytest.raises(CorpusError) as refused:
        sentences(tmp_path, [json.dumps(WORDS), line])
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("number", "hint"), [(-100, "pieces of a tokenizer"), (-1, "label is missing"), (9, "tag_names")]
)
def test_a_tag_number_without_a_name_is_named_with_its_line(tmp_path, number, hint):
    lines = [{"tokens": ["a", "b"], "ner_tags": own} for own in ([1, 0], [0, number], [0, 0])]
    lines = [json.dumps(lines[0]), "", *map(json.dumps, lines[1:])]
    with pytest.raises(CorpusError) as refused:
        sentences(tmp_path, lines, tag_names=("O", "B-X"))
    assert f"train.jsonl:3: the line has a tag number outside 0 … 1: {number}" in str(refused.value)
    assert hint in refused.value.hint
    kept = sentences(tmp_path, lines, tag_names=("O", "B-X"), on_error="skip")
    assert [(own.tags, own.origin[1]) for own in kept] == [(["B-X", "O"], 1), (["O", "O"], 4)]


def test_lines_that_cannot_be_read_are_left_out_where_asked(tmp_path):
    lines = ["[1]", json.dumps(WORDS), '{"tokens": ["a"]}', "\x00", json.dumps(WORDS)]
    found = sentences(tmp_path, lines, on_error="skip", most_skipped=1)
    assert [each.tokens for each in found] == [["Anna", "lives"]] * 2
