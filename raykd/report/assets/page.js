"use strict";
const by = id => document.getElementById(id);
const data = JSON.parse(by("figures").textContent);
const FONT = data.front.dev.layout.font;
const INK = FONT.color, PAPER = data.front.dev.layout.hoverlabel.bgcolor, look = data.look;
const AXIS = {gridcolor: look.grid, zeroline: false, title: {font: {color: look.quiet, size: 13}, standoff: 12}};
// Nothing here may leave the reader's machine: no button that uploads the chart.
const options = {responsive: true, displaylogo: false, showSendToCloud: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "pan2d", "zoomIn2d", "zoomOut2d", "sendChartToCloud"]};
const state = {part: "dev", student: by("student").value, dark: false, printing: false, pictures: false};
const narrow = () => innerWidth < 620;

// Pictures.

function themed(value) {
  if (typeof value === "string") return state.dark && !state.printing ? data.dark[value] ?? value : value;
  if (Array.isArray(value)) return value.map(themed);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, themed(item)]));
}
function draw(place, figure) {
  const there = by(place);
  if (!there) return;
  const shown = themed(figure);
  // A finger that scrolls the page must not zoom.
  shown.layout.dragmode = matchMedia("(pointer: coarse)").matches ? false : "zoom";
  const {l, r} = shown.layout.margin;
  if (narrow()) shown.layout.margin = {...shown.layout.margin, l: Math.min(l, 48), r: r > 16 ? r : 8};
  Plotly.react(there, shown.data, shown.layout, {...options, displayModeBar: narrow() ? false : "hover"});
}
function frame(height, layout) {
  return {font: FONT, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", height,
    modebar: {bgcolor: "rgba(0,0,0,0)", color: look.grey, activecolor: INK},
    hoverlabel: {bgcolor: PAPER, bordercolor: look.grey, font: FONT, align: "left"},
    legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0, itemsizing: "constant"}, ...layout};
}
function drawFront() {
  const figure = data.front[state.part], chosen = {x: [], y: []};
  const traces = figure.data.map(trace => {
    if (!trace.customdata) return trace;
    const at = trace.customdata.indexOf(Number(state.student));
    if (at >= 0) { chosen.x.push(trace.x[at]); chosen.y.push(trace.y[at]); }
    return {...trace, hovertext: trace.customdata.map(number => data.students[number]?.box)};
  });
  const ring = {...chosen, mode: "markers", hoverinfo: "skip", showlegend: false, cliponaxis: false,
    marker: {symbol: "circle-open", size: 33, color: INK, line: {width: 2}}};
  const layout = {...figure.layout, height: narrow() ? 460 : figure.layout.height};
  draw("plot", {data: [...traces, ring], layout});
}
function drawLanguages() {
  const all = data.languages, own = data.students[state.student], part = state.part;
  const there = all && own && own[part] && all.names.some((_, i) => own[part][i] !== null);
  by("by-language").hidden = !there;
  if (!there) return;
  const known = all.names.map((_, i) => i).filter(i => all.front.concat(Number(state.student))
    .some(number => data.students[number]?.[part]?.[i] != null));
  const names = known.map(i => all.names[i]), pick = values => known.map(i => values[i]);
  const line = (scores, name, more) => ({x: names, y: pick(scores), yaxis: "y2", name, connectgaps: false,
    hovertemplate: name + " %{y:.1f}<extra></extra>", ...more});
  const labels = all.labels[own.labels], traces = [];
  if (labels) traces.push({type: "bar", x: names, y: pick(labels), name: "labels",
    marker: {color: look.bar, line: {width: 0}}, hovertemplate: "%{y:,} training labels<extra></extra>"});
  const others = all.front.filter(number => String(number) !== state.student && data.students[number]?.[part]);
  traces.push({x: others.flatMap(() => names), y: others.flatMap(number => pick(data.students[number][part])),
    yaxis: "y2", mode: "markers", name: "others of the front", hoverinfo: "skip",
    marker: {size: 5, color: look.grey, opacity: .8}});
  if (all.teacher[part])
    traces.push(line(all.teacher[part], "teacher", {mode: "lines", line: {color: look.gold, dash: "dash"}}));
  const twin = data.students[own.twin]?.[part];
  if (twin) traces.push(line(twin, "gold labels only", {mode: "markers",
    marker: {size: 8, color: PAPER, line: {color: look.gold, width: 1.6}}}));
  const colour = own.colour ?? look.gold;
  traces.push(line(own[part], own.name, {mode: "lines+markers", line: {color: colour, width: 1.2},
    marker: {size: 9, color: colour, symbol: own.symbol ?? "circle"}}));
  const many = names.length > (narrow() ? 10 : 20);
  draw("languages", {data: traces, layout: frame(380, {
    hovermode: "x unified", margin: {l: 60, r: labels ? 64 : 16, t: 44, b: 30},
    xaxis: {type: "category", showgrid: false, dtick: 1, ticklabelstandoff: 4, tickangle: many ? -90 : 0,
      categoryorder: "array", categoryarray: names},
    // Bars are on the axis below the other one, so that points are never behind them.
    yaxis: {...AXIS, side: "right", title: {...AXIS.title, text: "training labels"}, showgrid: false, visible: !!labels},
    yaxis2: {...AXIS, side: "left", overlaying: "y", tickmode: "auto",
      title: {...AXIS.title, text: `${part} ${data.label}, %`}},
  })});
}
function height(loss, [, , low, high]) {
  if (low === high) return .5;
  return low <= 0 ? (loss - low) / (high - low) : Math.log(loss / low) / Math.log(high / low);
}
function logarithmic(low, high) {
  const ticks = [];
  for (let e = Math.floor(Math.log10(low)) - 1; e <= Math.log10(high) + 1; e++)
    for (const m of high / low > 50 ? [1] : [1, 2, 5]) ticks.push(Number((m * 10 ** e).toPrecision(1)));
  return {type: "log", tickvals: ticks, ticktext: ticks.map(String)};
}
function drawCurves() {
  const curves = data.students[state.student]?.curves;
  by("by-epoch").hidden = !curves;
  if (!curves) return;
  const [first, ...others] = curves.runs, several = curves.scales.length > 1;
  const epochs = run => run.at ?? run.dev.map((_, i) => i);
  const x = epochs(first), mode = first.epochs <= 40 ? "lines+markers" : "lines", traces = [];
  const named = run => `dev ${data.label}${run.name ? ", " + run.name : ""}`;
  const scores = (run, name, line) => traces.push({x: epochs(run).map(e => e + 1), y: run.dev, mode, line,
    marker: {size: 4}, name, showlegend: !!name, hovertemplate: `${named(run)} %{y:.1f}<br>epoch %{x}<extra></extra>`});
  others.forEach((run, place) => scores(run, place ? "" : "other runs", {color: look.grey, width: 1}));
  scores(first, named(first), {color: look.kind0, width: 2});
  const losses = (name, values, line) => {
    if (!values) return;
    const trace = {x: [], y: [], customdata: [], yaxis: "y2", name, mode, marker: {size: 4}, line,
      hovertemplate: `${name} %{customdata}<br>epoch %{x}<extra></extra>`};
    for (const scale of curves.scales) {
      x.forEach((epoch, place) => {
        if (epoch < scale[0] || epoch >= scale[1] || values[place] === null) return;
        trace.x.push(epoch + 1);
        trace.y.push(several ? height(values[place], scale) : values[place]);
        trace.customdata.push(values[place]);
      });
      // After each stage there is a gap: the loss of the next one is another.
      for (const key of ["x", "y", "customdata"]) trace[key].push(null);
    }
    if (trace.x.some(value => value !== null)) traces.push(trace);
  };
  losses("training loss", curves.loss, {color: look.quiet, width: 1.5});
  losses("held-out loss", curves.held_out, {color: look.kind1, width: 1.5, dash: "dot"});
  const marks = (best, y, axis) => traces.push({x: best.map(each => each[0] + 1), y, yaxis: axis, mode: "markers",
    showlegend: axis === "y", cliponaxis: false, name: curves.best.length > 1 ? "best epochs" : "best epoch",
    marker: {size: 10, symbol: "star", color: look.ship, line: {color: PAPER, width: 1}}, hoverinfo: "text",
    hovertext: best.map(each => `best epoch${each[1]}: ${each[0] + 1}`)});
  const at = epoch => x.indexOf(epoch), scale = epoch => curves.scales.find(s => s[0] <= epoch && epoch < s[1]);
  marks(curves.best, curves.best.map(each => first.dev[at(each[0])]), "y");
  const chosen = curves.best.filter(each => each[2] && curves.held_out);
  if (chosen.length) marks(chosen, chosen.map(each => {
    const loss = curves.held_out[at(each[0])];
    return several ? height(loss, scale(each[0])) : loss;
  }), "y2");
  const [PLOT, BELOW, LEGEND, ROW] = [380, 46, narrow() ? 76 : 44, 17], annotations = [], shapes = [];
  const labels = curves.labels?.[by("by-epoch").clientWidth < 560 ? 1 : 0] ?? [];
  const rows = Math.max(0, ...labels.map(label => label[2] + 1));
  for (const [epoch, text, row, leftwards, stage] of labels) {
    annotations.push({x: epoch + .5, y: 1, yref: "paper", yshift: ROW * row, yanchor: "bottom", text, showarrow: false,
      font: {size: stage ? 13 : 11, color: stage ? INK : look.quiet},
      xanchor: leftwards ? "right" : "left", xshift: leftwards ? -3 : 3});
    shapes.push({type: "line", x0: epoch + .5, x1: epoch + .5, y0: 0, y1: 1 + ROW * (row + 1) / PLOT, yref: "paper",
      layer: "below", line: {color: look.grey, width: stage ? 1.3 : 1, dash: stage ? "solid" : "dot"}});
  }
  const plot = by("by-epoch").clientWidth - 76;
  if (several) for (const [start, end, low, high] of curves.scales) {
    const text = `${low.toPrecision(3) * 1} – ${high.toPrecision(3) * 1}`;
    if (plot * (end - start) / first.epochs > 6.4 * text.length)
      annotations.push({x: start + .5, y: .35, yref: "paper", yanchor: "bottom", xanchor: "left", xshift: 3, text,
        showarrow: false, font: {size: 11, color: look.quiet}});
  }
  const lossAxis = several
    ? {title: {...AXIS.title, text: "loss, by stage"}, range: [-.1, 1.1], tickvals: [0, 1], showticklabels: false}
    : {title: {...AXIS.title, text: "loss"}, ...(curves.scales[0][2] > 0 ? logarithmic(...curves.scales[0].slice(2)) : {})};
  const last = Math.max(...curves.runs.map(run => run.epochs));
  draw("curves", {data: traces, layout: frame(PLOT + BELOW + LEGEND + ROW * rows, {
    margin: {l: 60, r: 16, t: LEGEND + ROW * rows, b: BELOW}, annotations, shapes,
    legend: {orientation: "h", x: 0, y: 1, yref: "container", yanchor: "top", itemsizing: "constant"},
    xaxis: {...AXIS, title: {...AXIS.title, text: "epoch"}, range: [.5, last + .5], anchor: "y2", tickformat: "d"},
    yaxis: {...AXIS, title: {...AXIS.title, text: `dev ${data.label}, %`}, domain: [.42, 1]},
    yaxis2: {...AXIS, domain: [0, .35], anchor: "x", ...lossAxis},
  })});
}
function drawStudent() {
  drawLanguages();
  drawCurves();
}
function drawAll() {
  if (!state.pictures) return;
  drawFront();
  drawStudent();
  if (data.volume) draw("volume", data.volume);
  if (data.importance) draw("importance", data.importance);
  if (data.scores) draw("scores", data.scores);
}

