"""The first sweep file for a corpus: a small, sensible search with comments that say what to change next."""

from __future__ import annotations

from dataclasses import dataclass

from raykd.corpora.detect import DetectedCorpus
from raykd.corpora.labelled_files import FIXED_SCHEME
from raykd.identity import PlainObject
from raykd.sweep.draft_lines import commented_line, flow_yaml, opening_comment, sweep_name
from raykd.tasks import TASKS

SENTENCES, HELD_OUT = 20_000, 5_000
"""Most sentences (of 15 words) for training and for dev in a first search, which then takes minutes on two cores."""
PIECES = 25
"""Pieces of a sentence of 15 words in a multilingual checkpoint, special pieces included."""
LEAST_STEPS = 600
"""Optimiser steps that a checkpoint needs to learn a new head; after fewer it predicts the most frequent label
alone."""
POLARITY = frozenset(("POS", "NEG", "NEU", "POSITIVE", "NEGATIVE", "NEUTRAL", "CONFLICT"))
SCOPES = "one for each language (language), or one for all (all)"
RELATIVE = "relative to the folder in which raykd is called"


@dataclass(frozen=True)
class Sizes:
    """Sizes of a corpus, from which the settings of a first search follow.

    Attributes:
        train: Sentences of train, counted as sentences of 15 words.
        dev: Sentences of dev, counted likewise.
        languages: Languages with labels.
        targets: Languages without labels.
    """

    train: int
    dev: int
    languages: int
    targets: int


def guess_task(figures: PlainObject) -> str:
    """Return the likeliest task for the labels of a corpus.

    Args:
        figures: The corpus's figures, from `describe`.
    """
    if figures["unit"] == "sentence":
        return "pairs" if figures["pairs"] else "classification"
    if figures["scheme"] == "flat":
        return "pos"
    if figures["scheme"] == "utterance":
        return "intent_slots"
    labels = {str(label).split("-")[-1].upper() for label in figures["labels"]}
    return "aspect" if labels <= POLARITY else "ner"


def fitting_tasks(detected: DetectedCorpus, figures: PlainObject) -> tuple[str, ...]:
    """Return all possible tasks for the labels of a corpus, the likeliest first.

    Args:
        detected: The corpus.
        figures: The corpus's figures, from `describe`.
    """
    guess = guess_task(figures)
    guessed = TASKS[guess]
    key = (guessed.form, guessed.one_label_per)
    similar = (name for name, task in TASKS.items() if (task.form, task.one_label_per) == key)
    trees = (name for name, task in TASKS.items() if task.form.reads_heads and detected.tree_settings)
    return tuple(dict.fromkeys((guess, *similar, *trees)))


def draft_sweep_file(detected: DetectedCorpus, figures: PlainObject, file: str, task: str) -> str:
    """Return the text of a sweep file for a corpus, with the variant `small`.

    Args:
        detected: The corpus.
        figures: The corpus's figures, from `describe`.
        file: The name of the sweep file in the commands of its comments.
        task: One of `fitting_tasks`.
    """
    sizes = _sizes(figures)
    teacher, student = _parsers(sizes) if TASKS[task].form.reads_heads else _models(task, sizes)
    score = TASKS[task].score_name
    sections = [
        opening_comment(detected.root, file, sweep_name(detected.root)),
        f"name: {flow_yaml(sweep_name(detected.root))}",
        commented_line(
            f"task: {task}", f"the score is {TASKS[task].score_label}{_other_tasks(task, detected, figures)}"
        ),
        _corpus(detected, figures, sizes),
        teacher,
        _checkpoint(task, sizes),
        student,
        _search(task, score, sizes),
        _small(detected, figures, task, sizes),
    ]
    return "\n".join(sections) + "\n"


