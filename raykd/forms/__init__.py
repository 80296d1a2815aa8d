"""Label forms: what labels look like, and whose they are. To add one, add its module and its line here."""

from collections.abc import Mapping
from types import MappingProxyType

from raykd.forms.flat import FLAT
from raykd.forms.form import LabelForm, TagSet
from raykd.forms.labels import Labels
from raykd.forms.pieces import PIECES
from raykd.forms.spans import SPANS
from raykd.forms.steps import STEPS
from raykd.forms.tree import TREE
from raykd.forms.utterance import UTTERANCES
from raykd.identity import PlainObject

FORMS: Mapping[str, LabelForm] = MappingProxyType(
    {form.name: form for form in (FLAT, SPANS, UTTERANCES, STEPS, TREE, PIECES)}
)


def form_of(scheme: str) -> LabelForm:
    """The form that reads files of a tag scheme."""
    return next(form for form in FORMS.values() if scheme in form.reads)


def labels_from(plain: PlainObject) -> Labels:
    """What `to_plain` of some labels wrote."""
    own = {form.scheme: form for form in FORMS.values()}
    return own[plain["scheme"]].labels_from(plain)


__all__ = [
    "FLAT",
    "FORMS",
    "PIECES",
    "SPANS",
    "STEPS",
    "TREE",
    "UTTERANCES",
    "LabelForm",
    "Labels",
    "TagSet",
    "form_of",
    "labels_from",
]
