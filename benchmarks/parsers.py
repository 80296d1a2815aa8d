"""The biaffine parser: raykd's against supar's `biaffine-dep`, with the same sizes, on the same sentences.

    python -m venv SUPAR && SUPAR/bin/pip install torch==2.13.0 supar==1.1.4
    PYTHONPATH=. python benchmarks/parsers.py --root UD --supar SUPAR                  speed, untrained (a minute)
    PYTHONPATH=. python benchmarks/parsers.py --root UD --supar SUPAR --epochs 30      train both, then scores and speed
    … --epochs 5 --sentences 1000                                                      train on fewer sentences

UD is a folder with `en_ewt-ud-train.conllu`, `…-dev…` and `…-test…` (`--treebank` sets the first part of the names).
raykd reads the sentences and writes them for supar, so both train on the same ones: those of train that are not in dev
or test, without repetitions.

Both parsers read words and characters, through three BiLSTM layers of 400 and projections of 500 and 100. Decoding is
`free` (the best head of every word) or `tree` (the best tree with one root). All words are scored, also punctuation.

Both see the same number of epochs, in batches of the same number of words (5,000; use fewer for few sentences:
`--batch-words 500`), and keep the epoch with the best LAS on dev without trees. Each trains with its defaults: supar
with its published settings (Adam with β₂ 0.9 and a slow decay), raykd with those of `biaffine_parser`.

Speed is sentences of dev a second, from encoded text to heads and relations: the median of several rounds in which the
parsers alternate, in processor time. A ratio is raykd's speed over supar's. The cost of trees shows only with trained
parsers.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter

from raykd.corpora.batching import plan_batches
from raykd.corpora.config import CorpusConfig
from raykd.corpora.corpus import Corpus, read_corpus
from raykd.corpora.encoded_text import EncodedText, encode_text
from raykd.corpora.vocabulary import CharacterVocabulary, WordVocabulary
from raykd.forms.tree.tree_column import TreeColumn
from raykd.layers.model_config import BuildInputs
from raykd.metrics.attachment import Attachment, attachment
from raykd.structures import Arcs, best_trees, path_loss
from raykd.structures.labelled_arcs import LabelledArcs
from raykd.teachers import BiaffineParserTeacher
from raykd.training.learning_rate import make_optimiser

WORDS = 5000
PARTS = ("train", "dev", "test")
SUPAR = {
    "encoder": "lstm", "feat": ["char"], "n_embed": 100, "n_pretrained": 100, "n_feat_embed": 100, "n_char_embed": 50,
    "n_char_hidden": 100, "embed_dropout": 0.33, "n_lstm_hidden": 400, "n_lstm_layers": 3, "encoder_dropout": 0.33,
    "n_arc_mlp": 500, "n_rel_mlp": 100, "mlp_dropout": 0.33, "lr": 2e-3, "mu": 0.9, "nu": 0.9, "eps": 1e-12,
    "weight_decay": 1e-5, "decay": 0.75, "decay_steps": 5000, "min_freq": 2, "fix_len": 20, "embed": None,
    "checkpoint": False, "partial": False, "proj": False, "prob": False, "punct": True, "verbose": False, "build": True,
}  # fmt: skip
"""Settings of supar's `ptb.biaffine.dep.lstm.char`, without pretrained vectors."""


@dataclass(frozen=True)
class Contestant:
    """A parser of the comparison.

    Attributes:
        train: Trains for so many epochs on train.
        predict: Parses dev; True for trees, False for the best head of every word.
        score: Scores a part of the corpus by name, with or without trees.
    """

    train: Callable[[int], None]
    predict: Callable[[bool], object]
    score: Callable[[str, bool], Attachment | Any]


def corpus_of(root: str, treebank: str, sentences: int | None) -> Corpus:
    parts = {part: f"{treebank}-ud-{part}.conllu" for part in PARTS}
    config = {"source": "conllu", "tag": "tree", "root": root, "languages": ["en"], "cap": sentences, **parts}
    return read_corpus(TypeAdapter(CorpusConfig).validate_json(json.dumps(config)))