// What is shown.

function choose(number, said = true) {
  state.student = String(number);
  by("student").value = state.student;
  const own = data.students[state.student];
  // The box ends with the settings, after an empty line; its long lines are broken for a box beside a marker.
  const [figures, settings = ""] = (own?.box ?? "").replace(/<br> {4}/g, " ").replace(/ ·<br>|<br>· /g, " · ").split("<br><br>");
  by("box").innerHTML = figures + (settings && `<p class="settings"><br>${settings}</p>`);
  for (const row of document.querySelectorAll("tr[data-number]")) {
    const chosen = row.dataset.number === state.student;
    row.classList.toggle("chosen", chosen);
    row.setAttribute("aria-selected", String(chosen));
  }
  reachable();
  by("picked").innerHTML = said && own ? `<b>${own.name}</b> is shown <a href="#student-section">below</a>` : "";
  if (state.pictures) { drawFront(); drawStudent(); }
}
function show(part) {
  state.part = part;
  document.body.classList.toggle("test", part === "test");
  for (const name of ["dev", "test"]) by(name).setAttribute("aria-pressed", String(name === part));
  drawAll();
}
function paint(dark) {
  state.dark = dark;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  by("theme").textContent = dark ? "light" : "dark";
  by("theme").setAttribute("aria-label", `Show the page in ${dark ? "light" : "dark"} colours`);
  drawAll();
}
// In a sandbox, such as MLflow's, there is nowhere to remember it.
const remembered = () => { try { return localStorage.getItem("raykd-theme"); } catch { return null; } };
const remember = name => { try { localStorage.setItem("raykd-theme", name); } catch { /* stays for this visit */ } };

