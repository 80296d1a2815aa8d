"""The notations of tags in files."""

from __future__ import annotations

import json

import pytest
from pydantic import TypeAdapter

from raykd.corpora import CorpusConfig, read_corpus
from raykd.corpora.describe import describe_corpus
from raykd.corpora.detect import detect
from raykd.corpora.faults import MANY_WORDS, MOST_WORDS
from raykd.corpora.labelled_files import LabelledFile, read_labelled
from raykd.corpora.preview import preview
from raykd.corpora.report import CorpusReport
from raykd.errors import CorpusError
from raykd.forms.tag_schemes import from_bioes, to_bioes
from raykd.tasks import TASKS

CONFIG = TypeAdapter(CorpusConfig)
SENTENCES = [
    ["Ada B-PER", "Mary I-PER", "King I-PER", "lives O", "in O", "old O", "London B-LOC"],
    ["Berlin B-LOC", "Paris B-LOC", "are O", "both O", "big O", "and O", "old O"],
    ["Eva B-PER", "King I-PER", "was O", "there O", "with O", "them O", "too O"],
]
LABELS = {"LOC": 12, "PER": 8}


def text(*, scheme="iob2", tag=lambda tag: tag, part="", copies=4, more=""):
    """Return sentences, all different, in a scheme and a spelling; then `more`, with the part for PART."""
    blocks = []
    for copy in range(copies):
        for sentence in SENTENCES:
            words, tags = zip(*(row.split() for row in sentence), strict=True)
            written = from_bioes(to_bioes(tags, "iob2")[0], scheme)
            rows = zip(words, written, strict=True)
            blocks.append("".join(f"{word}{copy}{part}\t{tag(word_tag)}\n" for word, word_tag in rows))
    return "\n".join(blocks) + "\n" + more.replace("PART", part)


def settings(root, **more):
    parts = {part: f"{part}.conll" for part in ("train", "dev", "test")}
    return {"source": "conll", "root": str(root), "languages": ["en"]} | parts | more


def config(root, **more):
    return CONFIG.validate_json(json.dumps(settings(root, **more)))


def corpus(root, *, more="", config_more=None, **spelled):
    for part in ("train", "dev", "test"):
        (root / f"{part}.conll").write_text(text(part=part, more=more, **spelled), encoding="utf-8")
    return read_corpus(config(root, **(config_more or {})))


def labels(corpus, part="train"):
    return next(row["labels"] for row in describe_corpus(corpus)["parts"] if row["part"] == part)


def lower(tag):
    return tag.lower() if tag == "O" else f"{tag[0].lower()}{tag[1:]}"


