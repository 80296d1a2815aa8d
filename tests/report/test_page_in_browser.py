"""The page in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from raykd.report.front_page import front_html
from raykd.report.training_curves import training_curves
from tests.report.browser import IN_BROWSER, drawn, dumped
from tests.report.fake_epochs import run_of, trained
from tests.report.fake_sweep import TEACHER, fake_trials

pytestmark = IN_BROWSER

LOOK = """
const rows = [...document.querySelectorAll("tr[data-number]")], wait = ms => new Promise(done => setTimeout(done, ms));
const drawn = id => document.getElementById(id).querySelectorAll("path.point, .point path, .lines path").length;
const ink = () => getComputedStyle(document.body).color;
const press = (on, key) => on.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
(async () => {
  while (!document.documentElement.dataset.ready) await wait(20);
  const seen = {points: drawn("plot"), curves: drawn("curves"), languages: drawn("languages"), volume: drawn("volume"),
    importance: drawn("importance"), first: document.getElementById("student").value, ink: ink(),
    wide: document.documentElement.scrollWidth, inner: innerWidth};
  rows[4].click();
  seen.clicked = [document.getElementById("student").value, rows[4].dataset.number,
    document.querySelector("#box b").textContent, document.querySelectorAll("tr.chosen").length];
  rows[4].focus(); press(rows[4], "ArrowDown");
  seen.focused = document.activeElement === rows[5];
  press(rows[5], "Enter");
  seen.entered = [document.getElementById("student").value, rows[5].dataset.number];
  seen.stops = rows.filter(row => row.tabIndex === 0).length;
  const point = document.querySelectorAll("#plot .scatterlayer .trace path.point").length;
  document.getElementById("plot").emit("plotly_click", {points: [{customdata: 1}]});
  seen.point = document.getElementById("student").value;
  for (const option of document.querySelectorAll("#student option")) {
    document.getElementById("student").value = option.value;
    document.getElementById("student").onchange({target: option});
    (seen.each ??= []).push([option.value, document.querySelectorAll("#curves .lines path.js-line").length]);
  }
  document.getElementById("theme").click();
  seen.other = ink();
  const heading = document.querySelectorAll("#table th")[3]; press(heading, "Enter");
  seen.sorted = heading.getAttribute("aria-sort");
  document.getElementById("test").click();
  seen.axis = document.querySelector("#plot .ytitle").textContent;
  const out = document.createElement("pre"); out.id = "seen"; out.textContent = JSON.stringify(seen);
  document.body.append(out);
})();
"""


def seen_in(folder: Path, page: str, *options: str) -> dict:
    """Return the findings of the script above on a page."""
    path = folder / "page.html"
    path.write_text(page.replace("</body>", f"<script>{LOOK}</script></body>"))
    return dumped(folder, path, *options)


@pytest.fixture(scope="module")
def page() -> str:
    trials = fake_trials()
    runs = [trained(run_of("representation", "gold", seed=seed), epochs=4) for seed in range(2)]
    curves = {trial.number: training_curves(runs) for trial in trials if trial.state == "COMPLETE"}
    shares = {"f1": {"student.hidden_dim": 0.7, "objective": 0.3}}
    return front_html(trials, [TEACHER], curves=curves, importances=shares)


def test_every_picture_is_drawn_and_every_student_can_be_chosen(page, tmp_path):
    output = seen_in(tmp_path, page)
    assert min(output[name] for name in ("points", "curves", "languages", "volume", "importance")) > 0, output
    assert output["first"] == "3"
    chosen, clicked, box, marked = output["clicked"]
    assert chosen == clicked
    assert (box.startswith(f"#{int(clicked):02d} "), marked) == (True, 1)
    assert output["focused"]
    assert output["entered"][0] == output["entered"][1]
    assert output["stops"] == 1, "the table is one stop of the Tab key"
    assert output["point"] == "1"
    complete = {str(trial.number) for trial in fake_trials() if trial.state == "COMPLETE"}
    assert {number for number, _ in output["each"]} == complete
    assert all(lines > 2 for _, lines in output["each"])
    assert (output["sorted"], output["axis"]) == ("ascending", "test F1, %")
    assert (output["ink"], output["other"]) == ("rgb(29, 39, 51)", "rgb(228, 234, 240)")


def test_a_phone_scrolls_down_only_and_a_dark_system_has_a_dark_page(page, tmp_path):
    tell = """<script>(async () => {
      while (!document.documentElement.dataset.ready) await new Promise(done => setTimeout(done, 20));
      parent.postMessage({wide: document.documentElement.scrollWidth, inner: innerWidth,
        ink: getComputedStyle(document.body).color}, "*"); })();</script>"""
    (tmp_path / "page.html").write_text(page.replace("</body>", f"{tell}</body>"))
    # Chromium's own windows are 500 pixels wide at least.
    frame = tmp_path / "frame.html"
    frame.write_text("""<script>onmessage = event => { const out = document.createElement("pre"); out.id = "seen";
      out.textContent = JSON.stringify(event.data); document.body.append(out); };</script>
      <iframe src="page.html" style="border:0;width:390px;height:4000px"></iframe>""")
    output = dumped(tmp_path, frame, "--blink-settings=preferredColorScheme=0")
    assert output == {"wide": 390, "inner": 390, "ink": "rgb(228, 234, 240)"}


def test_the_page_of_a_sweep_that_runs_keeps_what_was_chosen_when_it_loads_itself_again(tmp_path):
    trials = fake_trials()
    page = front_html(trials, [TEACHER], running="12 of 40 trials")
    quick = page.replace("name='raykd-again' content='30'", "name='raykd-again' content='2'")
    assert quick != page
    # Once is enough: a browser in virtual time would wait for ever.
    once = """<script>if (performance.getEntriesByType("navigation")[0].type === "reload")
      document.querySelector("meta[name=raykd-again]").content = 1e6;</script></head>"""
    tell = """<script>(async () => {
      while (!document.documentElement.dataset.ready) await new Promise(done => setTimeout(done, 20));
      const by = id => document.getElementById(id);
      if (performance.getEntriesByType("navigation")[0].type !== "reload") {
        document.querySelectorAll("tr[data-number]")[4].click(); by("all").click(); by("test").click();
        sessionStorage.setItem("chosen", by("student").value);
        return;
      }
      const out = document.createElement("pre"); out.id = "seen";
      out.textContent = JSON.stringify({same: by("student").value === sessionStorage.getItem("chosen"),
        all: by("all").checked, test: by("test").getAttribute("aria-pressed"), old: by("old").hidden});
      document.body.append(out); })();</script>"""
    path = tmp_path / "page.html"
    path.write_text(quick.replace("</head>", once).replace("</body>", f"{tell}</body>"))
    output = dumped(tmp_path, path)
    assert output == {"same": True, "all": True, "test": "true", "old": True}


def test_stages_and_their_steps_are_named_above_the_curves_each_with_an_axis_of_losses(tmp_path):
    trials = fake_trials()
    run = trained(run_of("representation", "logits", "gold"), epochs=6, steps=2)
    plain = trained(run_of("structural"), epochs=3)
    pages = [
        front_html(trials, [TEACHER], curves={3: training_curves([trained_run])})
        for trained_run in (run, plain)
    ]
    several, single = (pictures["curves"] for pictures in drawn(tmp_path, *pages))
    assert several["layout"]["xaxis2"]["tickvals"] == [0.5, 6.5, 12.5, 18.5, 24.5, 30.5]
    assert several["layout"]["xaxis2"]["ticktext"][:3] == [
        "<b>stage 1 representation</b><br>head", "+ projection", "<b>stage 2 logits</b><br>head",
    ]  # fmt: skip
    losses = [trace for trace in several["data"] if trace.get("name") == "training loss"]
    assert [trace["yaxis"] for trace in losses] == ["y2", "y3", "y4"]
    (curve,) = training_curves([run])
    assert [loss for trace in losses for loss in trace["y"]] == pytest.approx(curve.loss, rel=1e-3)
    assert [trace["showlegend"] for trace in losses] == [True, False, False]
    stars = [
        trace for trace in several["data"] if trace.get("name") == "best epochs" and not trace.get("yaxis")
    ]
    assert [trace["x"] for trace in stars] == [[step.best + 1 for step in curve.steps]]
    assert single["layout"]["xaxis2"]["tickvals"] == []
    assert single["layout"]["yaxis2"]["title"]["text"] == "loss"
