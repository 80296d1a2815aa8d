"""Documentation that is written from the code stays what the code says."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_the_reference_of_the_sweep_file_is_up_to_date():
    spec = importlib.util.spec_from_file_location("sweep_file", DOCS / "sweep_file.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (DOCS / "SWEEP_FILE.md").read_text(encoding="utf-8")
    assert written == module.reference(), "run python docs/sweep_file.py"
