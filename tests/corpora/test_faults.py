"""Faults of a corpus: several are reported together, or their sentences are left out and counted."""

import json
import pickle

import pytest
from pydantic import TypeAdapter

from raykd.corpora import CorpusConfig, read_corpus
from raykd.corpora.faults import MOST_FAULTS
from raykd.errors import CorpusError

CONFIG = TypeAdapter(CorpusConfig)
GOOD = "Ada B-PER\nKing I-PER\n\n"


def corpus(root, train, source="conll", **settings):
    """The corpus of this training text, dev and test are others."""
    (root / "train").write_bytes(train if isinstance(train, bytes) else train.encode())
    for part in ("dev", "test"):
        if not (root / part).exists():
            (root / part).write_text(GOOD.replace("Ada", part))
    plain = {"source": source, "root": str(root), "languages": ["en"]} | {
        part: part for part in ("train", "dev", "test")
    }
    return read_corpus(CONFIG.validate_json(json.dumps(plain | settings)))


def refused(root, train, **settings):
    with pytest.raises(CorpusError) as caught:
        corpus(root, train, **settings)
    return caught.value


def words(corpus, part="train"):
    return [" ".join(tokens) for tokens in corpus.parts[part]["tokens"].to_pylist()]


def test_faults_of_several_lines_and_files_are_reported_together(tmp_path):
    (tmp_path / "dev").write_text("a O\n\nb\n")
    error = refused(tmp_path, b"a O\nb\nc\n\n" + GOOD.encode() + b"M\xfc O\n\nd O\re O\n")
    lines_shown = str(error).split("\n")
    train, dev = tmp_path / "train", tmp_path / "dev"
    assert [line.split(": ")[0] for line in lines_shown] == [
        f"{train}:2", f"{train}:3", f"{train}:8", f"{train}:10", f"{dev}:3", "set corpus.on_error"
    ]  # fmt: skip
    assert "byte 0xfc is not utf-8" in lines_shown[2]
    assert "a carriage return is inside" in lines_shown[3]
    # A hint that was given is not repeated.
    assert sum("corpus.separator" in line for line in lines_shown) == 1
    unpickled = pickle.loads(pickle.dumps(error))
    assert str(unpickled) == str(error)


def test_no_more_than_some_are_reported(tmp_path):
    error = refused(tmp_path, "a O\nb\n\n" * 50)
    assert len(error.more_errors) + 1 == MOST_FAULTS
    assert "these are the first 10 faults, there may be more; set corpus.on_error: skip" in str(error)


def test_a_file_that_cannot_be_read_is_reported_beside_the_others_and_never_skipped(tmp_path):
    (tmp_path / "dev").write_text("")
    for on_error in ("repair", "skip", "stop"):
        error = refused(tmp_path, "a O\nb\n\n" + GOOD, on_error=on_error)
        assert f"{tmp_path / 'dev'}: the file is empty" in str(error)
        assert ("columns" in str(error)) == (on_error != "skip")
        assert "leave such sentences out" not in str(error)


def test_missing_files_are_reported_together(tmp_path):
    lines_shown = str(refused(tmp_path, GOOD, dev="nowhere", test="gone"))
    assert f"{tmp_path}/nowhere: no such file" in lines_shown
    assert f"{tmp_path}/gone: no such file" in lines_shown


