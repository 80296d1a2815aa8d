"use strict";
const by = id => document.getElementById(id);
const data = JSON.parse(by("figures").textContent), students = data.students;
const state = {part: "dev", student: by("student").value, dark: false, pictures: false};
const narrow = () => innerWidth < 620, coarse = matchMedia("(pointer: coarse)");
const isNumber = Number.isFinite;

// Texts. Plotly reads a few tags in them, so names that a user chose are escaped.

const safe = text => text.replace(/[&<>]/g, sign => `&#${sign.charCodeAt(0)};`);
const broken = text => safe(text.replace(/(.{1,76})( |$)/g, "$1\n").trimEnd()).replace(/\n/g, "<br>");
const titled = (name, texts, form = broken) => [`<b>${safe(name)}</b>`, ...texts.map(text => form(text))].join("<br>");

// What all pictures have in common.

const probe = document.body.appendChild(document.createElement("i"));
function tint(name) {  // a colour of the style, as it is now: in light or in dark
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
const kindTint = kind => tint(`kind-${kind % 8}`);
function axis({title, ...more}) {
  return {gridcolor: tint("grid"), zeroline: false, automargin: true,
    title: {text: title, font: {color: tint("quiet"), size: 13}, standoff: 12}, ...more};
}
function draw(place, traces, {legend, margin, ...layout}) {
  const font = {family: getComputedStyle(document.body).fontFamily, size: 13, color: tint("ink")};
  const clear = "rgba(0,0,0,0)";
  for (const [name, value] of Object.entries(layout)) if (/^[xy]axis/.test(name)) layout[name] = axis(value);
  return Plotly.react(by(place), traces, {
    font, paper_bgcolor: clear, plot_bgcolor: clear, hovermode: "closest",
    margin: {l: 20, r: 16, t: 16, b: 20, ...margin},
    // A finger that scrolls the page must not zoom.
    dragmode: coarse.matches ? false : "zoom",
    hoverlabel: {bgcolor: tint("paper"), bordercolor: tint("grey"), font, align: "left"},
    legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0, itemsizing: "constant", ...legend},
    modebar: {bgcolor: clear, color: tint("grey"), activecolor: tint("ink")}, ...layout,
  }, {
    // Nothing here may leave the reader's machine: no button that uploads the chart.
    responsive: true, displaylogo: false, showSendToCloud: false, displayModeBar: narrow() ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "pan2d", "zoomIn2d", "zoomOut2d", "sendChartToCloud"],
  });
}

const whole = last => ({tickformat: "d", ...(last < 8 ? {dtick: 1} : {})});  // an axis of whole numbers

// The front: score against latency, marker area for parameters, the teacher as the line to reach.