def _corpus(detected: DetectedCorpus, figures: PlainObject, sizes: Sizes) -> str:
    settings = {**detected.settings, **_schemes(detected, figures)}
    comments = {
        "root": "" if ":" in detected.root or detected.root.startswith("/") else RELATIVE,
        "columns": "counted from 0" if settings["source"] in ("conll", "tsv") else "",
        "split": "shares of train that become train, dev and test"
        + ("; test is read" if settings.get("split", {}).get("test") == 0 else ""),
        "scheme": "" if settings.get("scheme") == "flat" else "how the files write spans",
        "tag": "heads and relations" if settings.get("tag") == "tree" else "",
        "pos": "the column of parts of speech, which students read",
        "unlabelled_languages": "without labels: their text is read, and their test",
        "zero_shot_languages": "of these only the test is read",
        "encoding": "guessed",
        "unlabelled": "text without labels, which teachers label for the students",
        "unlabelled_form": "sentences: one in each line; documents: split into sentences",
        "on_error": "sentences with faults are left out; remove it to see the faults",
    }
    lines = ["corpus:"] + [
        commented_line(f"  {key}: {flow_yaml(value)}", comments.get(key, ""))
        for key, value in settings.items()
    ]
    lines += [
        commented_line(f"  {key}: {value}", comment)
        for key, value, comment in _caps(settings, figures, sizes)
    ]
    if "unlabelled" not in settings and not sizes.targets:
        caps = "cap" if figures["unit"] == "word" else "cap or cap_per_class"
        comment = f"with {caps}: the other sentences, as text without labels"
        lines.append(commented_line("  # unlabelled: rest", comment))
    return "\n".join(lines)


