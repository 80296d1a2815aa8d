"""Label forms: what labels look like. To add one, add its module and its line here."""

from collections.abc import Mapping
from types import MappingProxyType

from raykd.forms.flat import FLAT
from raykd.forms.form import LabelForm
from raykd.forms.pieces import PIECES
from raykd.forms.spans import SPANS
from raykd.forms.steps import STEPS
from raykd.forms.tree import TREE
from raykd.forms.utterance import UTTERANCES

FORMS: Mapping[str, LabelForm] = MappingProxyType(
    {form.name: form for form in (FLAT, SPANS, UTTERANCES, STEPS, TREE, PIECES)}
)

__all__ = ["FLAT", "FORMS", "PIECES", "SPANS", "STEPS", "TREE", "UTTERANCES", "LabelForm"]