SPELLINGS = {
    "BMES": ({"scheme": "bmes"}, "bmes", []),
    "BMEWO": ({"scheme": "bmewo"}, "bmewo", []),
    "BIOUL": ({"scheme": "bilou"}, "bilou", []),
    "IOBES": ({"scheme": "bioes"}, "bioes", []),
    "IOE1": ({"scheme": "ioe1"}, "ioe1", []),
    "IOE2": ({"scheme": "ioe2"}, "ioe2", []),
    "B_PER": ({"tag": lambda tag: tag.replace("-", "_")}, "iob2", ["tags as B_PER are read as B-PER"]),
    "B/PER": ({"tag": lambda tag: tag.replace("-", "/")}, "iob2", ["tags as B/PER are read as B-PER"]),
    "PER-B": (
        {"tag": lambda tag: "-".join(reversed(tag.split("-")))}, "iob2", ["tags as PER-B are read as B-PER"]
    ),
    "small letters": ({"tag": lower}, "iob2", ["tags as b-per are read as B-per, o is read as O"]),
    "small letters, BIOUL": (
        {"tag": lower, "scheme": "bilou"}, "bilou", ["tags as b-per are read as B-per, o is read as O"]
    ),
    "0": ({"tag": lambda tag: "0" if tag == "O" else tag}, "iob2", ["0 is read as O"]),
    "spaces": ({"tag": lambda tag: f" {tag} "}, "iob2", ["white space around tags is left out"]),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_read_alike_by_all_who_read_it(tmp_path, spelling):
    spelled, scheme, notes = SPELLINGS[spelling]
    read = corpus(tmp_path, **spelled)
    if spelling == "IOE1":  # touching spans of one type are the mark of it
        assert read.report.schemes == {"en": "ioe1"}
    assert read.report.schemes == {"en": scheme}
    assert not any(read.report.repairs.values())
    assert labels(read) == labels(read, "test") == LABELS
    assert read.report.describe_tags() == [f"scheme: {scheme}", *(f"tags of en: {note}" for note in notes)]
    # In a sweep file, by init, and by evaluate.
    assert labels(read_corpus(config(tmp_path, scheme=scheme))) == LABELS
    assert labels(read_corpus(detect(str(tmp_path)).config)) == LABELS
    labelled = read_labelled([LabelledFile(str(tmp_path / "test.conll"), ("en",))], unit="word")
    assert sum(tag[0] in "BS" for tags in labelled.labels for tag in tags) == sum(LABELS.values())
    assert all(any(note in line for line in labelled.read_as) for note in notes)
    assert preview(config(tmp_path)).notes == ()


def test_letters_alone_are_spans_of_one_type(tmp_path):
    read = corpus(tmp_path, tag=lambda tag: tag[0])
    assert labels(read) == {"SPAN": 20}
    assert read.report.describe_tags()[1] == "tags of en: tags as B are read as B-SPAN"
    assert labels(read_corpus(detect(str(tmp_path)).config)) == {"SPAN": 20}


def test_bare_types_need_a_scheme_and_a_sentence_says_which(tmp_path):
    read = corpus(tmp_path, tag=lambda tag: tag.split("-")[-1])
    assert read.tag_set.form.scheme == "flat"
    with pytest.raises(
        CorpusError, match=r"set corpus\.scheme: io if each word of a span has its type"
    ) as refused:
        TASKS["ner"].check(read, "sweep.yaml")
    assert "(O, LOC, PER)" in refused.value.problem
    # Berlin and Paris touch: without letters they are one span.
    assert labels(read_corpus(config(tmp_path, scheme="io"))) == {"LOC": 8, "PER": 8}
    assert labels(read_corpus(detect(str(tmp_path)).config)) == {"LOC": 8, "PER": 8}


@pytest.mark.parametrize("tag", [lambda tag: tag, lambda tag: tag.replace("-", "_"), lambda tag: tag[0]])
def test_scheme_io_takes_no_letters_for_types(tmp_path, tag):
    with pytest.raises(
        CorpusError, match=r"train.conll:1: scheme io would read the tag .*; remove corpus.scheme"
    ):
        corpus(tmp_path, tag=tag, config_more={"scheme": "io"})


def test_a_scheme_that_does_not_fit_names_the_one_that_does(tmp_path):
    with pytest.raises(CorpusError) as refused:
        corpus(tmp_path, scheme="bmes", config_more={"scheme": "iob2"})
    assert "train.conll:1: tag 'E-LOC' is not of scheme iob2" in str(refused.value) or "tag 'M-PER'" in str(
        refused.value
    )
    assert "set corpus.scheme (language 'en') to bmes" in str(refused.value)
    with pytest.raises(CorpusError) as refused:
        corpus(tmp_path, more="xPART\tPER\n", config_more={"scheme": "iob2"})
    assert refused.value.hint == "correct the tag"


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("xPART\tPER-B\n", "others are not (PER-B)"),
        ("xPART\tb-PER\n", "others are not (b-PER)"),
        ("xPART\t0\n", "others are not (0)"),
        ("xPART\tM-PER\ny\tU-PER\n", "others are not (M-PER)"),
    ],
)
def test_a_tag_of_another_form_is_named_with_its_line(tmp_path, more, problem):
    with pytest.raises(CorpusError) as refused:
        corpus(tmp_path, more=more)
    assert problem in refused.value.problem
    assert (refused.value.file, refused.value.line) == (str(tmp_path / "train.conll"), 97)


def test_a_tag_of_another_spelling_is_named_with_its_line(tmp_path):
    def under(tag):
        return tag.replace("-", "_")

    with pytest.raises(
        CorpusError, match=r"train.conll:961: tag 'B-PER' is spelled differently from the others \(B_PER, O\)"
    ):
        corpus(tmp_path, tag=under, copies=40, more="xPART\tB-PER\n")
    skipped = read_corpus(config(tmp_path, on_error="skip"))
    assert skipped.report.skipped == {part: {"en": 1} for part in ("train", "dev", "test")}
    assert labels(skipped) == {"LOC": 120, "PER": 80}


