"""Classifiers from Transformers checkpoints: with its own head, or with a new one over the corpus' tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from raykd.corpora.pretrained import HFVocabulary
from raykd.errors import StoreError
from raykd.forms.tag_schemes import marks_both_ends
from raykd.identity import PlainObject
from raykd.layers.checkpoint import checkpoint_folder, reads_token_types, untrained_model
from raykd.layers.cut import Cut
from raykd.layers.heads import TagMask
from raykd.layers.hf_config import CLASSES
from raykd.layers.hf_tagger import HFTagger
from raykd.layers.label_map import match_labels
from raykd.layers.piece_labels import FirstPieceLabels, piece_labels
from raykd.layers.transition_biases import BIASES_FILE, DEFAULT, TransitionBiases

if TYPE_CHECKING:
    from collections.abc import Mapping

    from raykd.layers.hf_config import HFConfig
    from raykd.layers.model_config import BuildInputs
    from raykd.layers.piece_labels import WordLabels


def classifier(
    config: HFConfig,
    inputs: BuildInputs,
    *,
    pools: bool,
    labels: Mapping[str, str | None] | None = None,
    reading: TransitionBiases | str | None = None,
    precision: Literal["float32", "bf16"] = "float32",
) -> HFTagger:
    """Load a checkpoint as a tagger.

    Args:
        config: the checkpoint.
        inputs: tags, unit and vocabulary of the task.
        pools: True for a sequence classifier: one label for a sentence, by the checkpoint's own pooling.
        labels: other names for the labels of the checkpoint's own head, which are matched to the tags by name. None: a
            new head, drawn from torch's generator.
        reading: transition biases of a checkpoint that labels every piece of a word, or the name of an operating point
            that has them; None: it labels the first piece.
        precision: precision of computation outside training.

    Raises:
        StoreError: there is no such checkpoint, it changed, it has no trained head and gets no new one, its labels do
            not correspond to the tags, or it has no layer that `freeze` names.
    """
    new_head: dict[str, Any] = {}
    if labels is None:
        names = dict(enumerate(inputs.tag_set.tags))
        new_head = {"id2label": names, "label2id": {tag: number for number, tag in names.items()}}
        new_head |= {"num_labels": len(inputs.tag_set), "ignore_mismatched_sizes": True}
    model, missing = config.load(CLASSES[pools], **new_head)
    if labels is not None and missing:
        head_name = "sequence-classification" if pools else "token-classification"
        raise StoreError(
            config.path, f"has no trained {head_name} head ({missing[0]})", "set fine_tune: true"
        )
    # In the configuration, since runs and exported checkpoints keep it.
    model.config.labelled_pieces = "first" if reading is None else "every"
    if reading is not None:
        model.config.transition_biases = _biases(config.path, model, reading).model_dump()
    sizes: dict[str, Any] = config.sizes(model)
    sizes["spaces"] = () if reading is None else HFVocabulary.load(str(checkpoint_folder(config.path))).spaces
    if inputs.unit == "sentence":
        folder = checkpoint_folder(config.path)
        special = HFVocabulary.load(str(folder)).special
        new_ids = (
            {old: new for new, old in enumerate(inputs.kept_pieces)} if inputs.kept_pieces is not None else {}
        )
        sizes["separator"] = [new_ids.get(piece, piece) for piece in special.separator]
        sizes["types"] = reads_token_types(model, folder)
    tagger = _tagger(config, model, inputs, pools=pools, labels=labels, precision=precision, **sizes)
    return tagger.prune(inputs.kept_pieces).cut(config.cut)


def rebuild_classifier(
    config: HFConfig,
    architecture: PlainObject,
    inputs: BuildInputs,
    *,
    pools: bool,
    labels: Mapping[str, str | None] | None = None,
    precision: Literal["float32", "bf16"] = "float32",
) -> HFTagger:
    """Build the tagger of a stored architecture, without the checkpoint and its weights.

    Args:
        config: the checkpoint's configuration.
        architecture: result of `HFTagger.architecture`.
        inputs: tags, unit and vocabulary of the task.
        pools: see `classifier`.
        labels: see `classifier`.
        precision: see `classifier`.
    """
    model = untrained_model(CLASSES[pools], architecture["config"])
    names = ("limit", "prefix", "suffix", "separator", "spaces", "types")
    sizes = {name: architecture[name] for name in names if name in architecture}
    tagger = _tagger(config, model, inputs, pools=pools, labels=labels, precision=precision, **sizes)
    return tagger.cut(Cut.from_plain(architecture.get("cut", {})))


def _biases(path: str, model: Any, biases: TransitionBiases | str) -> TransitionBiases:
    """Return transition biases, or those of an operating point; raykd writes them into a checkpoint's configuration."""
    if isinstance(biases, str):
        folder = checkpoint_folder(path)
        stored: dict[str, float] = getattr(model.config, "transition_biases", None) or {}
        is_stored = biases == DEFAULT and bool(stored) and not (folder / BIASES_FILE).is_file()
        biases = TransitionBiases(**stored) if is_stored else TransitionBiases.read(folder, biases)
    if biases != TransitionBiases() and not marks_both_ends(model.config.id2label.values()):
        problem = (
            "has transition biases, but its labels do not mark both ends of a span, as those of BIOES do"
        )
        raise StoreError(path, problem, "omit teachers.operating_point")
    return biases


def _tagger(
    config: HFConfig,
    model: Any,
    inputs: BuildInputs,
    *,
    labels: Mapping[str, str | None] | None,
    **options: Any,
) -> HFTagger:
    names = [model.config.id2label[i] for i in range(model.config.num_labels)]
    label_map = match_labels(names, inputs.tag_set, labels or {}, checkpoint=config.path)
    word_labels: WordLabels = FirstPieceLabels(label_map)
    if getattr(model.config, "labelled_pieces", "first") == "every" and inputs.unit == "word":
        biases = TransitionBiases(**model.config.transition_biases)
        word_labels = piece_labels(label_map, inputs.tag_set, biases)
    return HFTagger(
        model, word_labels, unit=inputs.unit, freeze=config.freeze,
        tag_mask=TagMask(inputs.tag_set.allowed_places()), **options,
    )  # fmt: skip
