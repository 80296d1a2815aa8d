"""The labeller of exported models: pieces as the package splits, probabilities as enumerated, spans as raykd reads."""

from __future__ import annotations

import ast
import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from raykd.corpora.vocabulary import CharacterVocabulary, WordPieceVocabulary, WordVocabulary
from raykd.metrics.bioes import read_spans
from raykd.serving import labeller
from raykd.serving.labeller import (
    Chain,
    Lattice,
    UnsupportedError,
    decode_spans,
    session,
    splitter,
    with_package,
    words_in,
)
from raykd.serving.labeller.lattice import divided, legal_chain, sum_of_chains
from raykd.serving.labeller.pieces import speller

LETTERS = "abéßÅΣς中の กo'’-.,!_ \t\u200b\u0301\u00ad²"
SOME_WORDS = st.text(alphabet=LETTERS, min_size=1, max_size=12)
BERT = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None}


def wordpiece(**settings):
    pieces = [
        "[UNK]",
        "a",
        "b",
        "##a",
        "##b",
        "ab",
        "##ab",
        "e",
        "##e",
        "中",
        "o",
        "##o",
        "'",
        "-",
        ".",
        "σ",
        "##σ",
        "##.",
    ]
    tokenizer = Tokenizer(
        models.WordPiece({piece: row for row, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(**BERT, **settings)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer, 0


def unigram():
    pieces = [
        ("<s>", 0.0),
        ("<unk>", 0.0),
        ("▁", -2.0),
        ("a", -3.0),
        ("b", -3.1),
        ("ab", -4.0),
        ("▁ab", -4.5),
    ]
    pieces += [
        ("ba", -3.5),
        ("é", -5.0),
        ("ss", -6.0),
        ("中", -5.5),
        ("の", -5.5),
        ("▁a", -3.2),
        ("o", -4.0),
        ("2", -7.0),
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=1, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(" {2,}", " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    return tokenizer, 1


TOKENIZERS = {"cased": wordpiece(lowercase=False), "uncased": wordpiece(lowercase=True), "unigram": unigram()}


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(deadline=None, max_examples=300)
@given(word=SOME_WORDS)
def test_words_are_split_as_the_package_does(name, word):
    tokenizer, unknown = TOKENIZERS[name]
    stored = json.dumps({"kind": "pretrained", "definition": tokenizer.to_str()})
    assert splitter(stored, unknown=unknown)(word) == with_package(stored, unknown=unknown)(word)


@settings(deadline=None)
@given(words=st.lists(SOME_WORDS, min_size=1, max_size=4))
def test_words_are_split_as_raykds_own_vocabularies_do(words):
    for vocabulary in (
        WordVocabulary(("ab", "é", "Å")), WordVocabulary(("ab", "é", "å"), lower_case=True),
        WordPieceVocabulary(("[PAD]", "[UNK]", "a", "b", "##a", "##b", "ab", "##ab", "é", "##é", "中")),
    ):  # fmt: skip
        rows = vocabulary.pieces(words)
        expected = [row.tolist() for row in np.split(rows.values, rows.offsets[1:-1])]
        split = splitter(vocabulary.to_json(), unknown=1)
        assert [split(word) for word in words] == expected
    characters = CharacterVocabulary(tuple("abé中"), longest=5)
    rows = characters.pieces(words)
    split = speller(characters.to_json())
    assert [split(word) for word in words] == [
        row.tolist() for row in np.split(rows.values, rows.offsets[1:-1])
    ]


def test_other_kinds_of_tokenizers_are_left_to_the_package():
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    stored = json.dumps({"kind": "pretrained", "definition": tokenizer.to_str()})
    with pytest.raises(UnsupportedError, match="BPE"):
        splitter(stored, unknown=0)
    assert with_package(stored, unknown=0)("abb") == [2, 1]


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), words=st.integers(1, 4), chained=st.booleans())
def test_probabilities_are_those_of_all_labellings(seed, words, chained):
    draw = np.random.default_rng(seed)
    scores_TY = draw.normal(size=(words, 3)) * 3
    chain = (draw.normal(size=(3, 3)) * 2, draw.normal(size=3), draw.normal(size=3)) if chained else None
    if chained and seed % 3 == 0:
        chain[0][0, 1] = -np.inf  # a transition that is not allowed
    lattice = Lattice(scores_TY, chain)

    def weight(path):
        total = sum(scores_TY[t, y] for t, y in enumerate(path))
        if chained:
            total += chain[1][path[0]] + chain[2][path[-1]]
            total += sum(chain[0][a, b] for a, b in itertools.pairwise(path))
        return np.exp(total)

    paths = {path: weight(path) for path in itertools.product(range(3), repeat=words)}
    whole = sum(paths.values())
    marginals_TY = lattice.marginals()
    for t, y in itertools.product(range(words), range(3)):
        expected = sum(w for path, w in paths.items() if path[t] == y) / whole
        assert marginals_TY[t, y] == pytest.approx(expected, abs=1e-12)
    for first, last in itertools.combinations_with_replacement(range(words), 2):
        part = draw.integers(0, 3, size=last - first + 1)
        expected = sum(w for path, w in paths.items() if path[first : last + 1] == tuple(part)) / whole
        assert lattice.probability(first, part) == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), words=st.integers(1, 4), temperature=st.floats(0.2, 5))
def test_a_temperature_divides_every_score_and_leaves_the_illegal_labellings_impossible(
    seed, words, temperature
):
    draw = np.random.default_rng(seed)
    scores_TY = draw.normal(size=(words, 3)) * 3
    legal = {"after": [0, 1, 0], "next": [[0, 1, 2], [1, 2]], "first": [0, 1], "last": [0, 2]}
    chain = sum_of_chains(
        Chain(*(draw.normal(size=shape) for shape in ((3, 3), 3, 3))), legal_chain(legal, 3)
    )
    assert chain is not None
    lattice = Lattice(scores_TY / temperature, divided(chain, temperature))

    def weight(path):
        total = sum(scores_TY[t, y] for t, y in enumerate(path))
        total += chain.start_Y[path[0]] + chain.end_Y[path[-1]]
        total += sum(chain.transitions_YY[a, b] for a, b in itertools.pairwise(path))
        return np.exp(total / temperature)

    weights = {path: weight(path) for path in itertools.product(range(3), repeat=words)}
    total = sum(weights.values())
    marginals_TY = lattice.marginals()
    for t, y in itertools.product(range(words), range(3)):
        expected = sum(w for path, w in weights.items() if path[t] == y) / total
        assert marginals_TY[t, y] == pytest.approx(expected, abs=1e-9)
    assert marginals_TY[0, 2] == 0
    assert marginals_TY[-1, 1] == 0
    best = max(weights, key=weights.__getitem__)
    assert lattice.probability(0, np.array(best)) == pytest.approx(weights[best] / total, rel=1e-6)


LABELS = ["O", *(f"{letter}-{name}" for letter in "BIES" for name in ("PER", "LOC"))]


@given(labels=st.lists(st.sampled_from(LABELS), max_size=7))
def test_spans_are_those_that_raykd_reads(labels):
    assert [(first, last + 1, name) for first, last, name in decode_spans(labels)] == read_spans(labels)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ada O'Neill lives in St. Gallen, 3.5 km away.", "Ada|O'Neill|lives|in|St|.|Gallen|,|3.5|km|away|."),
        ("„Jean-Luc“ sagte: ja!", "„|Jean-Luc|“|sagte|:|ja|!"),
        ("a__b 中文 ok", "a|__|b|中|文|ok"),
        ("தமிழ் ஆனால், café", "தமிழ்|ஆனால்|,|café"),
        ("می\u200cخواهم I ❤️ NY", "می\u200cخواهم|I|❤️|NY"),
        ("  ", ""),
    ],
)
def test_text_is_divided_at_white_space_and_signs(text, words):
    assert "|".join(words_in(text)) == words


