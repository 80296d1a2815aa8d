"""The answers of an annotator to a corpus: counted, refused, cut from documents, read as a model's output."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from raykd.corpora.corpus import make_corpus
from raykd.corpora.sentence import Sentence
from raykd.corpora.source import SourceConfig
from raykd.errors import CorpusError, MissingError, RunError, StoreError
from raykd.figures.results import Cost
from raykd.layers.answered_text import Annotator
from raykd.precompute.model_cost import find_cost
from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.structures import token_marginals, viterbi
from raykd.sweep.doctor import examine_store
from raykd.sweep.outcome import with_teacher_ratios
from raykd.teachers import AnnotationsTeacher
from raykd.training import answer_survey
from raykd.training.answer_reader import AnswerReader
from raykd.training.answer_survey import answered_corpus, store_given_answers, survey_answers
from raykd.transfer.answer_store import open_answers

TRAIN = ("Ada met Bob .", "Bob slept in Oslo .", "It rained .", "Eva left Rome .")
TAGS = {"Ada": "B-PER", "Bob": "B-PER", "Eva": "B-PER", "Oslo": "B-LOC", "Rome": "B-LOC"}


def corpus_of(train=TRAIN):
    def sentence(text):
        words = text.split()
        return Sentence(words, [TAGS.get(word, "O") for word in words], "en")

    parts = {"train": train, "dev": ["Ada left Oslo ."], "test": ["Eva slept ."]}
    sentences = {part: [sentence(text) for text in texts] for part, texts in parts.items()}
    return make_corpus(sentences, SourceConfig(languages=("en",)))


def stored(folder, records, **settings):
    """The store and the pinned annotator of some records in a file."""
    file = folder / "answers.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    teacher = AnnotationsTeacher(path=str(file), **settings).pinned()
    storage = Storage(str(folder / "store"))
    store_given_answers(storage, teacher)
    return storage, teacher


def record(text, *mentions):
    return {"text": text, "mentions": [list(mention) for mention in mentions]}


def test_texts_without_a_usable_answer_leave_the_training_text(tmp_path):
    records = [
        record("Ada met Bob.", ("Ada", "PER"), ("Zoe", "PER")),
        {"text": "Bob slept in Oslo.", "mentions": [["Bob"]]},
        record("It  rained."),
        record("Ada left Oslo.", ("Oslo", "LOC")),
        record("Nobody asked for this."),
    ]
    storage, teacher = stored(tmp_path, records, answers="mentions", most_unusable=0.5)
    corpus = corpus_of()
    survey = survey_answers(storage, teacher, corpus)
    assert survey.counts["train"] == {"answered": 2, "unusable": 1, "unanswered": 1}
    assert survey.counts["dev"] == {"answered": 1, "unusable": 0, "unanswered": 0}
    assert survey.counts["test"] == {"answered": 0, "unusable": 0, "unanswered": 1}
    assert (survey.left_over, survey.notes) == (1, {"invented": 1})
    messages = "\n".join(survey.messages())
    assert "1 training sentence with an unusable answer" in messages
    assert "1 sentence of dev and test with no answer" in messages
    assert "'Zoe' PER in 'Ada met Bob.'" in messages
    answered, name = answered_corpus(corpus, survey.usable, storage)
    assert [" ".join(words) for words in answered.parts["train"]["tokens"].to_pylist()] == [
        TRAIN[0],
        TRAIN[2],
    ]
    assert answered.parts["dev"].num_rows == 1
    assert answered.report.sentences["train"] == {"en": 2}
    assert storage.exists(f"corpora/{name}/corpus.json")


def test_a_corpus_with_all_answers_is_the_corpus_itself(tmp_path):
    corpus = corpus_of()
    texts = [*TRAIN, "Ada left Oslo .", "Eva slept ."]
    storage, teacher = stored(tmp_path, [record(text) for text in texts], answers="mentions")
    assert answered_corpus(corpus, survey_answers(storage, teacher, corpus).usable, storage)[0] is corpus


def test_labels_that_are_none_of_the_corpus_are_listed_with_their_counts(tmp_path):
    records = [
        record(TRAIN[0], ("Ada", "PERSON")),
        record(TRAIN[1], ("Bob", "PERSON")),
        record(TRAIN[3], ("Rome", "GPE")),
    ]
    storage, teacher = stored(tmp_path, records, answers="mentions")
    with pytest.raises(CorpusError, match=r"PERSON \(2\), GPE \(1\)") as caught:
        survey_answers(storage, teacher, corpus_of())
    assert "teachers.labels" in str(caught.value)
    # Other names are applied to stored answers: nothing is read again.
    named = teacher.model_copy(update={"labels": {"PERSON": "PER", "*": "O"}})
    assert survey_answers(storage, named, corpus_of()).total("answered") == 3
    wrong = teacher.model_copy(update={"labels": {"PERSON": "HUMAN"}})
    with pytest.raises(CorpusError, match="'HUMAN' is no label of the corpus"):
        survey_answers(storage, wrong, corpus_of())


def test_too_many_unusable_answers_end_with_examples(tmp_path):
    records = [{"text": text, "mentions": "none"} for text in TRAIN[:2]] + [record(TRAIN[2])]
    storage, teacher = stored(tmp_path, records, answers="mentions")
    with pytest.raises(RunError, match=r"2 of 3 answers cannot be used.*answers.jsonl:1"):
        survey_answers(storage, teacher, corpus_of())
    storage, teacher = stored(tmp_path, [record("Another text.")], answers="mentions")
    with pytest.raises(RunError, match="no answer to any text"):
        survey_answers(storage, teacher, corpus_of())
    probabilities = [{"text": text, "probabilities": [{"O": 1}] * len(text.split())} for text in TRAIN]
    storage, teacher = stored(tmp_path, probabilities)
    with pytest.raises(RunError, match=r"correct teachers\.answers"):
        survey_answers(storage, teacher, corpus_of())


def test_an_answer_to_a_document_is_cut_to_its_sentences(tmp_path):
    document = "A title.\n" + "\n".join(TRAIN)
    spans = [
        {"start": document.index(name), "end": document.index(name) + 4, "label": "LOC"}
        for name in ("Oslo", "Rome")
    ]
    storage, teacher = stored(tmp_path, [{"text": document, "spans": spans}])
    survey = survey_answers(storage, teacher, corpus_of())
    assert survey.counts["train"] == {"answered": 4, "unusable": 0, "unanswered": 0}
    assert survey.left_over == 0
    reader = AnswerReader(storage, teacher, corpus_of().tag_set, "word")
    words = TRAIN[3].split()
    answer, _ = reader.read(words, reader.find(words))
    assert answer.labellings[0].tags == ("O", "O", "S-LOC", "O")
    assert survey_answers(storage, teacher, corpus_of()).counts == survey.counts  # from what was stored


def test_samples_are_the_output_of_the_annotator_as_a_model(tmp_path):
    samples = [{"PER": ["Ada"]}, {"PER": ["Ada"]}, {"PER": ["Ada", "Bob"]}]
    storage, teacher = stored(
        tmp_path, [{"text": TRAIN[0], "samples": samples}, record(TRAIN[2])], answers="samples"
    )
    tag_set = corpus_of().tag_set
    reader = AnswerReader(storage, teacher, tag_set, "word")
    assert reader.samples == 3
    batch = reader.encode([TRAIN[0].split(), TRAIN[2].split()]).gather(np.array([1, 0]))
    output = Annotator(len(tag_set))(batch)
    single = tag_set.tags.index("S-PER")
    marginals = token_marginals(output.distribution)
    assert marginals[1, :, single].tolist() == pytest.approx([1, 0, 1 / 3, 0])
    paths, scores = viterbi(output.distribution)
    assert tag_set.decode(paths[1, :4].tolist()) == ["S-PER", "O", "O", "O"]
    assert scores.tolist() == pytest.approx([0, math.log(2)])
    with pytest.raises(RunError, match="no usable answer to 'Unknown text'"):
        reader.encode([["Unknown", "text"]])
    with pytest.raises(ValueError, match="no hidden states"):
        Annotator(len(tag_set))(batch, layers=[1])


def test_probabilities_over_iob2_become_bioes_exactly(tmp_path):
    rows = [{"B-PER": 0.6, "O": 0.3, "B-DATE": 0.1}, {"I-PER": 0.5, "O": 0.5}, {"O": 1.0}]
    storage, teacher = stored(
        tmp_path,
        [{"tokens": ["Ada", "Bob", "."], "probabilities": rows}],
        answers="probabilities",
        labels={"DATE": "O"},
    )
    tag_set = corpus_of().tag_set
    reader = AnswerReader(storage, teacher, tag_set, "word")
    output = Annotator(len(tag_set))(reader.encode([["Ada", "Bob", "."]]).gather(np.array([0])))
    marginals = dict(zip(tag_set.tags, token_marginals(output.distribution)[0].T.tolist(), strict=True))
    assert marginals["B-PER"] == pytest.approx([0.3, 0, 0])
    assert marginals["S-PER"] == pytest.approx([0.3, 0, 0])
    assert marginals["E-PER"] == pytest.approx([0, 0.5, 0])
    assert marginals["O"] == pytest.approx([0.4, 0.5, 1])
    torch.testing.assert_close(token_marginals(output.distribution).sum(2), torch.ones(1, 3))


def test_files_are_known_by_their_content_and_damage_is_noticed(tmp_path):
    storage, teacher = stored(tmp_path, [record(text) for text in TRAIN], answers="mentions")
    (tmp_path / "answers.jsonl").rename(tmp_path / "renamed.jsonl")
    assert AnnotationsTeacher(path=str(tmp_path / "re*.jsonl")).pinned().answers_id == teacher.answers_id
    with pytest.raises(MissingError, match="no file of answers"):
        AnnotationsTeacher(path=str(tmp_path / "answers.jsonl")).pinned()
    assert len(open_answers(storage, teacher.answers_id)) == len(TRAIN)
    (batch,) = (tmp_path / "store" / "answers" / teacher.answers_id).glob("*.arrow")
    other = tmp_path / "other" / "answers" / teacher.answers_id
    other.mkdir(parents=True)
    (other / batch.name).write_bytes(batch.read_bytes()[:-9] + b"123456789")
    with pytest.raises(StoreError, match="damaged"):
        open_answers(Storage(str(tmp_path / "other")), teacher.answers_id)


def test_a_line_that_is_no_record_is_named(tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text('{"text": "Ada met Bob .", "spans": []}\n{"spans": []}\n')
    teacher = AnnotationsTeacher(path=str(file)).pinned()
    with pytest.raises(CorpusError, match=r"answers.jsonl:2: .*no text and no words"):
        store_given_answers(Storage(str(tmp_path / "store")), teacher)


def test_short_sentences_of_a_document_are_found_where_a_sentence_may_begin(tmp_path):
    storage, teacher = stored(tmp_path, [{"text": "Yes. Ada met Bob. Yesterday it rained. No.", "spans": []}])
    train = ("Yes .", "Ada met Bob .", "Yesterday it rained .", "No .", "it .")
    counts = survey_answers(storage, teacher, corpus_of(train)).counts["train"]
    assert counts == {"answered": 4, "unusable": 0, "unanswered": 1}  # "it ." is not in the document


def test_a_kill_between_two_batches_loses_no_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(answer_survey, "BATCH", 2)
    file, write, batches = tmp_path / "answers.jsonl", answer_survey.write_answers, []
    file.write_text("".join(json.dumps(record(text)) + "\n" for text in TRAIN))
    teacher = AnnotationsTeacher(path=str(file), answers="mentions").pinned()
    storage = Storage(str(tmp_path / "store"))

    def killed_at_the_second(*arguments):
        batches.append(arguments)
        if len(batches) == 2:
            raise KeyboardInterrupt
        write(*arguments)

    monkeypatch.setattr(answer_survey, "write_answers", killed_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        store_given_answers(storage, teacher)
    assert len(open_answers(storage, teacher.answers_id)) == 2
    store_given_answers(storage, teacher)
    assert len(open_answers(storage, teacher.answers_id)) == 4
    store_given_answers(storage, teacher)
    assert len(batches) == 4  # complete: nothing is read again


def test_of_two_answers_to_a_text_the_first_counts_and_the_other_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(answer_survey, "BATCH", 1)  # whatever the hashes of the batches
    texts = [record(TRAIN[0], ("Ada", "PER")), *(record(TRAIN[0], (name, "PER")) for name in ("Bob", "met"))]
    storage, teacher = stored(tmp_path, [*texts, texts[0], *map(record, TRAIN[1:])], answers="mentions")
    survey = survey_answers(storage, teacher, corpus_of())
    assert any("2 further answers" in text and "answers.jsonl:2" in text for text in survey.messages())
    reader, words = AnswerReader(storage, teacher, corpus_of().tag_set, "word"), TRAIN[0].split()
    assert reader.read(words, reader.find(words))[0].labellings[0].tags == ("S-PER", "O", "O", "O")


def test_labels_among_probabilities_are_checked_before_anything_runs(tmp_path):
    def rows(tag):
        texts = [
            {"tokens": text.split(), "probabilities": [{"O": 0.5, tag: 0.5}] * len(text.split())}
            for text in TRAIN
        ]
        return stored(tmp_path, texts, answers="probabilities")

    with pytest.raises(CorpusError, match=r"DATE \(4\)"):
        survey_answers(*rows("B-DATE"), corpus_of())
    with pytest.raises(RunError, match="'L-PER' is no tag of IOB2"):
        survey_answers(*rows("L-PER"), corpus_of())


def test_one_scheme_holds_for_all_probabilities_of_an_annotator(tmp_path):
    sentences = [["Ada"], ["Ada", "Bob"]]
    rows = [[{"B-PER": 0.25, "S-PER": 0.75}], [{"B-PER": 1.0}, {"I-PER": 0.5, "O": 0.5}]]
    records = [
        {"tokens": words, "probabilities": row, "note": 'no tag: "S-Bahn":'}
        for words, row in zip(sentences, rows, strict=True)
    ]
    tag_set, inside = corpus_of().tag_set, corpus_of().tag_set.tags.index("I-PER")

    def marginals(kept, words):
        storage, teacher = stored(tmp_path, kept, answers="probabilities")
        text = AnswerReader(storage, teacher, tag_set, "word").encode([words])
        return token_marginals(Annotator(len(tag_set))(text.gather(np.array([0]))).distribution)[0]

    assert marginals(records, sentences[1])[1, inside] == pytest.approx(0.5)  # BIOES: I stays I
    assert marginals(records[1:], sentences[1])[1, inside] == 0  # IOB2: I at the end is E


def test_time_and_limit_of_an_annotator_are_no_part_of_its_identity(tmp_path):
    storage, teacher = stored(tmp_path, [record(text) for text in TRAIN], answers="mentions")
    run = Run("teacher", "ner", "corpus-1", "vocabulary-1", teacher.model_dump(mode="json"), (), {})

    def changed(**settings):
        return replace(run, model=teacher.model_copy(update=settings).model_dump(mode="json"))

    assert changed(latency_ms=850.0, most_unusable=0.5).id == run.id
    assert changed(repeat="first").id != run.id
    assert find_cost(storage, run).figures == {}
    stated = find_cost(storage, changed(latency_ms=850.0))
    assert "no compression" in stated.remarks[0]
    assert teacher.model_copy(update={"latency_ms": 850.0}).stated_costs == {"latency_ms": 850.0}
    student = with_teacher_ratios(Cost({"latency_ms": 0.5, "bytes": 9.0}), [stated])
    assert student.figures["speedup"] == 1700
    assert not any("no speed-up" in note for note in student.notes)
    unstated = with_teacher_ratios(Cost({"latency_ms": 0.5}), [find_cost(storage, run)])
    assert any("no speed-up" in note for note in unstated.notes)


def test_the_doctor_names_damaged_answers_and_lost_ones_are_read_again(tmp_path):
    storage, teacher = stored(tmp_path, [record(text) for text in TRAIN], answers="mentions")
    folder = tmp_path / "store" / "answers" / teacher.answers_id
    (batch,) = folder.glob("batch-*.arrow")
    for file in (batch, folder / "annotator.json"):
        content = file.read_bytes()
        file.write_bytes(content[:-9] + b"123456789")
        (damage,) = examine_store(storage).damages
        assert file.name in str(damage)
        file.write_bytes(content)
    assert not examine_store(storage).damages
    batch.unlink()
    store_given_answers(storage, teacher)
    assert batch.exists()
