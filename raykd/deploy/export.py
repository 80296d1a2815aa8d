"""Export of a finished run: files that are served without raykd, compared with the model on sentences of its test part.

model.safetensors     weights
model.onnx            the model with its decoding, in float32
model-int8.onnx       the same with weights of 8 bits
vocabulary.json       mapping of words to numbers
labels.json           tags by number
labeller/             a package that labels text with these files, by onnxruntime and numpy alone
README.md             model card
export.json           run, task, inputs and outputs of the graph, checksums, and agreement of the files with the model
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from raykd.corpora.conllu import Pos
from raykd.corpora.corpus import Corpus
from raykd.corpora.encoded_text import EncodedText, TokenBatch
from raykd.corpora.report import CorpusReport
from raykd.corpora.sentence import SEPARATOR
from raykd.corpora.vocabulary import words_in
from raykd.deploy.calibration import Calibration, calibrate
from raykd.deploy.onnx_files import Session, onnx_files
from raykd.deploy.splitting import Splitting, measure_splitting
from raykd.errors import ExportError
from raykd.figures.results import RunResult
from raykd.forms.targets import best_labels
from raykd.forms.tree.codes import READ_POS, Encoding, TreeLabels
from raykd.layers.model import Output, save_weights
from raykd.progress import part_of_work, report_progress, with_progress
from raykd.recipes.run import Run
from raykd.serving import labeller
from raykd.storage.layout import LABELS, MODEL, RESULT, VOCABULARY, WEIGHTS
from raykd.storage.store import Storage
from raykd.structures import Chain, kbest
from raykd.tasks import find_task
from raykd.training.data import cached_corpus, encoded_part, sentence_languages
from raykd.training.evaluate import Decode, evaluation_batches, predict
from raykd.training.label_sets import legal_as_json
from raykd.training.load import Tagger, load_tagger
from raykd.training.model_folder import model_config
from raykd.training.worker import Worker

ONNX, ONNX_INT8, EXPORT_JSON = labeller.FLOAT32, labeller.INT8, labeller.CARD
LABELLER = {f"labeller/{path.name}": path for path in sorted(Path(labeller.__file__).parent.glob("*.py"))}
"""Name in an export → module of the labeller."""
README = "README.md"
FILES = (WEIGHTS, ONNX, ONNX_INT8, VOCABULARY, LABELS, *LABELLER, README, EXPORT_JSON)
SENTENCES = 1000
"""Most sentences on which the files are compared with the model."""
TIE = 1e-5
"""Largest difference of scores of two labellings that counts as a tie: rounding decides which is the best."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of the exported files with the model.

    Attributes:
        part: Part of the corpus with the compared sentences.
        sentences: Compared sentences.
        too_long: Sentences left out because the model reads them in parts, which its graph does not.
        labels: Labels of the compared sentences.
        differing: File → labels that differ from those of the model in PyTorch.
        tied: Sentences with other labels in float32, all with at most `TIE` between the two best labellings.
        scores: Score of the task on these sentences, of the model (`model.safetensors`) and of each file.
        score_label: Name of the score.
    """

    part: str
    sentences: int
    too_long: int
    labels: int
    differing: Mapping[str, int]
    tied: int
    scores: Mapping[str, float]
    score_label: str


@dataclass(frozen=True)
class Trees:
    """Tree settings of an exported parser.

    Attributes:
        encoding: Encoding of trees in the parser's labels.
        pos: Column of CoNLL-U with the parts of speech that the parser reads; None if it reads none.
        pos_origin: Source of the parts of speech in training, in words; None if the corpus is not at hand.
    """

    encoding: Encoding
    pos: Pos | None
    pos_origin: str | None


@dataclass(frozen=True)
class Export:
    """A written export.

    Attributes:
        run: The exported run.
        result: Its result.
        corpus: Report of its corpus; None if the store does not have the corpus.
        address: Folder of the export.
        sizes: File → bytes.
        agreement: Agreement of the files with the model; None if the sentences of the run are not at hand.
        splitting: Splitting of texts into words.
        trees: Tree settings of a parser; None for other models.
        calibration: Temperature of the probabilities; None if dev is not at hand, and for a parser.
    """

    run: Run
    result: RunResult
    corpus: CorpusReport | None
    address: str
    sizes: Mapping[str, int]
    agreement: Agreement | None
    splitting: Splitting
    trees: Trees | None = None
    calibration: Calibration | None = None

    @property
    def languages(self) -> list[str]:
        """Languages with scores."""
        return _languages(self.result)


def _languages(result: RunResult) -> list[str]:
    return list(dict.fromkeys([*result.scores.by_language("dev"), *result.scores.by_language("test")]))


def export_run(
    folder: Storage,
    target: Storage,
    *,
    store: Storage | None = None,
    model_card: Callable[[Export], str] | None = None,
    split: str | None = None,
) -> Export:
    """Write the model of a finished run into a folder.

    Args:
        folder: Folder of the run.
        target: Folder of the export.
        store: Store with the run's corpus; None skips the comparison with the model.
        model_card: Function that returns the text of the model card; None writes no README.md.
        split: Splitting of texts into words, one of the labeller's `SPLITS`; None for that of the task.

    Returns:
        Description of the written export.

    Raises:
        StoreError: The folder is not a run, or is damaged.
        ExportError: This kind of model has no ONNX graph, the float32 file gives other labels than the model, or
            `split` does not fit the task; then nothing is written.
    """
    report_progress(0.0, "loading the model")
    tagger = load_tagger(folder.uri)
    run = folder.read_json(MODEL, Run.from_plain)
    result = folder.read_json(RESULT, RunResult.from_plain)
    corpus = None if store is None else _corpus(store, run)
    splitting = measure_splitting(tagger.task, None if corpus is None else _training_text(corpus), split)
    report_progress(0.1, "writing the ONNX files")
    files = onnx_files(tagger.model)
    sessions = {ONNX: Session(files.float32), ONNX_INT8: Session(files.int8)}
    table = None if corpus is None else _comparison_sentences(corpus)
    score_label = find_task(run.task).score_label
    with part_of_work(0.4, 0.5, "calibrating its probabilities on dev"):
        calibration = None if store is None or corpus is None else _calibration(tagger, store, run)
    try:
        with part_of_work(0.5, 1.0, "comparing the files with the model"):
            agreement = (
                None
                if corpus is None or table is None
                else _compare(tagger, sessions, corpus, *table, score_label=score_label)
            )
    except ExportError as error:
        raise ExportError(f"{run.id}: {error}") from error
    contents = {
        WEIGHTS: save_weights(tagger.model),
        ONNX: files.float32,
        ONNX_INT8: files.int8,
        VOCABULARY: folder.read(VOCABULARY),
        LABELS: _labels_json(tagger),
        **{name: path.read_bytes() for name, path in LABELLER.items()},
    }
    for name, content in contents.items():
        target.write(name, content)
    sizes = {name: len(content) for name, content in contents.items()}
    report = None if corpus is None else corpus.report
    trees = _tree_settings(tagger.tag_set, report) if isinstance(tagger.tag_set, TreeLabels) else None
    exported = Export(run, result, report, target.address, sizes, agreement, splitting, trees, calibration)
    if model_card is not None:
        target.write(README, model_card(exported).encode())
    words = [] if table is None else sorted(set(words_in(table[1])) - {labeller.UTTERANCE})
    about = {
        "tokenizer": _find_tokenizer(tagger, words),
        "decoder": model_config(run).decoder,
        "decoding": run.decoding,
        "split": splitting.split,
        "splitting": splitting.to_plain(),
    }
    about |= {} if calibration is None else {"calibration": asdict(calibration)}
    about |= {} if exported.trees is None else {"trees": asdict(exported.trees)}
    about |= _run_and_files(run, result, tagger, sessions[ONNX], contents, agreement)
    target.write_json(EXPORT_JSON, about)
    return exported


def _labels_json(tagger: Tagger) -> bytes:
    """Return the labels by number, and the legal label pairs if decoding uses them, as JSON."""
    legal = tagger.model.legal
    content = {**tagger.tag_set.to_plain(), **({} if legal is None else {"legal": legal_as_json(legal)})}
    return json.dumps(content, ensure_ascii=False).encode()


def _tree_settings(labels: TreeLabels, report: CorpusReport | None) -> Trees:
    if labels.encoding not in READ_POS:
        return Trees(labels.encoding, None, None)
    # Corpora with universal parts of speech may have a few further ones.
    universal = sum(name in labeller.UPOS for name in labels.pos)
    column: Pos = "upos" if 2 * universal > len(labels.pos) else "xpos"
    return Trees(labels.encoding, column, report.pos.origin if report and report.pos else None)


def _corpus(store: Storage, run: Run) -> Corpus | None:
    return cached_corpus(store.uri, run.corpus_id) if store.names(f"corpora/{run.corpus_id}/") else None


def _comparison_sentences(corpus: Corpus) -> tuple[str, pa.Table] | None:
    """Return evenly spaced sentences of test, or else of dev; None if both are empty."""
    for name in ("test", "dev"):
        count = corpus.parts[name].num_rows
        if count:
            rows = np.unique(np.linspace(0, count - 1, min(count, SENTENCES)).astype(np.int64))
            return name, corpus.parts[name].take(rows)
    return None


def _calibration(tagger: Tagger, store: Storage, run: Run) -> Calibration | None:
    """Calibrate a model whose labels are probable as they are; those of a parser stand for heads."""
    dev = encoded_part(store.uri, run, "dev")
    return calibrate(tagger, dev) if len(dev) and not tagger.task.form.has_student_labels else None


def _training_text(corpus: Corpus) -> pa.Table:
    """Labelled training sentences; without any, as without gold labels, the unlabelled ones."""
    train, unlabelled = corpus.parts["train"], corpus.parts["unlabelled"]
    return train if train.num_rows else unlabelled


def _find_tokenizer(tagger: Tagger, words: Sequence[str]) -> str:
    """Return `own` if the labeller splits `words` as in training, else `package`, for the package `tokenizers`."""
    pieces = tagger.vocabulary.pieces
    if pieces.special.separator:  # the labeller handles the separator itself
        words = [word for word in words if word != SEPARATOR]
    try:
        split = labeller.splitter(pieces.to_json(), unknown=pieces.special.unknown)
    except labeller.UnsupportedError:
        return "package"
    pieces_by_word = [split(word) for word in words]
    return (
        "own"
        if [row for rows in pieces_by_word for row in rows] == pieces.pieces(words).values.tolist()
        else "package"
    )


def _compare(
    tagger: Tagger,
    sessions: Mapping[str, Session],
    corpus: Corpus,
    part: str,
    whole_table: pa.Table,
    *,
    score_label: str,
) -> Agreement | None:
    table, limit = whole_table, tagger.model.piece_limit
    if limit is not None:
        table = whole_table.take(np.flatnonzero(tagger.vocabulary.encode(whole_table).piece_lengths <= limit))
    if table.num_rows == 0:
        return None
    text, worker = tagger.vocabulary.encode(table), Worker(device=tagger.device)
    with part_of_work(0.0, 0.4):
        model_labels = predict(tagger.model, text, lambda output, rows: best_labels(output), worker=worker)
    file_labels: dict[str, list[np.ndarray]] = {}
    for number, (name, session) in enumerate(sessions.items()):
        with part_of_work(0.4 + 0.3 * number, 0.7 + 0.3 * number):
            file_labels[name] = _label_sentences(session.labels, text, model_labels)
    tied = _check_float32(tagger, text, model_labels, file_labels[ONNX])
    task = tagger.task
    gold = task.form.targets(table, pos=corpus.pos, labels=tagger.tag_set)
    answers: dict[str, Sequence[Any]] = {WEIGHTS: model_labels, **file_labels}
    if task.form.has_student_labels:  # the labellings that these labels stand for are scored
        decode = partial(task.form.best_labellings, gold)
        answers = {WEIGHTS: predict(tagger.model, text, decode, worker=worker)}
        answers |= {name: _parse_sentences(session, text, decode) for name, session in sessions.items()}

    def score(answer: Sequence[Any]) -> float:
        languages = list(sentence_languages(table))
        return task.score(gold, answer, tag_set=corpus.tag_set, languages=languages)["source"].mean

    return Agreement(
        part=part,
        sentences=table.num_rows,
        too_long=whole_table.num_rows - table.num_rows,
        labels=sum(map(len, model_labels)),
        differing={name: _count_differences(model_labels, paths) for name, paths in file_labels.items()},
        tied=tied,
        scores={name: score(answer) for name, answer in answers.items()},
        score_label=score_label,
    )


def _count_differences(labels: Sequence[np.ndarray], other_labels: Sequence[np.ndarray]) -> int:
    return sum(int((a != b).sum()) for a, b in zip(labels, other_labels, strict=True))


def _check_float32(
    tagger: Tagger, text: EncodedText, model_labels: Sequence[np.ndarray], float32: Sequence[np.ndarray]
) -> int:
    """Count the sentences with ties whose float32 labels differ; ExportError if labels differ without a tie."""
    rows = np.array(
        [row for row, (a, b) in enumerate(zip(model_labels, float32, strict=True)) if (a != b).any()], int
    )
    if not len(rows):
        return 0
    gaps = predict(tagger.model, text, _score_gaps, worker=Worker(device=tagger.device))
    clear = [row for row in rows if gaps[row] > TIE]
    if clear:
        count = _count_differences([model_labels[row] for row in clear], [float32[row] for row in clear])
        wrong = f"{count} of {sum(map(len, model_labels))} labels of {ONNX} differ from the model's"
        raise ExportError(f"{wrong}; nothing was written. This is a fault of raykd: please report it")
    return len(rows)


def _score_gaps(output: Output, rows: np.ndarray) -> list[float]:
    """Return the differences in score between the two best labellings of sentences."""
    chain = output.distribution
    if not isinstance(chain, Chain):
        return [float("inf")] * len(rows)
    best_B2 = kbest(chain, 2, output.legal)[1]
    return (best_B2[:, 0] - best_B2[:, 1]).tolist()


def _parse_sentences(session: Session, text: EncodedText, decode: Decode) -> list[Any]:
    trees: list[Any] = [None] * len(text)
    for rows in evaluation_batches(text.piece_lengths, torch.device("cpu")):
        batch = text.gather(rows)
        scores = Chain(torch.from_numpy(session.scores(batch)), batch.lengths_B)
        for row, tree in zip(rows, decode(Output(scores), rows), strict=True):
            trees[row] = tree
    return trees


def _label_sentences(
    label: Callable[[TokenBatch], np.ndarray], text: EncodedText, like: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Return the labels of all sentences, cut to the lengths in `like`."""
    labels = list(like)
    for rows in with_progress(evaluation_batches(text.piece_lengths, torch.device("cpu"))):
        for row, path in zip(rows, label(text.gather(rows)), strict=True):
            labels[row] = path[: len(like[row])]
    return labels


def _run_and_files(
    run: Run,
    result: RunResult,
    tagger: Tagger,
    session: Session,
    contents: Mapping[str, bytes],
    agreement: Agreement | None,
) -> dict[str, Any]:
    return {
        "run": run.id,
        "task": tagger.task.name,
        "unit": tagger.task.unit,
        "pairs": tagger.task.reads_pairs,
        "languages": _languages(result),
        "parameters": sum(parameter.numel() for parameter in tagger.model.all_parameters()),
        "inputs": session.inputs,
        "outputs": session.outputs,
        "special": asdict(tagger.vocabulary.pieces.special),
        "piece_limit": tagger.model.piece_limit,
        "files": {
            name: {"bytes": len(content), "sha256": sha256(content).hexdigest()}
            for name, content in contents.items()
        },
        "versions": {name: version(name) for name in ("torch", "onnx", "onnxruntime")},
        "agreement": None if agreement is None else asdict(agreement),
    }