const LARGEST = 31, SMALLEST = 11;  // diameters of markers, in pixels
const EDGES = {
  "": ["star", ""], e: ["triangle-right", " →"], n: ["triangle-up", " ↑"], s: ["triangle-down", " ↓"],
  ne: ["triangle-ne", " ↗"], se: ["triangle-se", " ↘"],
};
const span = values => Math.max(...values) - Math.min(...values);
// What is far away is drawn at the edge: one student that collapsed, or a distant teacher, would squeeze the rest.
function scoreRange(front, dominated, compared) {
  const far = 2 * Math.max(span(front), 8), [below, above] = [Math.min(...front) - far, Math.max(...front) + far];
  const shown = [...front, ...compared.filter(y => below <= y && y <= above)], top = Math.max(...shown, ...dominated);
  const least = Math.min(...shown) - Math.max(.4 * (top - Math.min(...shown)), 8);
  const all = [top, ...shown, ...dominated.map(y => Math.max(y, least))];
  const room = Math.max(.08 * span(all), 2 - span(all) / 2);
  return [Math.min(...all) - room, top + room];
}
function latencyRange(times, teacher) {
  if (!times.length) return {log: false, range: [0, 1], slower: false};
  const slowest = Math.max(...times), slower = teacher > slowest + .5 * Math.max(span(times), .6 * slowest);
  const all = teacher && !slower ? [...times, teacher] : times, [fast, slow] = [Math.min(...all), Math.max(...all)];
  const log = fast > 0 && slow / fast >= 6, [left, right] = log ? [Math.log10(fast), Math.log10(slow)] : [fast, slow];
  const room = .07 * (log ? right - left : Math.max(right - left, .6 * right));
  const range = [log ? left - room : Math.max(0, left - room), right + room];
  return {log, range, slower, edge: log ? 10 ** range[1] : range[1]};
}
function frontView(part) {
  const score = n => students[n].mean[part], sd = n => students[n].sd[part] ?? 0, twin = n => students[n].twin;
  const has = n => students[n] && isNumber(score(n)), ms = n => students[n].ms;
  const front = data.front.filter(has), dominated = data.dominated.filter(has);
  const stopped = part === "dev" ? data.stopped.filter(each => isNumber(each.dev) && isNumber(each.ms)) : [];
  const twins = front.filter(n => has(twin(n))), reach = data.teacher.mean[part];
  const [low, high] = front.length ? scoreRange(front.flatMap(n => [score(n) - sd(n), score(n) + sd(n)]),
    dominated.map(score), [...twins.map(n => score(twin(n))), reach].filter(isNumber)) : [0, 100];
  const times = [...[...front, ...dominated].map(ms), ...data.stopped.map(each => each.ms)].filter(isNumber);
  return {part, score, sd, twin, has, ms, front, dominated, stopped, twins, reach, low, high,
    latency: latencyRange(times, data.teacher.ms),
    within: y => low <= y && y <= high, clipped: y => Math.min(Math.max(y, low), high)};
}
function frontTraces(view) {
  const {score, sd, twin, ms, front, dominated, stopped, twins, within, clipped} = view, traces = [];
  const sizeref = 2 * Math.max(...[...front, ...dominated].map(n => students[n].parameters)) / LARGEST ** 2;
  const area = (numbers, share, least) => ({sizemode: "area", sizeref, sizemin: least / 2,
    size: numbers.map(n => students[n].parameters * share ** 2)});
  const points = (numbers, color, more) => numbers.length && traces.push({
    x: numbers.map(ms), y: numbers.map(n => clipped(score(n))), mode: "markers", cliponaxis: false,
    customdata: numbers, hoverinfo: "text",
    hovertext: numbers.map(n => titled(students[n].name, [...students[n].facts, "", ...students[n].settings])),
    error_y: {type: "data", array: numbers.map(sd), color, thickness: 1.4, visible: numbers.some(sd)}, ...more});
  const line = (x, y, look) => traces.push({x, y, mode: "lines", line: look, opacity: .8, hoverinfo: "skip",
    showlegend: false});
  const symbols = (numbers, near, far) => numbers.map(n => within(score(n)) ? near : far);

  if (stopped.length) traces.push({x: stopped.map(each => each.ms), y: stopped.map(each => clipped(each.dev)),
    mode: "markers", cliponaxis: false, name: "stopped early, its score then", opacity: .8, hoverinfo: "text",
    hovertext: stopped.map(each => titled(each.name, each.facts)),
    marker: {size: 8, color: tint("grey"), line: {color: tint("grey"), width: 1.4},
      symbol: stopped.map(each => within(each.dev) ? "x-thin" : "triangle-down-open")}});
  points(dominated, tint("grey"), {name: "dominated", marker: {...area(dominated, .6, .6 * SMALLEST),
    color: tint("grey"), opacity: .7, line: {width: 0}, symbol: symbols(dominated, "circle", "triangle-down")}});

  // Steps along the best score for any latency; students that are on the front only for their size are below it.
  const steps = [];
  for (const n of [...front].sort((a, b) => ms(a) - ms(b)))
    if (!steps.length || score(n) > score(steps.at(-1))) steps.push(n);
  line(steps.map(ms), steps.map(score), {shape: "hv", color: tint("ink"), width: 2});
  line(twins.flatMap(n => [ms(n), ms(n), null]), twins.flatMap(n => [clipped(score(twin(n))), score(n), null]),
    {color: tint("tie"), width: 1.2, dash: "dot"});
  // At the student's latency: it is the same shape, so a difference would be noise of the probe.
  const alone = twins.map(twin);
  points(alone, tint("gold"), {x: twins.map(ms), name: "same shape, gold labels only", mode: "markers+text",
    text: alone.map(n => within(score(n)) ? "" : score(n).toFixed(1)), textposition: "top right",
    textfont: {size: 11, color: tint("gold")},
    marker: {...area(twins, .8, .8 * SMALLEST), color: tint("paper"), line: {color: tint("gold"), width: 1.6},
      symbol: symbols(alone, "circle", "triangle-down")}});
  data.kinds.forEach(({name, symbol}, kind) => {
    const numbers = front.filter(n => students[n].kind === kind), color = kindTint(kind);
    points(numbers, color, {name: safe(name), mode: "markers+text", textfont: {size: 10, color: tint("paper")},
      text: numbers.map(n => String(n).padStart(2, "0")),
      marker: {...area(numbers, 1, 20), symbol, color, opacity: 1, line: {color: tint("paper"), width: 1.2}}});
  });
  const ring = (x, n, size, width, color, more) => traces.push({x: [x], y: [clipped(score(n))], mode: "markers",
    hoverinfo: "skip", showlegend: false, cliponaxis: false,
    marker: {symbol: "circle-open", size, color, line: {width}}, ...more});
  if (view.has(data.ship)) ring(ms(data.ship), data.ship, 40, 3, tint("ship"), {mode: "markers+text",
    text: ["<b>ship</b>"], textposition: "bottom right", textfont: {size: 13, color: tint("ship")}});
  const chosen = Number(state.student), of = twins.find(n => twin(n) === chosen);
  if ([...front, ...dominated, ...alone].includes(chosen)) ring(ms(of ?? chosen), chosen, 33, 2, tint("ink"));
  return traces;
}
function drawFront() {
  const view = frontView(state.part), {part, low, high, reach, latency, clipped} = view, {teacher} = data;
  const traces = frontTraces(view), annotations = [], shapes = [], visible = view.front.length > 0;
  if (visible && isNumber(reach)) {
    const y = clipped(reach), above = reach > high, color = tint("gold");
    const [symbol, arrow] = EDGES[(above ? "n" : reach < low ? "s" : "") + (latency.slower ? "e" : "")];
    if (view.within(reach)) shapes.push({type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, layer: "below",
      line: {color, width: 1.5, dash: "dash"}});
    annotations.push({xref: "paper", x: 0, xanchor: "left", xshift: 4, y, yanchor: above ? "top" : "bottom",
      text: `<b>teacher ${teacher.words[part]}</b>${teacher.cost && ` · at ${teacher.cost}`}${arrow}`,
      font: {color, size: 13}, showarrow: false});
    if (teacher.ms) traces.push({x: [latency.slower ? latency.edge : teacher.ms], y: [y], mode: "markers",
      name: "teacher", showlegend: false, cliponaxis: false, hoverinfo: "text",
      marker: {symbol, size: 20, color, line: {color: tint("paper"), width: 1}},
      hovertext: [teacher.facts[part].map(([name, facts]) => titled(name, [facts])).join("<br>")]});
  }
  if (!visible) annotations.push({text: data.none, showarrow: false, font: {size: 18, color: tint("quiet")}});
  draw("plot", traces, {height: narrow() ? 460 : 560, annotations, shapes,
    xaxis: {title: data.latency, visible, range: latency.range,
      ...(latency.log ? {type: "log", dtick: "D2", tickformat: "~g"} : {})},
    yaxis: {title: `${part} ${safe(data.label)}, %`, visible, range: [low, high]}});
}

