"""A corpus in a folder, in the shapes in which people have them: what is found, and that it can be read."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raykd.corpora import read_corpus
from raykd.corpora.detect import detect
from raykd.corpora.detect.file_names import read_names, reason_to_skip
from raykd.errors import CorpusError


def row(text):
    return text.split()


WORDS = row("Anna Berg lives in Rome and works for the United Nations there since last May")
IOB2 = row("B-PER I-PER O O B-LOC O O O O B-ORG I-ORG O O O O")
IOB1 = row("I-PER I-PER O O I-LOC O O O O I-ORG I-ORG O O O O")
IO = row("PER PER O O LOC O O O O ORG ORG O O O O")
BIOES = row("B-PER E-PER O O S-LOC O O O O B-ORG E-ORG O O O O")
UPOS = row("PROPN PROPN VERB ADP PROPN CCONJ VERB ADP DET PROPN PROPN ADV SCONJ ADJ PROPN")
CHUNKS = row("B-NP I-NP B-VP B-PP B-NP O B-VP B-PP B-NP I-NP I-NP B-ADVP B-PP B-NP I-NP")
PARTS = {"train": 30, "dev": 8, "test": 8}


def rows(tags, count, first=0):
    """Sentences that differ, as lists of (word, tag)."""
    for number in range(first, first + count):
        length = 6 + number % 10
        yield [
            (f"{word}{chr(97 + number % 26)}{chr(97 + number // 26)}", tag)
            for word, tag in list(zip(WORDS, tags, strict=True))[:length]
        ]


def conll(tags, count, first=0, *, separator="\t", index=None, before=(), after=()):
    blocks = []
    for sentence in rows(tags, count, first):
        lines = []
        for place, (word, tag) in enumerate(sentence):
            cells = [] if index is None else [str(place + index)]
            cells += [word, *(column[place] for column in before), tag, *(column[place] for column in after)]
            lines.append(separator.join(cells))
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def conllu(count, first=0):
    blocks = []
    for sentence in rows(UPOS, count, first):
        lines = ["# text = none"]
        for place, (word, tag) in enumerate(sentence, 1):
            head = ("1", "dep") if place > 1 else ("0", "root")
            lines.append("\t".join([str(place), word, "_", tag, "T", "_", *head, "_", "_"]))
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def texts(count, first=0):
    detected = []
    for number, sentence in enumerate(rows(IOB2, count, first)):
        detected.append((" ".join(word for word, _ in sentence), ("good", "bad", "mixed")[number % 3]))
    return detected


def tsv(count, first=0, header=""):
    return header + "".join(f"{text}\t{label}\n" for text, label in texts(count, first))


def comma_separated(count, first=0):
    lines = "".join(f'"{text},\nand ""more""",{label}\n' for text, label in texts(count, first))
    return f"sentence,label\n{lines}"


def pairs(count, first=0):
    rows = list(texts(count, first))
    lines = [
        f"{number}\t{text}\tAnd {other} too\t{label}\n"
        for number, ((text, label), (other, _)) in enumerate(zip(rows, rows[::-1], strict=True))
    ]
    return "id\tsentence_A\tsentence_B\tlabel\n" + "".join(lines)


def jsonl(count, first=0):
    return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in texts(count, first))


def json_pairs(count, first=0):
    rows = [*texts(count, first)]
    return "".join(
        json.dumps({"premise": text, "hypothesis": f"And {other} too", "label": label}) + "\n"
        for (text, label), (other, _) in zip(rows, rows[::-1], strict=True)
    )


INTENTS = ("fly", "fare#time")


def atis(count, first=0):
    lines = []
    for number, sentence in enumerate(rows(IOB2, count, first)):
        words, slots = zip(*sentence, strict=True)
        lines.append(f"BOS {' '.join(words)} EOS\tO {' '.join(slots)} {INTENTS[number % 2]}\n")
    return "".join(lines)


