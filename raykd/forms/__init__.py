"""Label forms: the shape of labels and the unit that each label belongs to.

To add a form, add its module and its line in `FORMS`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from raykd.forms.flat import FLAT
from raykd.forms.form import LabelForm
from raykd.forms.labels import Labels
from raykd.forms.pieces import PIECES
from raykd.forms.spans import SPANS
from raykd.forms.steps import STEPS
from raykd.forms.tag_set import TagSet
from raykd.forms.tree import TREE
from raykd.forms.utterance import UTTERANCES
from raykd.identity import PlainObject

FORMS: Mapping[str, LabelForm] = MappingProxyType(
    {form.name: form for form in (FLAT, SPANS, UTTERANCES, STEPS, TREE, PIECES)}
)


def form_of(scheme: str) -> LabelForm:
    """Return the label form for files of a tag scheme.

    Args:
        scheme: Tag scheme of a file, as in `LabelForm.reads`.

    Returns:
        The first form that lists the scheme.
    """
    return next(form for form in FORMS.values() if scheme in form.reads)


def labels_from(plain: PlainObject) -> Labels:
    """Return the labels written by `to_plain`.

    Args:
        plain: Object with the scheme of a form under `scheme`.
    """
    forms = {form.scheme: form for form in FORMS.values()}
    return forms[plain["scheme"]].labels_from(plain)


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
