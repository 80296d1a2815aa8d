"""The page of a running sweep."""

import pytest

from raykd.cli import pages
from raykd.cli.pages import RunningPage, progress_in_words, update_page
from raykd.sweep.status import PhaseStatus, Status


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Page(RunningPage):
    """Writes nothing, and takes two seconds."""

    def __init__(self, clock):
        super().__init__(None, clock=clock)  # type: ignore[arg-type]
        self.written, self.clock = [], clock

    def _write(self, *, running):
        self.written.append(running)
        self.clock.now += 2.0


def status(complete: int, running: int = 1) -> Status:
    trials = {"search": {"COMPLETE": complete, "RUNNING": running}}
    left_s = 60.0 / complete * (40 - complete) if complete else None
    return Status(trials=trials, phases=(PhaseStatus("trials", 40, complete, 0, 60.0, left_s=left_s),))


def test_it_is_written_when_trials_have_ended_and_takes_a_hundredth_of_the_time():
    clock = Clock()
    page = Page(clock)
    page(status(0))
    assert page.written == [], "there is nothing to show"
    page(status(1))
    page(status(2))
    assert page.written == ["1 of 40 trials, about 39 min left"]
    clock.now = 199.9
    page(status(3))
    assert len(page.written) == 1
    clock.now = 200.0
    page(status(3))
    assert len(page.written) == 2
    clock.now = 10_000.0
    page(status(3, running=5))
    assert len(page.written) == 2, "nothing ended"


@pytest.mark.parametrize(("took", "written"), [(0.5, [""]), (2.0, []), (None, [])])
def test_an_interrupted_sweep_leaves_a_page_that_does_not_wait(took, written):
    page = Page(Clock())
    page._took = took
    page.interrupted()
    assert page.written == written


def test_after_the_body_nothing_is_written(monkeypatch):
    created_pages = []

    class Made(Page):
        def __init__(self, records):
            super().__init__(Clock())
            created_pages.append(self)
            self._took = 0.1

    class Watched:
        def add_watcher(self, page):
            return pytest.MonkeyPatch.context()

    monkeypatch.setattr(pages, "RunningPage", Made)
    with update_page(Watched(), None):  # type: ignore[arg-type]
        pass
    with pytest.raises(KeyboardInterrupt), update_page(Watched(), None):  # type: ignore[arg-type]
        raise KeyboardInterrupt
    assert [page.written for page in created_pages] == [[], [""]]


def test_how_far_it_is_in_words():
    trials, baseline = (
        PhaseStatus("trials", 40, 40, 0, 60.0, ended=True),
        PhaseStatus("baseline", 7, 3, 0, 300.0, left_s=400.0),
    )
    assert (
        progress_in_words(Status(phases=(trials, baseline)))
        == "40 of 40 trials, baseline 3 of 7, about 7 min left"
    )
    assert progress_in_words(Status(phases=(trials,))) == "40 of 40 trials"