// The table: sorted by its headings, chosen from by click or arrows and Enter.

const shownRows = () => [...document.querySelectorAll("tr[data-number]")].filter(row => row.offsetParent);
function reachable() {
  // One row is reached by Tab, the others from there by the arrows.
  const rows = shownRows(), first = rows.find(row => row.dataset.number === state.student) ?? rows[0];
  for (const row of rows) row.tabIndex = row === first ? 0 : -1;
}
function sort(th) {
  const up = th.getAttribute("aria-sort") !== "ascending", at = th.cellIndex;
  const body = document.querySelector("#table tbody");
  const value = row => row.cells[at].dataset.value ?? row.cells[at].textContent;
  const order = (a, b) => {
    const x = value(a), y = value(b);
    if (x === "" || y === "") return (x === "") - (y === "");
    const difference = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
    return up ? difference : -difference;
  };
  for (const other of document.querySelectorAll("#table th")) other.removeAttribute("aria-sort");
  th.setAttribute("aria-sort", up ? "ascending" : "descending");
  body.append(...[...body.rows].filter(row => !row.classList.contains("teacher")).sort(order));
}
for (const th of document.querySelectorAll("#table th")) {
  th.tabIndex = 0;
  th.onclick = () => sort(th);
  th.onkeydown = event => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    sort(th);
  };
}
const body = document.querySelector("#table tbody");
body.onclick = event => {
  const row = event.target.closest("tr[data-number]");
  if (row) choose(row.dataset.number);
};
body.onkeydown = event => {
  const row = event.target.closest("tr[data-number]"), rows = shownRows(), at = rows.indexOf(row);
  const to = {ArrowDown: rows[at + 1], ArrowUp: rows[at - 1], Home: rows[0], End: rows[rows.length - 1]}[event.key];
  if (at < 0 || !(to || event.key === "Enter" || event.key === " ")) return;
  event.preventDefault();
  if (to) { row.tabIndex = -1; to.tabIndex = 0; to.focus(); } else choose(row.dataset.number);
};
by("dev").onclick = () => show("dev");
by("test").onclick = () => show("test");
by("all").onchange = event => { document.body.classList.toggle("all", event.target.checked); reachable(); };
by("student").onchange = event => choose(event.target.value);
by("theme").hidden = false;
by("theme").onclick = () => { paint(!state.dark); remember(state.dark ? "dark" : "light"); };
const system = matchMedia("(prefers-color-scheme: dark)");
system.onchange = () => remembered() || paint(system.matches);
matchMedia("(max-width: 619px)").onchange = drawAll;
onbeforeprint = () => { state.printing = true; drawAll(); };
onafterprint = () => { state.printing = false; drawAll(); };
// The page of a sweep that runs: loaded again, with what was chosen.
const again = document.querySelector("meta[name=raykd-again]");
const session = (name, value) => { try {
  return value === undefined ? sessionStorage.getItem(name) : sessionStorage.setItem(name, value);
} catch { return null; } };
if (again) {
  const key = `raykd-${document.title.split(":")[0]}`, kept = JSON.parse(session(key) ?? "null");
  if (kept) {
    if (data.students[kept.student]) state.student = kept.student;
    by("all").checked = kept.all;
    document.body.classList.toggle("all", kept.all);
    if (kept.part === "test") show("test");
  }
  const old = Math.round((Date.now() - Date.parse(again.dataset.written)) / 60000);
  by("old").hidden = old < 10;
  by("old").textContent = `Last written ${old} minutes ago: raykd watch shows whether the sweep still runs.`;
  setTimeout(() => {
    session(key, JSON.stringify({student: state.student, part: state.part, all: by("all").checked}));
    location.reload();
  }, 1000 * again.content);
}
document.querySelector(".student").hidden = !state.student;
paint((remembered() ?? (system.matches ? "dark" : "light")) === "dark");
choose(state.student, false);

// The library is a tenth of its size when it is packed.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), character => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
async function start() {
  const script = document.createElement("script");
  script.textContent = await unpacked(by("plotly").textContent.trim());
  document.head.append(script);
  state.pictures = true;
  drawAll();
  by("plot").on("plotly_click", event => {
    const number = event.points[0].customdata;
    if (number !== undefined) choose(number);
  });
  document.documentElement.dataset.ready = "yes";
}
start().catch(error => { by("no-pictures").hidden = false; throw error; });