BROKEN = {
    "columns": "x O\ny\n\n",
    "word": "x\tO\n\tO\n\n",
    "tag": "x\tO\ny\t\n\n",
    "bytes": b"x\tO\nM\xfc\tO\n\n",
    "carriage return": "x\tO\ry\tO\n\n",
    "zero": "x\tO\0\n\n",
    "unknown tag": "x\tO\ny\tPER\n\n",
    "tag without type": "x\tO\ny\tB-\n\n",
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("scheme", ["auto", "iob2"])
def test_what_is_skipped_is_left_out_of_every_part_counted_and_shown(tmp_path, kind, scheme):
    broken = BROKEN[kind] if isinstance(BROKEN[kind], bytes) else BROKEN[kind].encode()
    good = GOOD.replace(" ", "\t").encode()
    if kind == "columns":
        broken = broken.replace(b" ", b"\t")
    (tmp_path / "dev").write_bytes(good.replace(b"Ada", b"dev") + broken)
    assert refused(tmp_path, good + broken, scheme=scheme).line in (4, 5)
    read = corpus(
        tmp_path, good + broken + good.replace(b"Ada", b"Eva"), scheme=scheme, on_error="skip", most_skipped=1
    )
    assert words(read) == ["Ada King", "Eva King"]
    assert words(read, "dev") == ["dev King"]
    assert read.report.skipped == {"train": {"en": 1}, "dev": {"en": 1}}
    warning = next(each for each in read.report.warnings() if "of train en has faults" in each)
    assert f"1 sentence of train en has faults and was left out, for example {tmp_path}/train:" in warning


def test_a_cap_takes_as_many_good_sentences_as_there_are(tmp_path):
    text = "".join(f"w{i} {'PER' if i % 2 else 'B-PER'}\n\n" for i in range(20))
    read = corpus(tmp_path, text, cap=8, on_error="skip", most_skipped=1)
    assert len(words(read)) == 8
    assert read.report.skipped == {"train": {"en": 10}}


def test_flat_tags_have_no_unknown_ones(tmp_path):
    for part in ("dev", "test"):
        (tmp_path / part).write_text(f"{part} NOUN\n")
    read = corpus(tmp_path, "a NOUN\nb VERB\n\nc\n\n", on_error="skip", most_skipped=1)
    assert read.tag_set.form.scheme == "flat"
    assert read.report.skipped == {"train": {"en": 1}}


def test_sequences_of_tags_are_repaired_unless_every_fault_stops(tmp_path):
    text = GOOD + "Eva I-PER\n\nx O\n\nBo O\nKim I-PER\n"
    for on_error in ("repair", "skip"):
        read = corpus(tmp_path, text, scheme="iob2", on_error=on_error)
        assert read.report.repairs["train"] == {"en": 2}
        examples = read.report.examples["repairs"]["train"]["en"]
        assert examples[0] == f"{tmp_path}/train:4: 'I-PER' of word 1 read as 'B-PER'"
        assert not any(read.report.skipped.values())
    lines_shown = str(refused(tmp_path, text, scheme="iob2", on_error="stop")).split("\n")
    assert [line.split(": ")[0] for line in lines_shown[:2]] == [f"{tmp_path}/train:4", f"{tmp_path}/train:8"]
    assert "the tags are not valid in scheme iob2: 'I-PER' of word 1 read as 'B-PER'" in lines_shown[0]
    corpus(tmp_path, GOOD, on_error="stop")


def test_tags_of_no_scheme_are_reported_together(tmp_path):
    lines_shown = str(refused(tmp_path, GOOD + "x PER\n\ny O\n\nz B_PER\n\n"))
    assert lines_shown.startswith(
        f"{tmp_path}/train:4: some tags are spans (B-, I-) and others are not (B_PER, PER)"
    )
    assert f"\n{tmp_path}/train:8: some tags" in lines_shown
    lines_shown = str(refused(tmp_path, GOOD + "x PER\n\nz S-PER\n\n", scheme="iob2"))
    assert "train:4: tag 'PER' is not of scheme iob2" in lines_shown
    assert "train:6: tag 'S-PER' is not of scheme iob2" in lines_shown
    both = str(refused(tmp_path, GOOD + "x B-A\ny E-A\n\nz U-A\n"))
    assert "train:7: most tags are of BIOES (B-, I-, E-, S-) and others are not (U-A)" in both


def test_other_formats_skip_too(tmp_path):
    for part in ("dev", "test"):
        (tmp_path / part).write_text(f"good {part}\tyes\n")
    read = corpus(tmp_path, "fine\tyes\nno class\nbad\tno\n", source="tsv", on_error="skip", most_skipped=1)
    assert words(read) == ["fine", "bad"]
    assert read.report.skipped == {"train": {"en": 1}}
    line = "{}\tx\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"
    for part in ("dev", "test"):
        (tmp_path / part).write_text(line.format(1).replace("x", part))
    text = line.format(1) + "\n" + line.format(7) + "\n" + line.format(1).replace("NOUN", "_") + "\n2\tx\n"
    read = corpus(tmp_path, text, source="conllu", on_error="skip", most_skipped=1)
    assert read.report.skipped == {"train": {"en": 3}}


def test_parquet_rows_skip_too(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for part in ("train", "dev", "test"):
        rows = {"tokens": [[part, "b"], [part]], "ner_tags": [["O", "B-X"], ["O", "O"]]}
        pq.write_table(pa.table(rows), tmp_path / f"{part}.parquet")
    plain = {"source": "parquet", "root": str(tmp_path), "languages": ["en"]} | {
        part: f"{part}.parquet" for part in ("train", "dev", "test")
    }
    with pytest.raises(CorpusError, match=r"row 1 \(the first is 0\) has 1 word and 2 tags") as caught:
        read_corpus(CONFIG.validate_json(json.dumps(plain)))
    assert len(caught.value.more_errors) == 2
    read = read_corpus(CONFIG.validate_json(json.dumps(plain | {"on_error": "skip", "most_skipped": 1})))
    assert read.report.skipped == {part: {"en": 1} for part in ("train", "dev", "test")}


def test_overlaps_are_dropped_or_kept_and_told_by_language(tmp_path):
    (tmp_path / "test").write_text(GOOD)
    dropped = corpus(tmp_path, GOOD + GOOD.replace("Ada", "Eva") * 2)
    assert words(dropped) == ["Eva King"]
    assert dropped.report.overlaps["train"] == dropped.report.duplicates["train"] == {"en": 1}
    assert dropped.report.examples["overlaps"] == {"train": {"en": ["Ada King"]}}
    hint = "1 repeated sentence was dropped from train (en 1; for example 'Eva King'); set corpus.duplicates: keep"
    assert any(each.startswith(hint) for each in dropped.report.warnings())
    kept = corpus(tmp_path, GOOD + GOOD.replace("Ada", "Eva") * 2, overlaps="keep", duplicates="keep")
    assert words(kept) == ["Ada King", "Eva King", "Eva King"]
    assert (kept.report.overlaps["train"], kept.report.duplicates["train"]) == ({"en": 1}, {})
    assert any(
        "1 sentence of train was kept, and it is also in dev or test" in w for w in kept.report.warnings()
    )