def ours(corpus: Corpus, batch_words: int) -> Contestant:
    torch.manual_seed(1)
    train = corpus.parts["train"]["tokens"].to_pylist()
    words = WordVocabulary.build(word for sentence in train for word in sentence)
    letters = CharacterVocabulary.build([word for sentence in train for word in sentence])
    config = BiaffineParserTeacher.model_validate({"training": {"batch_tokens": batch_words}})
    model = config.build(
        BuildInputs(
            tag_set=corpus.tag_set,
            dropout=config.training.dropout,
            vocabulary_size=words.size,
            characters=letters.size,
        )
    ).eval()
    texts = {part: encode_text(corpus.parts[part], words, letters) for part in PARTS}
    gold = {part: TreeColumn.from_table(corpus.parts[part], corpus.pos, corpus.tag_set) for part in PARTS}

    def score(part: str, tree: bool) -> Attachment:
        return attachment(
            [(gold_tree.heads_T, gold_tree.relations_T) for gold_tree in gold[part].trees()],
            parsed(model, texts[part], tree),
        )

    def fit(epochs: int) -> None:
        optimiser, best, best_weights = make_optimiser(config.training, model.parameters()), -1.0, {}
        for epoch in range(epochs):
            model.train()
            plan = plan_batches(texts["train"].piece_lengths, batch_tokens=batch_words, seed=1, epoch=epoch)
            for rows in plan:
                chain, target = model(texts["train"].gather(rows)).distribution, gold["train"].gather(rows)
                optimiser.zero_grad()
                (path_loss(chain, target.tags_BT).sum() / int(chain.lengths_B.sum())).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), config.training.gradient_clip or np.inf)
                optimiser.step()
            model.eval()
            dev = score("dev", False).las
            print(f"ours, epoch {epoch + 1}: LAS of dev {dev:.2%}", flush=True)
            if dev > best:
                best, best_weights = dev, {name: part.clone() for name, part in model.state_dict().items()}
        model.load_state_dict(best_weights)

    return Contestant(fit, partial(parsed, model, texts["dev"]), score)


