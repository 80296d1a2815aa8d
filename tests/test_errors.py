import pickle

import pytest

from raykd import errors
from raykd.errors import (
    CorpusError,
    ExportError,
    Fault,
    MissingError,
    OtherVersionError,
    PlacementError,
    RaykdError,
    RunError,
    SignalError,
    SpecError,
    StoreError,
    TrackingError,
    UnlearntError,
)

EXAMPLES = [
    RaykdError("plain"),
    SpecError((Fault("a.yaml", 3, "student.kind", "unknown 'x'"), Fault("a.yaml", None, "", "empty"))),
    SignalError("'hidden' is needed"),
    CorpusError("train.txt", 7, "two columns expected, got one", "separate them with a tab"),
    StoreError("shard-00000.arrow", "checksum differs", "remove it"),
    MissingError("model.json", "does not exist", "correct the URI"),
    OtherVersionError("model.json", "is of another version", "use that one"),
    PlacementError("2 × 1 CPU > 1 CPU"),
    TrackingError("no answer"),
    RunError("out of memory"),
    UnlearntError("bilstm_crf (en dev F1 0.0)", "36 optimiser steps", True),
    ExportError("no such graph"),
]


def test_every_class_has_an_example():
    defined = {
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, RaykdError)
    }
    assert defined == {type(example) for example in EXAMPLES}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_cross_processes(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_exit_codes_differ_from_success_and_tracebacks():
    codes = [type(example).exit_code for example in EXAMPLES]
    assert 0 not in codes
    assert {type(e): e.exit_code for e in EXAMPLES}[SpecError] == 2


def test_messages_say_where():
    assert str(EXAMPLES[1]) == "a.yaml:3 student.kind: unknown 'x'\na.yaml: empty"
    assert str(EXAMPLES[3]) == "train.txt:7: two columns expected, got one; separate them with a tab"
    assert str(EXAMPLES[4]) == "shard-00000.arrow: checksum differs; remove it"