def test_languages_may_be_written_in_several_ways(tmp_path):
    for language, spelled in (("zh", {"scheme": "bmes"}), ("en", {"tag": lambda tag: tag.replace("-", "_")})):
        for part in ("train", "dev", "test"):
            (tmp_path / f"{language}.{part}").write_text(
                text(part=part + language, **spelled), encoding="utf-8"
            )
    parts = {part: f"{{lang}}.{part}" for part in ("train", "dev", "test")}
    read = read_corpus(config(tmp_path, languages=["zh", "en"], **parts))
    assert read.report.schemes == {"zh": "bmes", "en": "iob2"}
    assert read.report.describe_tags() == [
        "scheme: zh bmes, en iob2", "tags of en: tags as B_PER are read as B-PER"
    ]  # fmt: skip
    assert [row["labels"] for row in describe_corpus(read)["parts"]] == [LABELS] * 6
    assert read.report.restricted(["zh"]).describe_tags() == ["scheme: bmes"]


def test_types_that_differ_by_capital_letters_alone_are_reported(tmp_path):
    read = corpus(tmp_path, more="xPART\tB-per\n")
    assert (
        "labels 'PER', 'per' differ by capital letters alone, and count as 2 labels" in read.report.warnings()
    )
    assert (
        CorpusReport.from_plain(json.loads(json.dumps(read.report.to_plain()))).warnings()
        == read.report.warnings()
    )


def test_types_stay_as_they_are_written(tmp_path):
    for part in ("train", "dev", "test"):
        rows = ["Ada\tB-Per-son_Name", "King \tI-Per-son_Name ", f"in{part}\tO", "London\tB-Geo Location"]
        (tmp_path / f"{part}.conll").write_text("\n".join(rows) + "\n", encoding="utf-8")
    read = read_corpus(config(tmp_path))
    assert labels(read) == {"Geo Location": 1, "Per-son_Name": 1}
    assert read.parts["train"]["tokens"].to_pylist() == [["Ada", "King", "intrain", "London"]]


NESTED = "thePART\tB-ORG\nBank\tI-ORG\nof\tI-ORG\nNew\tI-ORG|B-LOC\nYork\tI-ORG|I-LOC\n\n"


@pytest.mark.parametrize("under", [False, True])
def test_nested_labels_are_refused_unless_the_outermost_is_asked_for(tmp_path, under):
    tag = (lambda tag: tag.replace("-", "_")) if under else (lambda tag: tag)
    more = tag(NESTED)
    with pytest.raises(CorpusError) as refused:
        corpus(tmp_path, tag=tag, more=more)
    assert refused.value.line == 97
    assert refused.value.problem.startswith(
        f"a word is in spans that are inside each other (tag '{tag('I-ORG|B-LOC')}')"
    )
    assert refused.value.hint.startswith("set corpus.nested: outermost")
    assert "on_error" not in str(refused.value)
    read = read_corpus(config(tmp_path, nested="outermost"))
    assert labels(read) == LABELS | {"ORG": 1}
    assert read.report.notes["inner"] == {part: {"en": 1} for part in ("train", "dev", "test")}
    warning = next(message for message in read.report.warnings() if "overlaps a longer one" in message)
    assert warning == (
        "1 span of train en overlaps a longer one and was left out (nested: outermost), for example "
        f"{tmp_path}/train.conll:97"
    )
    overrides = ["corpus.nested=outermost"]
    labelled = read_labelled(
        [LabelledFile(str(tmp_path / "test.conll"), ("en",))], unit="word", overrides=overrides
    )
    assert "1 span overlaps a longer one and was left out (nested: outermost)" in labelled.read_as


@pytest.mark.parametrize("scheme", ["auto", "iob2"])
def test_beside_nested_labels_a_tag_of_another_form_is_named_with_its_line(tmp_path, scheme):
    more = f"{NESTED}xPART\tPER\n"
    with pytest.raises(CorpusError, match=r"train.conll:103: tag 'PER' is not of scheme iob2"):
        corpus(tmp_path, more=more, config_more={"nested": "outermost", "scheme": scheme})