@torch.inference_mode()
def parsed(model: torch.nn.Module, text: EncodedText, tree: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return heads and relations, sentence by sentence."""
    trees: list[Any] = [None] * len(text)
    for rows in plan_batches(text.piece_lengths, batch_tokens=WORDS, seed=0, epoch=0, shuffle=False):
        chain = model(text.gather(rows)).distribution
        arcs = LabelledArcs.from_chain(chain)
        scores = Arcs(arcs.arcs_BTH, arcs.lengths_B)
        heads_BT = best_trees(scores)[0] if tree else scores.possible().argmax(2)
        of_head_BTR = arcs.relations_BTHR.take_along_dim(heads_BT[:, :, None, None], 2)[:, :, 0]
        relations_BT = of_head_BTR.argmax(2)
        for row, length, *columns in zip(rows, arcs.lengths_B.tolist(), heads_BT, relations_BT, strict=True):
            trees[row] = tuple(part[:length].numpy() for part in columns)
    return trees


def supars(corpus: Corpus, folder: Path, batch_words: int) -> Contestant:
    supar, data = importlib.import_module("supar"), importlib.import_module("supar.utils")
    torch.load = partial(torch.load, weights_only=False)  # supar pickles its classes into its files
    files = {part: written(corpus, part, folder / f"{part}.conllu") for part in PARTS}
    torch.manual_seed(1)
    path = str(folder / "model")
    parsers = [supar.BiaffineDependencyParser.build(path, **files, **SUPAR)]

    def train(epochs: int) -> None:
        # supar scores dev after every epoch, without trees (`tree=False`), and saves the best.
        parsers[0].train(
            **files, **settings(), epochs=epochs, patience=epochs, batch_size=batch_words, tree=False
        )
        parsers[0] = supar.BiaffineDependencyParser.load(path)

    def settings() -> Mapping[str, Any]:
        return {"punct": True, "verbose": False}

    def loader(part: str, *, targets: bool) -> Any:
        parsers[0].transform.train(targets)
        return data.Dataset(parsers[0].transform, files[part]).build(WORDS, 8).loader

    loaders = {}

    def predict(tree: bool) -> object:
        parsers[0].args.update({"tree": tree, "proj": False, "prob": False})
        if "dev" not in loaders:
            loaders["dev"] = loader("dev", targets=False)
        return parsers[0]._predict(loaders["dev"])

    def score(part: str, tree: bool) -> Any:
        return parsers[0].evaluate(files[part], tree=tree, batch_size=WORDS, **settings())[1]

    return Contestant(train, predict, score)


def written(corpus: Corpus, part: str, file: Path) -> str:
    """Write a part of the corpus as CoNLL-U, and return the path."""
    blocks = []
    for row in corpus.parts[part].select(["tokens", "heads", "tags"]).to_pylist():
        relations = corpus.tag_set.decode(row["tags"])
        cells = enumerate(zip(row["tokens"], row["heads"], relations, strict=True), 1)
        blocks.append("".join(f"{n}\t{w}\t_\t_\t_\t_\t{head}\t{of}\t_\t_\n" for n, (w, head, of) in cells))
    file.write_text("\n".join(blocks) + "\n", encoding="utf-8")
    return str(file)


def seconds(contestants: Mapping[str, Contestant], rounds: int, tree: bool) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, contestant in contestants.items():
            started = time.process_time()
            contestant.predict(tree)
            if number:  # the first round warms up
                times[name].append(time.process_time() - started)
    return {name: median(spent) for name, spent in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", required=True, help="the folder of the treebank")
    parser.add_argument("--treebank", default="en_ewt")
    parser.add_argument("--supar", help="its virtual environment")
    parser.add_argument("--sentences", type=int, help="of train (default: all)")
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--batch-words", type=int, default=WORDS, help="in training")
    parser.add_argument("--threads", type=int, default=1, help="in training; speed is of one")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    corpus = corpus_of(options.root, options.treebank, options.sentences)
    counts = ", ".join(f"{corpus.parts[part].num_rows} of {part}" for part in PARTS)
    print(f"{options.treebank}: {counts}; torch {torch.__version__}", flush=True)
    with tempfile.TemporaryDirectory(prefix="parsers-") as folder:
        contestants = {"ours": ours(corpus, options.batch_words)}
        if options.supar:
            (packages,) = Path(options.supar).glob("lib/*/site-packages")
            sys.path.append(
                str(packages)
            )  # last, so that torch and other shared packages are those of this environment
            contestants["supar"] = supars(corpus, Path(folder), options.batch_words)
        torch.set_num_threads(options.threads)
        for name, contestant in contestants.items() if options.epochs else ():
            started = time.perf_counter()
            contestant.train(options.epochs)
            print(f"{name}: trained in {time.perf_counter() - started:.0f} s", flush=True)
            for part in ("dev", "test"):
                free, tree = (contestant.score(part, tree) for tree in (False, True))
                print(
                    f"{name}, {part}: LAS free {free.las:.2%}, tree {tree.las:.2%}; UAS free {free.uas:.2%}, "
                    f"tree {tree.uas:.2%}",
                    flush=True,
                )
        torch.set_num_threads(1)
        for tree in (False, True) if options.epochs else (False,):
            took = seconds(contestants, options.rounds, tree)
            count = corpus.parts["dev"].num_rows
            rates = ", ".join(f"{name} {count / spent:.0f}" for name, spent in took.items())
            ratio = f"; ratio {took['supar'] / took['ours']:.2f}" if "supar" in took else ""
            print(f"{'tree' if tree else 'free'}: sentences of dev a second: {rates}{ratio}", flush=True)


if __name__ == "__main__":
    main()
