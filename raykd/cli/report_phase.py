"""The phase `report`: write the front as files of the sweep's folder."""

from __future__ import annotations

from raykd.cli.pages import report_files
from raykd.pluralise import pluralise
from raykd.sweep.phases.interface import Phase, PhaseContext


class Report(Phase):
    """The last phase of a sweep. Afterwards `files` holds the report by name."""

    name = "report"

    def __init__(self, context: PhaseContext):
        super().__init__(context)
        self.files: dict[str, bytes] = {}

    def run(self) -> tuple[()]:
        """Write the report."""
        records = self.sweep.records
        self.listener.begin(self.name, 1)
        self.files = report_files(records.trials(), records.teachers(), records)
        for name, data in self.files.items():
            records.save_file(name, data)
        return ()

    def summary(self) -> str:
        """Return the number of files in words."""
        return f"{pluralise(len(self.files), 'file')} in the sweep's folder"
