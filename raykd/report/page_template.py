"""The frame of the HTML page: its style and the script that switches, filters and sorts."""

from string import Template

PAGE = Template("""<!doctype html>
<html lang="en"><head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { margin: 0; color: #1d2733; background: #fff;
  font: 14px/1.45 Inter, "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 22px 28px 40px; }
h1 { font-size: 22px; margin: 0 0 14px; font-weight: 650; }
.verdict { font-size: 16px; font-weight: 600; margin: 0 0 14px; padding: 8px 14px; border-radius: 8px; }
.verdict.ship { background: #e9f6ef; color: #1f7a4d; } .verdict.wait { background: #fff4e0; color: #8a5a00; }
.findings { margin: 0 0 14px; padding: 0 0 0 18px; color: #8a5a00; } .findings:empty { display: none; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(155px, 1fr)); gap: 12px; margin: 0 0 14px; }
.tile { border: 1px solid #e3e7eb; border-radius: 8px; padding: 9px 14px; }
.tile b { display: block; font-size: 20px; font-weight: 650; }
.tile span { color: #66727f; }
.bar { display: flex; justify-content: space-between; align-items: center; gap: 16px; margin-top: 4px; }
.switch { display: inline-flex; flex: none; border: 1px solid #cfd6dd; border-radius: 7px; overflow: hidden; }
.switch button { border: 0; background: #fff; color: #1d2733; padding: 5px 14px;
  font: inherit; cursor: pointer; white-space: nowrap; }
.switch button[aria-pressed=true] { background: #1d2733; color: #fff; }
.note { color: #66727f; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: right; font-weight: 600; color: #66727f; cursor: pointer;
  white-space: nowrap; user-select: none; border-bottom: 1px solid #cfd6dd; padding: 6px 9px; }
th[aria-sort=ascending]::after { content: " ▲"; font-size: 9px; }
th[aria-sort=descending]::after { content: " ▼"; font-size: 9px; }
td { text-align: right; padding: 4px 9px; border-bottom: 1px solid #f0f2f4; white-space: nowrap; }
th.text, td.text { text-align: left; }
tr.teacher td { color: #9a6c00; font-weight: 600; background: #fffaf0; }
tr.front td { font-weight: 600; }
tr.quiet td, tr.baseline td { color: #8893a0; }
td .dot { display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 7px; }
td.up { color: #1f7a4d; } td.down { color: #b3261e; }
body:not(.all) tr.quiet { display: none; }
.student { margin-top: 26px; }
.student select { font: inherit; font-weight: 600; color: inherit; background: #fff; max-width: 100%;
  border: 1px solid #cfd6dd; border-radius: 7px; padding: 5px 10px; }
h2 { font-size: 16px; font-weight: 650; margin: 18px 0 0; }
body:not(.test) .on-test, body.test .on-dev { display: none; }
</style></head><body>
<main>
<h1>$heading</h1>
<p class="verdict $decided">$verdict</p>
<div class="tiles">$tiles</div>
<ul class="findings">$findings</ul>
<div class="bar"><div class="switch" role="group" aria-label="Which score">
<button id="dev" aria-pressed="true">dev $label</button>
<button id="test" aria-pressed="false">test $label</button></div>
<span class="note">The front is chosen on dev $label, latency and size (marker area);
students below the line are on it for their size.</span></div>
<div id="plot"></div>
<div class="bar"><span class="note">$languages</span>
<label class="note"><input type="checkbox" id="all"> show all $all trials</label></div>
<div class="wide"><table id="table"><thead><tr>$head</tr></thead><tbody>$body</tbody></table></div>
<section class="student">
<label>One student of the front: <select id="student">$students</select></label>
<div id="by-language"><h2>$label by language</h2>
<span class="note">Languages with the most labels to train on first.</span><div id="languages"></div></div>
<div id="by-epoch"><h2>Training, epoch by epoch</h2>
<span class="note">A line begins a stage, a dotted line a step that trains more layers; each starts from the best epoch
of the one before. Losses are per sentence; of several stages each has its own scale, whose ends stand above it.</span>
<div id="curves"></div></div>
</section>
</main>
<script>$plotly</script>
<script type="application/json" id="figures">$figures</script>
<script>
const figures = JSON.parse(document.getElementById("figures").textContent);
// Nothing here may leave the reader's machine: no button that uploads the chart.
const options = {responsive: true, displaylogo: false, showSendToCloud: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "pan2d", "zoomIn2d", "zoomOut2d", "sendChartToCloud"]};
let part = "dev";
const chooser = document.getElementById("student");
function draw(place, figure) {
  const there = document.getElementById(place);
  there.parentElement.hidden = !figure;
  if (figure) Plotly.react(there, figure.data, figure.layout, options);
}
function student() {
  const languages = figures.languages[part], curves = figures.curves[chooser.value];
  for (const trace of languages ? languages.data : [])
    trace.visible = trace.meta === undefined || trace.meta === Number(chooser.value);
  draw("languages", languages);
  draw("curves", curves);
  document.querySelector(".student").hidden = !languages && !Object.keys(figures.curves).length;
}
chooser.onchange = student;
function show(chosen) {
  part = chosen;
  Plotly.react("plot", figures[part].data, figures[part].layout, options);
  student();
  document.body.classList.toggle("test", part === "test");
  for (const name of ["dev", "test"])
    document.getElementById(name).setAttribute("aria-pressed", String(name === part));
}
document.getElementById("dev").onclick = () => show("dev");
document.getElementById("test").onclick = () => show("test");
document.getElementById("all").onchange =
  event => document.body.classList.toggle("all", event.target.checked);
for (const th of document.querySelectorAll("#table th")) th.onclick = () => {
  const up = th.getAttribute("aria-sort") !== "ascending", at = th.cellIndex;
  const body = document.querySelector("#table tbody");
  const value = row => row.cells[at].dataset.value;
  const order = (a, b) => {
    const x = value(a), y = value(b);
    if (x === "" || y === "") return (x === "") - (y === "");
    const difference = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
    return up ? difference : -difference;
  };
  for (const other of document.querySelectorAll("#table th")) other.removeAttribute("aria-sort");
  th.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...body.rows].filter(row => !row.classList.contains("teacher")).sort(order);
  for (const row of rows) body.append(row);
};
show("dev");
</script></body></html>
""")