def _caps(settings: PlainObject, figures: PlainObject, sizes: Sizes) -> list[tuple[str, int, str]]:
    caps = []
    if sizes.train > SENTENCES:
        sentences = sum(row["sentences"] for row in figures["parts"] if row["part"] == "train")
        cap = max(500, int(sentences * SENTENCES / sizes.train / sizes.languages) // 100 * 100)
        scope = "of each language, of all three parts together" if "split" in settings else "of each language"
        caps.append(("cap", cap, f"sentences {scope}, drawn at random; remove it to train on all"))
    if "unlabelled" in settings:
        caps.append(("unlabelled_cap", 5000, "sentences of each language; remove it to take all"))
    if sizes.dev > HELD_OUT and "split" not in settings:
        caps.append(
            ("dev_cap", max(200, HELD_OUT // sizes.languages), "the search looks at dev after every epoch")
        )
    return caps


def _schemes(detected: DetectedCorpus, figures: PlainObject) -> PlainObject:
    """Return the schemes found on reading, so that a later file cannot change how the others are read."""
    if detected.settings["source"] in FIXED_SCHEME or figures["unit"] == "sentence":
        return {}
    schemes = figures["schemes"]
    distinct = set(schemes.values())
    return {"scheme": next(iter(distinct)) if len(distinct) == 1 else dict(schemes)}


def _models(task: str, sizes: Sizes) -> tuple[str, str]:
    """Return the sections of teachers and student."""
    sentence = TASKS[task].unit == "sentence"
    kind, decoder = ("bilstm_maxent", "maxent") if sentence else ("bilstm_crf", "{choice: [crf, maxent]}")
    characters = "\n  character_dim: 0" if sentence else ""
    vocabulary = 4000 if sizes.train < 4000 else 8000 if sizes.languages <= 4 else 16000
    teacher = f"""\
teachers:                                   # large and accurate; they label text for the students
  kind: {kind}
{commented_line(f"  scope: {_scope(sizes, single=sentence)}", SCOPES)}
  embedding_dim: 100
  hidden_dim: 128{characters}
  epochs: {_teacher_epochs(sizes)}
  training: {{optimiser: adam, learning_rate: 2e-3, batch_tokens: 1000, dropout: 0.3}}"""
    student = f"""\
student:                                    # small and fast; every {{choice: …}} is searched
  kind: bilstm
{commented_line("  embedding_dim: {choice: [16, 32, 64]}", "E")}
{commented_line("  hidden_dim: {choice: [32, 64, 128]}", "H, per direction")}
  decoder: {decoder}
  vocabulary: {{kind: wordpiece, size: {vocabulary}}}"""
    return teacher, student


def _parsers(sizes: Sizes) -> tuple[str, str]:
    """Return the sections of a parsing teacher and student."""
    teacher = f"""\
teachers:                                   # large and accurate; they parse text for the students
  kind: biaffine_parser
{commented_line(f"  scope: {_scope(sizes)}", SCOPES)}
  embedding_dim: 50
  hidden_dim: 128
  layers: 2
  character_dim: 32
  character_hidden: 32
  arc_dim: 128
  relation_dim: 64
  epochs: {_teacher_epochs(sizes)}
  training: {{optimiser: adam, learning_rate: 2e-3, batch_tokens: 1000}}"""
    student = f"""\
student:                                    # small and fast; every {{choice: …}} is searched
  kind: bilstm
{commented_line("  embedding_dim: {choice: [32, 64]}", "E")}
{commented_line("  hidden_dim: {choice: [64, 128]}", "H, per direction")}
  character_dim: 32
  character_hidden: 32
  decoder: maxent
{commented_line("  encoding: relative_pos", "each head as a label: the second NOUN to the left, …")}
  vocabulary: {{kind: word, min_count: 2}}"""
    return teacher, student


def _scope(sizes: Sizes, *, single: bool = False) -> str:
    """Return the scope of the teachers: one for each language, or one for all; `single` always gives one for all."""
    return "language" if 1 < sizes.languages <= 4 and not sizes.targets and not single else "all"


def _teacher_epochs(sizes: Sizes) -> int:
    return min(40, max(10, 80_000 // sizes.train))


def _student_epochs(sizes: Sizes) -> int:
    return min(40, max(8, 80_000 // sizes.train))


def _checkpoint(task: str, sizes: Sizes) -> str:
    """Return commented-out lines for a Transformers checkpoint as teacher."""
    if TASKS[task].form.reads_heads:
        return """\
# The vectors of a frozen Transformers encoder make a better parser. This line among those of `teachers` above:
#   contextual: {path: intfloat/multilingual-e5-small}   # a folder, or a name on the Hugging Face Hub"""
    kind = "hf_sequence_classifier" if TASKS[task].unit == "sentence" else "hf_token_classifier"
    steps, batch, rate = _fine_tuning(min(sizes.train, SENTENCES))
    return f"""\
# A Transformers checkpoint, fine-tuned on this corpus, is a better teacher. These lines in the place of `teachers`
# above, and without `teachers` in the variant `small`:
# teachers:
#   kind: {kind}
#   path: bert-base-multilingual-cased      # a folder, or a name on the Hugging Face Hub
#   fine_tune: true
#   vocabulary: pruned                      # to the pieces of this corpus
#   epochs: null
{commented_line(f"#   max_steps: {steps}", f"a new head takes some {LEAST_STEPS}, however small the corpus")}
#   training:
#     {{optimiser: adamw, learning_rate: {rate}, learning_rate_schedule: linear, warmup: 0.1, batch_tokens: {batch}}}"""


def _fine_tuning(sentences: int) -> tuple[int, int, str]:
    """Optimiser steps, pieces of a batch, and learning rate with which a checkpoint is fine-tuned.

    Batches are so small that three epochs have `LEAST_STEPS` steps, but have at least 300 pieces, below which a
    gradient is noise, and at most 2000. Where three epochs have fewer steps, there are more epochs.
    """
    pieces = PIECES * sentences
    batch = min(2000, max(300, 3 * pieces // LEAST_STEPS // 100 * 100))
    return max(LEAST_STEPS, 3 * pieces // batch // 10 * 10), batch, "1e-4" if batch < 1000 else "5e-5"


def _search(task: str, score: str, sizes: Sizes) -> str:
    epochs = _student_epochs(sizes)
    dropout, batch = (0.33, 500) if TASKS[task].form.reads_heads else (0.2, 2000)
    return f"""\
objective:                                  # how a student learns from its teacher
  choice:
{_objectives(task)}
schedule: {{epochs: {epochs}, anneal_rate: {{choice: [0.5, 1.0, 1.5]}}, anneal_horizon: {epochs}}}
training: {{optimiser: adam, learning_rate: 2e-3, batch_tokens: {batch}, dropout: {dropout}, seed: 0}}
search:
  trials: 12
  sampler: tpe
  objectives: {{{score}: max, latency_ms: min, parameters: min}}
{commented_line("  runs_per_setting: 1", "3: every figure is the mean of three seeds")}
  seed: 0
{commented_line("baseline: gold", "the front's students also without a teacher")}
{commented_line("budget: {minutes: 60}", "no trial starts after that")}
{commented_line("store: .raykd", "what is computed; the same work is done once")}
{commented_line("resources: {workers: 1, cpus_per_worker: 1}", "of one run; gpus_per_worker: 1 takes a GPU")}
{commented_line("tracking: {uri: sqlite:///mlflow.db}", "mlflow ui --backend-store-uri sqlite:///mlflow.db")}"""


def _objectives(task: str) -> str:
    """Return the alternatives of the section `objective`, a line each."""
    if TASKS[task].unit == "sentence":
        return """\
    - {kind: posterior, temperature: {choice: [1, 2, 3]}}   # the teacher's probabilities
    - {kind: logits}                        # and their logarithms"""
    if TASKS[task].form.reads_heads:
        return """\
    - {kind: top_wk, k: {int: [1, 5]}}      # the teacher's K best heads and relations
    - {kind: structural, temperature: {choice: [1, 2, 3]}}  # the probabilities of all of them"""
    return """\
    - {kind: top_wk, k: {int: [1, 10]}}     # the teacher's K best labellings
    - {kind: posterior, temperature: {choice: [1, 2, 3]}}   # its probabilities, word by word
    - {kind: structural, temperature: {choice: [1, 2, 3]}}  # and of neighbours"""


def _small(detected: DetectedCorpus, figures: PlainObject, task: str, sizes: Sizes) -> str:
    """Return the variant `small`, in which nothing is larger than in the file above."""
    teacher, epochs = min(12, _teacher_epochs(sizes)), min(8, _student_epochs(sizes))
    parses = TASKS[task].form.reads_heads
    layers = "layers: 1, arc_dim: 32, relation_dim: 16, " if parses else ""
    size, training = 32 if parses else 50, "{learning_rate: 5e-3, batch_tokens: 500}"
    return f"""\
variants:
  small:                                    # raykd sweep … --small: does it all work?
    corpus: {flow_yaml(_small_corpus(detected, figures, sizes))}
    teachers: {{embedding_dim: {size}, hidden_dim: {size}, {layers}epochs: {teacher}, training: {training}}}
    student: {{embedding_dim: {{choice: [16, 32]}}, hidden_dim: 32}}
    schedule: {{epochs: {epochs}, anneal_horizon: {epochs}}}
    training: {training}
    search: {{trials: 3}}
{commented_line("    teachers_must_learn: false", "a try goes on with what they learnt")}"""


def _small_corpus(detected: DetectedCorpus, figures: PlainObject, sizes: Sizes) -> dict[str, int]:
    is_split = "split" in detected.settings
    corpus = {"cap": max(500, 2000 // sizes.languages) * (4 if is_split else 3) // 3}
    if not is_split:
        corpus["dev_cap"] = 100
    if detected.settings.get("split", {}).get("test", 0) == 0:
        corpus["test_cap"] = 100
    if "unlabelled" in detected.settings or "unlabelled_languages" in detected.settings:
        corpus["unlabelled_cap"] = 200
    file_caps = {key: value for key, value, _ in _caps(detected.settings, figures, sizes)}
    return {key: min(value, file_caps.get(key, value)) for key, value in corpus.items()}


def _sizes(figures: PlainObject) -> Sizes:
    def size(part: str) -> int:
        rows = [row for row in figures["parts"] if row["part"] == part]
        return max(1, sum(row["sentences"] for row in rows), sum(row["tokens"] for row in rows) // 15)

    targets = sum(role != "labelled" for role in figures["roles"].values())
    return Sizes(size("train"), size("dev"), len(figures["languages"]) - targets, targets)


def _other_tasks(task: str, detected: DetectedCorpus, figures: PlainObject) -> str:
    """Return the end of a comment: the further tasks possible for the labels, and the command for them."""
    tasks = [name for name in fitting_tasks(detected, figures) if name != task]
    return f"; raykd init --task writes a file for {', '.join(tasks)}" if tasks else ""