@given(st.lists(st.integers(1, 30)), st.integers(1, 6))
def test_batches_have_similar_sizes_and_little_padding(sizes, batch):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "BATCH_PIECES", 20)
        actual = list(session.batches_by_size(sizes, batch))
    assert [sizes[place] for batch_places in actual for place in batch_places] == sorted(sizes)
    assert sorted(place for batch_places in actual for place in batch_places) == list(range(len(sizes)))
    for batch_places in actual:
        assert len(batch_places) <= batch
        assert len(batch_places) == 1 or len(batch_places) * max(sizes[place] for place in batch_places) <= 20


def test_it_imports_itself_and_what_an_export_asks_for():
    """Nothing of raykd: the package is copied into every export."""
    allowed = {*sys.stdlib_module_names, "numpy", "onnxruntime", "tokenizers"}
    files = sorted(Path(labeller.__file__).parent.glob("*"))
    modules = {path.stem for path in files if path.suffix == ".py"}
    assert {path.name for path in files} - {"__pycache__"} == {f"{name}.py" for name in modules}
    for name in modules:
        tree = ast.parse(Path(labeller.__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert {alias.name.partition(".")[0] for alias in node.names} <= allowed, name
            if isinstance(node, ast.ImportFrom):
                importable = modules if node.level == 1 else allowed
                assert node.level <= 1, name
                assert (node.module or "").partition(".")[0] in importable, name