// One student: its scores by language, and its epochs.

function drawLanguages() {
  const all = data.languages, own = students[state.student], {part} = state;
  by("by-language").hidden = !own?.[part]?.some(isNumber);
  if (by("by-language").hidden) return;
  const known = all.names.map((_, i) => i)
    .filter(i => [...data.front, state.student].some(n => isNumber(students[n]?.[part]?.[i])));
  const pick = values => known.map(i => values[i]), names = pick(all.names).map(safe), traces = [];
  const line = (scores, name, more) => scores && traces.push({x: names, y: pick(scores), yaxis: "y2", name,
    connectgaps: false, hovertemplate: `${name} %{y:.1f}<extra></extra>`, ...more});
  const labels = all.labels[own.labels], color = own.kind === null ? tint("gold") : kindTint(own.kind);
  if (labels) traces.push({type: "bar", x: names, y: pick(labels), name: "labels",
    marker: {color: tint("bar"), line: {width: 0}}, hovertemplate: "%{y:,} training labels<extra></extra>"});
  const others = data.front.filter(n => String(n) !== state.student && students[n][part]);
  traces.push({x: others.flatMap(() => names), y: others.flatMap(n => pick(students[n][part])), yaxis: "y2",
    mode: "markers", name: "others of the front", hoverinfo: "skip",
    marker: {size: 5, color: tint("grey"), opacity: .8}});
  line(all.teacher[part], "teacher", {mode: "lines", line: {color: tint("gold"), dash: "dash"}});
  line(students[own.twin]?.[part], "gold labels only",
    {mode: "markers", marker: {size: 8, color: tint("paper"), line: {color: tint("gold"), width: 1.6}}});
  line(own[part], safe(own.name.split(" · ")[0]), {mode: "lines+markers", line: {color, width: 1.2},
    marker: {size: 9, color, symbol: data.kinds[own.kind]?.symbol ?? "circle"}});
  draw("languages", traces, {height: 380, hovermode: "x unified",
    xaxis: {type: "category", showgrid: false, dtick: 1, ticklabelstandoff: 4, autotickangles: [0, -90],
      categoryorder: "array", categoryarray: names},
    // Bars are on the axis below the other one, so that points are never behind them.
    yaxis: {title: "training labels", side: "right", showgrid: false, visible: !!labels},
    yaxis2: {title: `${part} ${safe(data.label)}, %`, side: "left", overlaying: "y", tickmode: "auto"}});
}
function drawCurves() {
  const curves = students[state.student]?.curves;
  by("by-epoch").hidden = !curves;
  if (!curves) return;
  const {steps, stages, runs: [first, ...others]} = curves, several = stages.length > 1, traces = [];
  const epochs = run => run.at ?? run.dev.map((_, i) => i), x = epochs(first), at = step => x.indexOf(step.best);
  const mode = first.epochs <= 40 ? "lines+markers" : "lines", marker = {size: 4};
  const stageOf = step => `stage ${step.stage + 1} ${safe(stages[step.stage])}`;

  const named = run => `dev ${safe(data.label)}${run.name && `, ${safe(run.name)}`}`;
  const scores = (run, name, showlegend, line) => traces.push({x: epochs(run).map(e => e + 1), y: run.dev, mode, line,
    marker, name, showlegend, legendgroup: name, hovertemplate: `${named(run)} %{y:.1f}<br>epoch %{x}<extra></extra>`});
  others.forEach((run, place) => scores(run, "other runs", place === 0, {color: tint("grey"), width: 1}));
  scores(first, named(first), true, {color: tint("kind-0"), width: 2});
  const place = step => (several ? ` of ${stageOf(step)}` : "") + (step.layers && `, ${safe(step.layers)}`);
  const best = (own, y, more) => traces.push({x: own.map(step => step.best + 1), y, mode: "markers", cliponaxis: false,
    name: steps.length > 1 ? "best epochs" : "best epoch", legendgroup: "best", hoverinfo: "text",
    marker: {size: 10, symbol: "star", color: tint("ship"), line: {color: tint("paper"), width: 1}},
    hovertext: own.map(step => `best epoch${place(step)}: ${step.best + 1}`), ...more});
  best(steps, steps.map(step => first.dev[at(step)]), {});

  // Losses of different stages are of different sizes: each stage has an axis of its own over the same place.
  const axes = {}, annotations = [], inLegend = new Set(), width = by("by-epoch").clientWidth - 76;
  stages.forEach((_, stage) => {
    const own = steps.filter(step => step.stage === stage), number = stage + 2, found = [];
    if (!own.length) return;
    const start = own[0].first, end = steps.find(step => step.stage > stage)?.first ?? first.epochs;
    const places = [...x.keys()].filter(i => start <= x[i] && x[i] < end);
    const losses = (name, values, line) => {
      const y = places.map(i => values[i]);
      if (!y.some(isNumber)) return;
      found.push(...y.filter(isNumber));
      traces.push({x: places.map(i => x[i] + 1), y, yaxis: `y${number}`, mode, line, marker, name, legendgroup: name,
        showlegend: !inLegend.has(name), hovertemplate: `${name} %{y:.4~g}<br>epoch %{x}<extra></extra>`});
      inLegend.add(name);
    };
    losses("training loss", curves.loss, {color: tint("quiet"), width: 1.5});
    losses("held-out loss", curves.held_out, {color: tint("kind-1"), width: 1.5, dash: "dot"});
    const chosen = own.filter(step => step.by_loss);
    best(chosen, chosen.map(step => curves.held_out[at(step)]), {yaxis: `y${number}`, showlegend: false});
    const [low, high] = [Math.min(...found), Math.max(...found)];
    axes[`yaxis${number}`] = {domain: [0, .35], anchor: "x", showticklabels: !several, showgrid: !several,
      title: stage ? "" : several ? "loss, by stage" : "loss", ...(stage ? {overlaying: "y2"} : {}), tickformat: "~g",
      ...(low > 0 ? {type: "log", dtick: high / low > 50 ? 1 : "D2"} : {})};
    const text = `${+low.toPrecision(3)} – ${+high.toPrecision(3)}`;
    if (several && width * (end - start) / first.epochs > 6.4 * text.length) annotations.push({x: start + .5, y: .35,
      yref: "paper", yanchor: "bottom", xanchor: "left", xshift: 3, text, showarrow: false,
      font: {size: 11, color: tint("quiet")}});
  });

  // What begins where stands on a second axis, above: plotly turns its labels where they would touch.
  const begins = several || steps.length > 1 ? steps : [], last = Math.max(...curves.runs.map(run => run.epochs));
  const opens = (step, i) => several && step.stage !== steps[i - 1]?.stage, range = [.5, last + .5], height = 470;
  const shapes = begins.map((step, i) => ({type: "line", x0: step.first + .5, x1: step.first + .5, y0: 0, y1: 1,
    yref: "paper", layer: "below",
    line: {color: tint("grey"), ...(opens(step, i) ? {width: 1.3} : {width: 1, dash: "dot"})}}));
  const texts = begins.map((step, i) => [opens(step, i) ? `<b>${stageOf(step)}</b>` : "", safe(step.layers)]);
  traces.push({x: [1], y: [null], xaxis: "x2", showlegend: false, hoverinfo: "skip"});
  draw("curves", traces, {height, annotations, shapes, ...axes, legend: {y: 0, yref: "container", yanchor: "bottom"},
    xaxis: {title: "epoch", range, anchor: "y2", ...whole(last)},
    xaxis2: {title: "", matches: "x", range, overlaying: "x", side: "top", anchor: "y", showgrid: false,
      ticklabelposition: "outside right", autotickangles: [0, -90], tickvals: begins.map(step => step.first + .5),
      ticktext: texts.map(lines => lines.filter(Boolean).join("<br>"))},
    yaxis: {title: `dev ${safe(data.label)}, %`, domain: [.42, 1]}}).then(() => {
    // What turned labels take of the plot is added below it.
    const missing = 350 - by("curves")._fullLayout._size.h;
    if (missing > 0) Plotly.relayout("curves", {height: height + missing});
  });
}