def xsid(count, first=0):
    blocks = []
    for number, sentence in enumerate(rows(IOB2, count, first)):
        lines = [f"# id: {number}"]
        lines += [
            f"{place}\t{word}\t{INTENTS[number % 2]}\t{slot}"
            for place, (word, slot) in enumerate(sentence, 1)
        ]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def multiatis(count, first=0):
    lines = ["id\tutterance\tslot_labels\tintent\n"]
    for number, sentence in enumerate(rows(IOB2, count, first)):
        words, slots = (" ".join(each) for each in zip(*sentence, strict=True))
        lines.append(f"{number}\t{words}\t{slots}\t{INTENTS[number % 2]}\n")
    return "".join(lines)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def parted(
    make, names=("{lang}/{part}.conll",), languages=("en", "de"), parts=("train", "dev", "test"), **options
):
    """Files of each language and part; no two have a sentence in common."""
    files, first = {}, 0
    for language in languages:
        for part, spelled in zip(PARTS, parts, strict=False):
            name = names[0].format(lang=language, part=spelled)
            files[name] = make(count=PARTS[part], first=first, **options)
            first += PARTS[part]
    return files


def of(tags):
    return lambda **options: conll(tags, **options)


CASES = {
    "folders of languages": (parted(of(IOB2)), {"train": "{lang}/train.conll", "dev": "{lang}/dev.conll"}),
    "language in the ending": (
        parted(of(IOB2), ["{part}.{lang}.txt"]),
        {"train": "train.{lang}.txt", "languages": ["de", "en"]},
    ),
    "conll-2003": (
        parted(of(IOB1), ["{lang}.{part}"], ["eng", "deu"], ["train", "testa", "testb"], separator=" ",
               before=[UPOS, CHUNKS]),
        {"dev": "{lang}.testa", "test": "{lang}.testb", "columns": {"token": 0, "tag": 3}, "separator": "space",
         "languages": ["deu", "eng"]},
    ),
    "document starts behind an index": (
        {name: f"0\t-DOCSTART-\tO\n\n{text}" for name, text in parted(of(IOB2), index=0).items()},
        {"columns": {"token": 1, "tag": 2}},
    ),
    "universal ner": (
        parted(of(IOB2), ["{lang}_x-ud-{part}.iob2"], index=1, after=[["_"] * 15, ["me"] * 15]),
        {"train": "{lang}_x-ud-train.iob2", "columns": {"token": 1, "tag": 2}},
    ),
    "treebanks": (
        {**parted(conllu, ["en_ewt-ud-{part}.conllu"], ["en"]), **parted(conllu, ["tr_imst-ud-{part}.conllu"], ["tr"])},
        {"source": "conllu", "tag": "upos", "train": "{lang}_*-ud-train.conllu", "languages": ["en", "tr"]},
    ),
    "three columns named conllu": (
        parted(of(IOB2), ["{lang}/{part}.conllu"], parts=["train", "val", "test"], index=0),
        {"source": "conll", "dev": "{lang}/val.conllu", "columns": {"token": 1, "tag": 2}},
    ),
    "spans without letters": (parted(of(IO)), {"scheme": "io"}),
    "bioes": (parted(of(BIOES)), {"columns": {"token": 0, "tag": 1}}),
    "bilou": (parted(of(row("B-PER L-PER O O U-LOC O O O O B-ORG L-ORG O O O O"))), {"scheme": None}),
    "plain text beside": (
        {**parted(of(IOB2)), "en/more.txt": "It rains today.\nWho knows why?\n" * 9,
         "de/raw.txt": "Es regnet. Wer weiß warum? Keiner.\n" * 9},
        {"unlabelled": "{lang}/*.txt", "unlabelled_form": {"en": "sentences", "de": "documents"}},
    ),
    "spaces": (parted(of(IOB2), separator="  "), {"separator": "space"}),
    "tags before words": (
        {name: "\n".join("\t".join(reversed(line.split("\t"))) for line in text.split("\n"))
         for name, text in parted(of(IOB2)).items()},
        {"columns": {"token": 1, "tag": 0}},
    ),
    "no language": (parted(of(IOB2), ["{part}.txt"], ["xx"]), {"languages": ["und"], "train": "train.txt"}),
    "names that differ": (
        parted(of(IOB2), ["{lang}/{part}.txt"], ["north", "south"]),
        {"languages": ["north", "south"], "train": "{lang}/train.txt"},
    ),
    "folders outside ascii that differ": (
        parted(of(IOB2), ["x/{lang}/{part}.txt"], ["中文", "हि 日本"]),
        {"languages": ["हि 日本", "中文"], "train": "x/{lang}/train.txt"},
    ),
    "no dev": (
        parted(of(IOB2), parts=["train", "test"]),
        {"split": {"train": 9, "dev": 1, "test": 0}, "test": "{lang}/test.conll"},
    ),
    "no test": (
        parted(of(IOB2), parts=["train", "dev"]),
        {"split": {"train": 9, "dev": 1, "test": 0}, "test": "{lang}/dev.conll"},
    ),
    "one file": (
        {"corpus.conll": conll(IOB2, 60)}, {"split": {"train": 8, "dev": 1, "test": 1}, "train": "corpus.conll"}
    ),
    "wnut17": (
        parted(of(IOB2), ["{part}"], ["xx"], ["wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"]),
        {"train": "wnut17train.conll", "dev": "emerging.dev.conll", "test": "emerging.test.annotated", "split": None},
    ),
    "parts inside of words": (
        parted(of(IOB2), ["eng{part}.bio"], ["xx"], ["train", "test"]),
        {"train": "engtrain.bio", "test": "engtest.bio", "split": {"train": 9, "dev": 1, "test": 0}},
    ),
    "train and eval": (
        parted(of(IOB2), ["{part}.txt"], ["xx"], ["train", "eval", "test"]),
        {"train": "train.txt", "dev": "eval.txt", "test": "test.txt"},
    ),
    "train and devtest": (
        parted(of(IOB2), ["{part}.txt"], ["xx"], ["train", "dev", "devtest"]),
        {"train": "train.txt", "dev": "dev.txt", "test": "devtest.txt"},
    ),
    "a language in one name alone": (
        parted(of(IOB2), ["{part}.txt"], ["xx"], ["enTrain", "dev_v2", "test"]),
        {"languages": ["en"], "train": "enTrain.txt", "dev": "dev_v2.txt", "test": "test.txt"},
    ),
    "a file of two parts beside the others": (
        parted(of(IOB2), ["{part}.tsv"], ["xx"], ["train", "devel", "test"]) | {"train_dev.tsv": conll(IOB2, 38)},
        {"train": "train.tsv", "dev": "devel.tsv", "test": "test.tsv"},
    ),
    "a language to transfer to": (
        {**parted(of(IOB2)), "sw/test.conll": conll(IOB2, 5, 900)},
        {"zero_shot_languages": ["sw"], "test": "{lang}/test.conll"},
    ),
    "words without tags": (
        {**parted(of(IOB2)), **{f"{lang}/unlabelled.conll": "\n".join(
            "\n".join(word for word, _ in sentence) + "\n" for sentence in rows(IOB2, 20, 700 + place * 20)
        ) for place, lang in enumerate(("en", "de"))}},
        {"unlabelled": "{lang}/unlabelled.conll"},
    ),
    "texts with classes": (
        parted(tsv, ["{part}.tsv"], ["xx"]), {"source": "tsv", "columns": {"text": 0, "label": 1}}
    ),
    "texts with names of columns": (
        parted(tsv, ["{part}.tsv"], ["xx"], header="sentence\tlabel\n"), {"source": "tsv", "header": True}
    ),
    "CSV": (
        parted(comma_separated, ["{part}.csv"], ["xx"]), {"source": "tsv", "separator": "comma", "header": True}
    ),
    "names of columns in one language": (
        parted(tsv, ["en.{part}.tsv"], ["en"], header="sentence\tlabel\n") | parted(tsv, ["de.{part}.tsv"], ["de"]),
        {"source": "tsv", "header": {"en": True, "de": False}},
    ),
    "pairs": (
        parted(pairs, ["{part}.tsv"], ["xx"]), {"source": "tsv", "columns": {"text": 1, "second": 2, "label": 3}}
    ),
    "json lines": (
        parted(jsonl, ["{lang}/{part}.jsonl"]),
        {"source": "jsonl", "columns": {"text": "text", "label": "label"}, "train": "{lang}/train.jsonl"},
    ),
    "latin-1": (
        {name: text.replace("Anna", "Zoé").encode("latin-1")
         for name, text in parted(of(IOB2), languages=["es"]).items()},
        {"encoding": "latin-1"},
    ),
    "atis": (parted(atis, ["atis.{part}.iob"], ["xx"]), {"source": "atis", "train": "atis.train.iob", "scheme": None}),
    "xsid": (
        parted(xsid, ["{lang}.{part}.conll"]), {"source": "xsid", "columns": None, "test": "{lang}.test.conll"}
    ),
    "multiatis": (parted(multiatis, ["{part}_{lang}.tsv"]), {"source": "multiatis", "dev": "dev_{lang}.tsv"}),
    "no-break spaces inside words": (
        {name: text.replace("Rome", "New\u00a0York")
         for name, text in parted(of(IOB2), separator=" ").items()},
        {"columns": {"token": 0, "tag": 1}, "separator": "space", "scheme": None},
    ),
    "brackets in names": (
        parted(of(IOB2), ["{lang}/a[v1]-{part}.conll"]), {"train": "{lang}/a[[]v1]-train.conll"}
    ),
    "signs of patterns and uris in names": (
        parted(of(IOB2), ["a? #b%41 [v1]*{{c}} {part}.conll"], ["xx"]),
        {"train": "a[?] #b%41 [[]v1][*]{c} train.conll", "languages": ["und"]},
    ),
    "pairs in json lines": (
        parted(json_pairs, ["{part}.jsonl"], ["xx"]),
        {"columns": {"text": "premise", "second": "hypothesis", "label": "label"}, "scheme": "flat"},
    ),
    "beside other files": (
        {**parted(of(IOB2)), "README.md": "text", "LICENSE.txt": "text", "en/.hidden": "x", "labels.txt": "PER\nLOC\n"},
        {"languages": ["de", "en"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_found_is_what_is_there(tmp_path, case):
    files, expected = CASES[case]
    write(tmp_path, files)
    detected = detect(str(tmp_path))
    assert {key: detected.settings.get(key) for key in expected} == expected
    corpus = read_corpus(detected.config)
    assert all(corpus.parts[part].num_rows for part in ("train", "dev", "test"))
    spans = {"ORG", "PER", "LOC"}
    labels = {"conllu": set(UPOS), "tsv": {"good", "bad", "mixed"}, "jsonl": {"good", "bad", "mixed"}}
    for kind in ("atis", "xsid", "multiatis"):
        labels[kind] = {*spans, *(f"intent:{intent}" for intent in INTENTS)}
    assert set(corpus.labels) == labels.get(detected.settings["source"], spans)


def test_parquet_of_words_and_of_several_languages(tmp_path):
    for first, (part, count) in enumerate(PARTS.items()):
        sentences = list(rows(IOB2, count, first * 100))
        table = pa.table(
            {
                "id": list(range(count)),
                "tokens": [[word for word, _ in sentence] for sentence in sentences],
                "ner_tags": [[tag for _, tag in sentence] for sentence in sentences],
                "lang": [("en", "de")[number % 2] for number in range(count)],
            }
        )
        name = {"dev": "validation"}.get(part, part)
        half = count // 2
        pq.write_table(table.slice(0, half), tmp_path / f"{name}-00000-of-00002.parquet")
        pq.write_table(table.slice(half), tmp_path / f"{name}-00001-of-00002.parquet")
    detected = detect(str(tmp_path))
    assert detected.settings["columns"] == {"token": "tokens", "tag": "ner_tags", "language": "lang"}
    assert detected.settings["train"] == "train-0000*-of-00002.parquet"
    corpus = read_corpus(detected.config)
    assert corpus.languages == ("de", "en")
    assert corpus.parts["train"].num_rows == PARTS["train"]


def test_other_columns_that_could_be_the_tags_are_named(tmp_path):
    write(tmp_path, CASES["conll-2003"][0])
    notes = " ".join(detect(str(tmp_path)).notes)
    assert "column 1 could be the tags too: one tag for each word (PROPN" in notes
    assert "column 2 could be the tags too: spans (NP" in notes


def test_what_was_decided_is_said(tmp_path):
    write(tmp_path, CASES["no dev"][0])
    detected = detect(str(tmp_path))
    assert detected.notes == ("no dev; dev is drawn from train, 9 : 1",)
    (format_, columns) = (text for _, text in detected.guesses)
    assert format_ == "one word per line, empty lines between sentences, 2 columns between tabs"
    assert columns.startswith("0 words (")
    assert columns.endswith("1 spans (PER, ORG, LOC), taken as the tags")


def test_a_broken_byte_is_no_other_encoding(tmp_path):
    files = parted(lambda **options: conll(IOB2, **options).replace("Anna", "Zoé"), languages=["en"])
    files["en/train.conll"] = files["en/train.conll"].encode().replace(b"Berg", b"Ber\xff", 1)
    write(tmp_path, files)
    detected = detect(str(tmp_path))
    assert "encoding" not in detected.settings
    assert (
        "en/train.conll: byte 0xff in line 2 is not UTF-8, but the rest of the file is: correct the line"
        in detected.notes
    )


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "there are no files; expected are files of train"),
        ({"a.md": "x", "b/c.png": "x"}, "no file with labels is there. Seen: a.md (by its name no text of a corpus)"),
        ({"train.csv": "id,label\n1,1\n" * 9}, "train.csv (columns between commas, none with texts"),
        ({"train.txt": "A text of words.\nAnd one text.\n" * 9}, "train.txt (plain text, a sentence in each line)"),
        ({"train.txt": b"a\0b\n"}, "a zero byte in line 1"),
        ({"train.zip": "x"}, "an archive: unpack it"),
        ({"train.iob": "a b\tO B-X\nc d\tO B-X\n" * 20}, "all of its tags per line"),
        ({"train.txt": "1\tIN:GO\t\tgo home\tx\ten\t[IN:GO go [SL:TO home ] ]\t{}\n" * 9}, "SEMANTIC_PARSING.md"),
        ({"en.txt": "A text of words.\n" * 9}, "task: masked_lm and corpus.source: text"),
        ({"train.txt": conll(IOB2, 30).replace("\n\n", "\n")}, "put an empty line between sentences"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_with_what_is_expected(tmp_path, files, message):
    write(tmp_path, files)
    with pytest.raises(CorpusError) as refused:
        detect(str(tmp_path))
    assert message in str(refused.value)
    assert "expected are files of train, dev and test" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "part", "language"),
    [
        ("en/train.conll", "train", "en"),
        ("train.en.txt", "train", "en"),
        ("eng.train", "train", "eng"),
        ("deu.testa", "dev", "deu"),
        ("esp.testb.gz", "test", "esp"),
        ("tr_imst-ud-train.conllu", "train", "tr"),
        ("hau/dev.txt", "dev", "hau"),
        ("train/de.conll", "train", "de"),
        ("my_data/en/valid.txt", "dev", "en"),
        ("how-to-train.en.txt", "train", "en"),
        ("english/test.tsv", "test", "english"),
        ("data/raw/en/train.txt", "train", "en"),
        ("en.raw.txt", "unlabelled", "en"),
        ("wiki.train.raw", "unlabelled", None),
        ("wiki.test.raw", "test", None),
        ("corpus.txt", None, None),
        ("wnut17train.conll", "train", None),
        ("dev_v2.txt", "dev", None),
        ("nl-ud-valid.conllu", "dev", "nl"),
        ("testa", "dev", None),
        ("emerging.test.annotated", "test", None),
        ("train-00000-of-00003.parquet", "train", None),
        ("NER-de-train.tsv", "train", "de"),
        ("test2.txt", "test", None),
        ("trainset", "train", None),
        ("devset.tsv.gz", "dev", None),
        ("DEV.TXT", "dev", None),
        ("TestB.txt", "test", None),
        ("validation.jsonl", "dev", None),
        ("enTrain.txt", "train", "en"),
        ("trainEN.txt", "train", "EN"),
        ("NERtrain.txt", "train", None),
        ("训练train.txt", "train", None),
        ("train (en).txt", "train", "en"),
        ("train_v2/nl.txt", "train", "nl"),
    ],
)
def test_names_say_part_and_language(name, part, language):
    assert reason_to_skip(name) is None
    (detected,) = read_names([name])
    assert (detected.parts, detected.language) == ((part,) if part else (), language)


@pytest.mark.parametrize(
    "name",
    [
        "latest.txt", "contest", "CONTEST.txt", "trains.txt", "develop.txt", "retrain.conll", "attested", "Strain.txt",
        "détest.txt", "validated.tsv", "invalid.txt", "retrieval.txt", "train-test-split/corpus.txt",
    ],
)  # fmt: skip
def test_longer_words_are_no_parts(name):
    assert read_names([name])[0].parts == ()


def test_a_file_that_could_be_two_parts_is_asked_about(tmp_path):
    write(tmp_path, CASES["a file of two parts beside the others"][0])
    detected = detect(str(tmp_path))
    assert detected.unused == {"train_dev.tsv": "its name says train and dev"}
    expected_note = (
        "train_dev.tsv: its name says train and dev: it is not read; "
        "give it the name of one part, or write it"
    )
    assert any(note.startswith(expected_note) for note in detected.notes)
    (tmp_path / "eval.tsv").write_text(conll(IOB2, 9, 900))
    assert detect(str(tmp_path)).unused["eval.tsv"] == "its name says dev or test, and there are both"


@pytest.mark.parametrize(
    ("names", "messages"),
    [
        (("dev.txt", "test.txt"), ("no file is called train (dev is dev.txt, test is test.txt)",)),
        (("eval.txt",), ("no file is called train (test is eval.txt)",)),
        (("train_dev.txt", "test.txt"), ("(test is test.txt)", "Not read: train_dev.txt: its name says train and dev")),
        (("corpus.txt", "dev.txt", "test.txt"), ("Not read: corpus.txt: its name says no part",)),
    ],
)  # fmt: skip
def test_nothing_is_trained_on_dev_or_test_for_want_of_train(tmp_path, names, messages):
    write(tmp_path, {name: conll(IOB2, 20, 20 * place) for place, name in enumerate(names)})
    with pytest.raises(CorpusError, match="write train into the name of the file to train on") as refused:
        detect(str(tmp_path))
    assert all(message in str(refused.value) for message in messages)


def test_a_file_of_one_class_that_is_called_train_is_not_left_for_the_test(tmp_path):
    (tmp_path / "train.tsv").write_text("a fine old film\tpos\n" * 30)
    (tmp_path / "test.tsv").write_text("a fine old film\tpos\na dull old film\tneg\n" * 30)
    with pytest.raises(CorpusError, match="called train"):
        detect(str(tmp_path))


def test_where_some_files_are_utf_8_they_are_read_as_such(tmp_path):
    for name, text in (("train", "Zürich B-LOC"), ("dev", "it\x92s B-LOC"), ("test", "Köln B-LOC")):
        encoding = "latin-1" if name == "dev" else "utf-8"
        (tmp_path / f"{name}.conll").write_bytes(f"{text}\nin O\n\n".encode(encoding) * 9)
    detected = detect(str(tmp_path))
    assert detected.settings.get("encoding", "utf-8") == "utf-8"


def test_a_language_that_begins_late_in_json_lines_is_found(tmp_path):
    row = '{"tokens": ["Anna", "sleeps"], "ner_tags": ["B-PER", "O"], "lang": "%s"}\n'
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.jsonl").write_text(row % "en" * 4500 + row % "de" * 5)
    assert sorted(detect(str(tmp_path)).settings["languages"]) == ["de", "en"]
    # Reading names a later line whose language is no text.
    with (tmp_path / "test.jsonl").open("a") as file:
        file.write(row.replace('"%s"', '["en"]'))
    assert sorted(detect(str(tmp_path)).settings["languages"]) == ["de", "en"]


def test_the_languages_of_unlabelled_rows_are_those_of_their_column(tmp_path):
    labels = {"train": '"ner_tags": ["B-PER", "O"], ', "unlabelled": ""}
    for part in ("train", "dev", "test", "unlabelled"):
        rows = [
            f'{{"tokens": ["Anna", "{part}{number}"], {labels.get(part, labels["train"])}"lang": "{language}"}}\n'
            for number in range(9)
            for language in ("en", "de")
        ]
        (tmp_path / f"{part}.jsonl").write_text("".join(rows))
    detected = detect(str(tmp_path))
    assert not detected.unused
    assert read_corpus(detected.config).report.sentences["unlabelled"] == {"de": 9, "en": 9}


def test_a_file_that_begins_with_thousands_of_blank_lines_is_no_error(tmp_path):
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.conll").write_text("Anna B-PER\nsleeps O\n\n" * 9)
    (tmp_path / "more.conll").write_text("\n" * 5000 + "Anna B-PER\nsleeps O\n\n" * 9)
    assert detect(str(tmp_path)).settings["source"] == "conll"


def test_a_damaged_file_and_a_test_without_labels_are_left_out(tmp_path):
    for part in ("train", "dev"):
        (tmp_path / f"{part}.conll").write_text("Anna B-PER\nsleeps O\n\n" * 9)
    (tmp_path / "test.conll").write_text("Anna\nsleeps\n\n" * 9)
    (tmp_path / "old.conll.gz").write_bytes(b"\x1f\x8bnothing")
    detected = detect(str(tmp_path))
    assert {"test.conll", "old.conll.gz"} <= set(detected.unused)
    assert "unlabelled" not in detected.settings


def test_classes_that_begin_late_in_a_table_are_seen(tmp_path):
    """A file may be sorted by class; one text without a class is a fault that reading names."""
    lines = [
        f"the text {number} is one of several\t{'good' if number < 5000 else 'bad'}\n"
        for number in range(6000)
    ]
    parts = {f"{part}.tsv": "".join(lines) for part in ("train", "dev", "test")}
    write(tmp_path, parts)
    detected = detect(str(tmp_path))
    assert detected.settings["source"] == "tsv"
    assert detected.settings["columns"] == {"text": 0, "label": 1}
    write(tmp_path, {"train.tsv": "".join([*lines, "the last text has no class\t\n"])})
    assert detect(str(tmp_path)).settings == detected.settings
    # Ids are no classes, which shows only in many lines.
    numbers = [f"the text {number} is one of several\t{max(0, number - 4500)}\n" for number in range(6000)]
    write(tmp_path, {"train.tsv": "".join(numbers)})
    with pytest.raises(CorpusError, match="no labels are seen in what is called train"):
        detect(str(tmp_path))