def test_no_more_than_the_share_that_is_allowed_is_left_out(tmp_path):
    more = "xPART\tPER\n\n"
    skip = {"on_error": "skip"}
    with pytest.raises(CorpusError) as refused:
        corpus(tmp_path, copies=4, more=more, config_more=skip)
    assert refused.value.line == 97
    assert (
        "1 sentence of train en with faults would be left out (7.69 % of 13), and at most 1 % may be"
        in str(refused.value)
    )
    assert refused.value.hint == "correct the files, or allow it: set corpus.most_skipped: 0.08"
    allowed = read_corpus(config(tmp_path, **skip, most_skipped=0.08))
    assert allowed.report.skipped == {part: {"en": 1} for part in ("train", "dev", "test")}
    assert corpus(tmp_path, copies=40, more=more, config_more=skip).report.skipped["train"] == {"en": 1}
    files = [LabelledFile(str(tmp_path / "test.conll"), ("en",))]
    assert read_labelled(files, unit="word", overrides=["corpus.on_error=skip"]).skipped == 1
    with pytest.raises(CorpusError, match="1 sentence of train en with faults would be left out"):
        read_labelled(files, unit="word", overrides=["corpus.on_error=skip", "corpus.most_skipped=0.001"])


def test_nothing_but_o_is_refused(tmp_path):
    with pytest.raises(CorpusError, match=r"train.conll:1: train, dev and test have no tag but O, first"):
        corpus(tmp_path, tag=lambda tag: "O")


def test_a_part_without_a_span_is_reported(tmp_path):
    read = corpus(tmp_path)
    assert read.report.warnings() == []
    plain = "".join(f"w{number}\tO\n\n" for number in range(150))
    (tmp_path / "dev.conll").write_text(plain, encoding="utf-8")
    assert read_corpus(config(tmp_path)).report.warnings() == ["dev en has no span: its scores mean nothing"]
    assert preview(config(tmp_path)).notes == ("none of the first 100 sentences of dev en has a span",)
    (tmp_path / "train.conll").write_text(plain.replace("w", "v"), encoding="utf-8")
    warnings = read_corpus(config(tmp_path)).report.warnings()
    assert "train en has no span: a model learns nothing but O from its sentences" in warnings
    assert not any(
        "train" in message for message in read_corpus(config(tmp_path)).report.warnings(tags=False)
    )


def words(count, tag):
    return "".join(f"w{number}{tag}\n" for number in range(count))


def test_sentences_of_thousands_of_words_are_reported_or_refused(tmp_path):
    read = corpus(tmp_path, more=words(MANY_WORDS + 1, "\tO"))
    warning = next(
        message for message in read.report.warnings() if message.startswith("1 sentence of train en has more")
    )
    assert f"{tmp_path}/train.conll:97: 1,001 words" in warning
    assert warning in preview(config(tmp_path)).notes
    assert not [
        message
        for message in corpus(tmp_path, more=words(MANY_WORDS, "\tO")).report.warnings()
        if "more than" in message
    ]
    for reader in (read_corpus, preview):
        for part in ("train", "dev", "test"):
            (tmp_path / f"{part}.conll").write_text(
                text(part=part, more=words(MOST_WORDS + 1, "\tO")), encoding="utf-8"
            )
        with pytest.raises(CorpusError, match=r"train.conll:97: a sentence of 5,001 words") as refused:
            reader(config(tmp_path))
        assert "end each sentence with an empty line" in refused.value.hint


def test_long_texts_without_tags_and_of_one_class_are_no_fault(tmp_path):
    corpus(tmp_path)
    (tmp_path / "more").write_text("a " * (MOST_WORDS + 1), encoding="utf-8")
    read = read_corpus(config(tmp_path, unlabelled="more", unlabelled_form="sentences"))
    assert read.report.long["unlabelled"] == {"en": 1}
    for part in ("train", "dev", "test"):
        row = {"text": f"{part} " + "good " * (MOST_WORDS + 1), "label": "yes"}
        (tmp_path / f"{part}.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    parts = {part: f"{part}.jsonl" for part in ("train", "dev", "test")}
    texts = config(tmp_path, source="jsonl", scheme="flat", columns={"text": "text"}, **parts)
    assert read_corpus(texts).report.sentences["train"] == {"en": 1}