// The search.

function drawSearch() {
  const {volume, scores, importance} = data;
  if (volume.length) draw("volume", [{x: volume.map(each => each[0]), y: volume.map(each => each[1]), showlegend: false,
    mode: volume.length <= 60 ? "lines+markers" : "lines", marker: {size: 5},
    line: {shape: "hv", color: tint("ink"), width: 2}, hovertemplate: "trial #%{x}: %{y:.2f} %<extra></extra>"}],
    {height: 300, xaxis: {title: "trial", ...whole(volume.at(-1)[0])}, yaxis: {title: "hypervolume, %"}});
  const looks = {
    dominated: {mode: "markers", marker: {size: 9, color: tint("grey"), opacity: .7}},
    front: {mode: "lines+markers+text", line: {shape: "vh", color: tint("ink"), width: 2},
      marker: {size: 22, color: tint("kind-0"), line: {color: tint("paper"), width: 1.2}},
      textfont: {size: 10, color: tint("paper")}},
    teacher: {mode: "markers", marker: {size: 16, symbol: "star", color: tint("gold")}},
  };
  if (by("scores")) draw("scores", Object.entries(scores).map(([name, points]) => ({name, ...looks[name],
    text: points.map(point => safe(point[0])), x: points.map(point => point[1]), y: points.map(point => point[2]),
    hovertemplate: "%{text}: source %{x:.1f}, targets %{y:.1f}<extra></extra>"})), {height: 420,
    xaxis: {title: `dev ${safe(data.label)} of source languages, %`},
    yaxis: {title: `dev ${safe(data.label)} of target languages, %`}});
  if (!importance) return;
  // Textures for whoever cannot tell colours.
  const textures = ["", "/", ".", "x", "-", "+"], {settings} = importance, bars = Object.entries(importance.shares);
  draw("importance", bars.map(([name, shares], place) => ({type: "bar", orientation: "h", y: settings, x: shares,
    name: safe(name), marker: {color: kindTint(place), pattern: {shape: textures[place % 6], size: 6}},
    hovertemplate: "%{y}: %{x:.0f} %<extra>%{fullData.name}</extra>"})).reverse(),
    {height: 86 + settings.length * (10 + 13 * bars.length), barmode: "group", bargap: .25,
      legend: {traceorder: "reversed"}, xaxis: {title: "share of the variance, %", range: [0, 102]},
      yaxis: {title: "", showgrid: false, ticklabelstandoff: 6}});
}
function drawStudent() {
  drawLanguages();
  drawCurves();
}
function drawAll() {
  if (!state.pictures) return;
  drawFront();
  drawStudent();
  drawSearch();
}

// What is shown.

function choose(number, said = true) {
  state.student = String(number);
  by("student").value = state.student;
  const own = students[state.student];
  if (own) by("box").innerHTML = titled(own.name, own.facts, safe)
    + `<p class="settings">${own.settings.map(safe).join("<br>")}</p>`;
  for (const row of document.querySelectorAll("tr[data-number]")) {
    const chosen = row.dataset.number === state.student;
    row.classList.toggle("chosen", chosen);
    row.setAttribute("aria-selected", String(chosen));
  }
  reachable();
  by("picked").innerHTML = said && own
    ? `<b>${safe(own.name)}</b> is shown <a href="#student-section">below</a>` : "";
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
let painted;
onbeforeprint = () => { painted = state.dark; paint(false); };
onafterprint = () => paint(painted);
// The page of a sweep that runs: loaded again, with what was chosen.
const again = document.querySelector("meta[name=raykd-again]");
const session = (name, value) => { try {
  return value === undefined ? sessionStorage.getItem(name) : sessionStorage.setItem(name, value);
} catch { return null; } };
if (again) {
  const key = `raykd-${document.title.split(":")[0]}`, kept = JSON.parse(session(key) ?? "null");
  if (kept) {
    if (students[kept.student]) state.student = kept.student;
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
