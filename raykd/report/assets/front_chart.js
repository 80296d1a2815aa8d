// The front: score against latency, marker area for parameters, the teacher as the line to reach.

const LARGEST = 31, SMALLEST = 11;  // diameters of markers, in pixels
// Direction in which the teacher lies beyond the edge → its marker, and the arrow after its name.
const EDGES = {
  "": ["star", ""], e: ["triangle-right", " →"], n: ["triangle-up", " ↑"], s: ["triangle-down", " ↓"],
  ne: ["triangle-ne", " ↗"], se: ["triangle-se", " ↘"],
};
const span = values => Math.max(...values) - Math.min(...values);
// A distant score is drawn at the edge: one student that collapsed, or a distant teacher, would squeeze the rest.
// `front`: scores of the front with their error bars; `compared`: scores of gold baselines and teacher. All in percent.
function scoreRange(front, dominated, compared) {
  const far = 2 * Math.max(span(front), 8), [below, above] = [Math.min(...front) - far, Math.max(...front) + far];
  const shown = [...front, ...compared.filter(y => below <= y && y <= above)], top = Math.max(...shown, ...dominated);
  const least = Math.min(...shown) - Math.max(.4 * (top - Math.min(...shown)), 8);
  const all = [top, ...shown, ...dominated.map(y => Math.max(y, least))];
  const room = Math.max(.08 * span(all), 2 - span(all) / 2);
  return [Math.min(...all) - room, top + room];
}
// `log`: the axis is logarithmic; `slower`: the teacher is so slow that it is drawn at `edge`. Latencies in ms.
function latencyRange(latencies, teacher) {
  if (!latencies.length) return {log: false, range: [0, 1], slower: false};
  const slowest = Math.max(...latencies), slower = teacher > slowest + .5 * Math.max(span(latencies), .6 * slowest);
  const all = teacher && !slower ? [...latencies, teacher] : latencies;
  const [fast, slow] = [Math.min(...all), Math.max(...all)];
  const log = fast > 0 && slow / fast >= 6, [left, right] = log ? [Math.log10(fast), Math.log10(slow)] : [fast, slow];
  const room = .07 * (log ? right - left : Math.max(right - left, .6 * right));
  const range = [log ? left - room : Math.max(0, left - room), right + room];
  return {log, range, slower, edge: log ? 10 ** range[1] : range[1]};
}
// The values and ranges of the chart for one part. `n` is the number of a student; `twins` are the students of the
// front with a twin on gold labels.
function frontView(part) {
  const score = n => students[n].mean[part], sd = n => students[n].sd[part] ?? 0, twin = n => students[n].twin;
  const hasScore = n => students[n] && isNumber(score(n)), ms = n => students[n].ms;
  const front = data.front.filter(hasScore), dominated = data.dominated.filter(hasScore);
  const stopped = part === "dev" ? data.stopped.filter(trial => isNumber(trial.dev) && isNumber(trial.ms)) : [];
  const twins = front.filter(n => hasScore(twin(n))), teacherScore = data.teacher.mean[part];
  const [low, high] = front.length ? scoreRange(front.flatMap(n => [score(n) - sd(n), score(n) + sd(n)]),
    dominated.map(score), [...twins.map(n => score(twin(n))), teacherScore].filter(isNumber)) : [0, 100];
  const latencies = [...[...front, ...dominated].map(ms), ...data.stopped.map(trial => trial.ms)].filter(isNumber);
  return {part, score, sd, twin, hasScore, ms, front, dominated, stopped, twins, teacherScore, low, high,
    latency: latencyRange(latencies, data.teacher.ms),
    within: y => low <= y && y <= high, clipped: y => Math.min(Math.max(y, low), high)};
}
function frontTraces(view) {
  const {score, sd, twin, ms, front, dominated, stopped, twins, within, clipped} = view, traces = [];
  const sizeref = 2 * Math.max(...[...front, ...dominated].map(n => students[n].parameters)) / LARGEST ** 2;
  const area = (numbers, share, least) => ({sizemode: "area", sizeref, sizemin: least / 2,
    size: numbers.map(n => students[n].parameters * share ** 2)});
  const addPoints = (numbers, color, more) => numbers.length && traces.push({
    x: numbers.map(ms), y: numbers.map(n => clipped(score(n))), mode: "markers", cliponaxis: false,
    customdata: numbers, hoverinfo: "text",
    hovertext: numbers.map(n => titled(students[n].name, [...students[n].facts, "", ...students[n].settings])),
    error_y: {type: "data", array: numbers.map(sd), color, thickness: 1.4, visible: numbers.some(sd)}, ...more});
  const addLine = (x, y, line) => traces.push({x, y, mode: "lines", line, opacity: .8, hoverinfo: "skip",
    showlegend: false});
  const symbols = (numbers, near, far) => numbers.map(n => within(score(n)) ? near : far);

  if (stopped.length) traces.push({x: stopped.map(trial => trial.ms), y: stopped.map(trial => clipped(trial.dev)),
    mode: "markers", cliponaxis: false, name: "stopped early, its score then", opacity: .8, hoverinfo: "text",
    hovertext: stopped.map(trial => titled(trial.name, trial.facts)),
    marker: {size: 8, color: themeColor("grey"), line: {color: themeColor("grey"), width: 1.4},
      symbol: stopped.map(trial => within(trial.dev) ? "x-thin" : "triangle-down-open")}});
  addPoints(dominated, themeColor("grey"), {name: "dominated", marker: {...area(dominated, .6, .6 * SMALLEST),
    color: themeColor("grey"), opacity: .7, line: {width: 0}, symbol: symbols(dominated, "circle", "triangle-down")}});

  // Steps along the best score for any latency; students that are on the front only for their size are below it.
  const steps = [];
  for (const n of [...front].sort((a, b) => ms(a) - ms(b)))
    if (!steps.length || score(n) > score(steps.at(-1))) steps.push(n);
  addLine(steps.map(ms), steps.map(score), {shape: "hv", color: themeColor("ink"), width: 2});
  addLine(twins.flatMap(n => [ms(n), ms(n), null]), twins.flatMap(n => [clipped(score(twin(n))), score(n), null]),
    {color: themeColor("tie"), width: 1.2, dash: "dot"});
  // At the student's latency: the shape is the same, so a difference would be noise of the measurement.
  const goldOnly = twins.map(twin);
  addPoints(goldOnly, themeColor("gold"), {x: twins.map(ms), name: "same shape, gold labels only", mode: "markers+text",
    text: goldOnly.map(n => within(score(n)) ? "" : score(n).toFixed(1)), textposition: "top right",
    textfont: {size: 11, color: themeColor("gold")},
    marker: {...area(twins, .8, .8 * SMALLEST), color: themeColor("paper"), line: {color: themeColor("gold"), width: 1.6},
      symbol: symbols(goldOnly, "circle", "triangle-down")}});
  data.kinds.forEach(({name, symbol}, kind) => {
    const numbers = front.filter(n => students[n].kind === kind), color = kindColor(kind);
    addPoints(numbers, color, {name: escaped(name), mode: "markers+text",
      text: numbers.map(n => String(n).padStart(2, "0")), textfont: {size: 10, color: themeColor("paper")},
      marker: {...area(numbers, 1, 20), symbol, color, opacity: 1, line: {color: themeColor("paper"), width: 1.2}}});
  });
  const addRing = (x, n, size, width, color, more) => traces.push({x: [x], y: [clipped(score(n))], mode: "markers",
    hoverinfo: "skip", showlegend: false, cliponaxis: false,
    marker: {symbol: "circle-open", size, color, line: {width}}, ...more});
  if (view.hasScore(data.ship)) addRing(ms(data.ship), data.ship, 40, 3, themeColor("ship"), {mode: "markers+text",
    text: ["<b>ship</b>"], textposition: "bottom right", textfont: {size: 13, color: themeColor("ship")}});
  const chosen = Number(state.student), distilled = twins.find(n => twin(n) === chosen);
  if ([...front, ...dominated, ...goldOnly].includes(chosen))
    addRing(ms(distilled ?? chosen), chosen, 33, 2, themeColor("ink"));
  return traces;
}
function drawFront() {
  const view = frontView(state.part), {part, low, high, teacherScore, latency, clipped} = view, {teacher} = data;
  const traces = frontTraces(view), annotations = [], shapes = [], visible = view.front.length > 0;
  if (visible && isNumber(teacherScore)) {
    const y = clipped(teacherScore), above = teacherScore > high, color = themeColor("gold");
    const [symbol, arrow] = EDGES[(above ? "n" : teacherScore < low ? "s" : "") + (latency.slower ? "e" : "")];
    if (view.within(teacherScore)) shapes.push({type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, layer: "below",
      line: {color, width: 1.5, dash: "dash"}});
    annotations.push({xref: "paper", x: 0, xanchor: "left", xshift: 4, y, yanchor: above ? "top" : "bottom",
      text: `<b>teacher ${teacher.words[part]}</b>${teacher.cost && ` · at ${teacher.cost}`}${arrow}`,
      font: {color, size: 13}, showarrow: false});
    if (teacher.ms) traces.push({x: [latency.slower ? latency.edge : teacher.ms], y: [y], mode: "markers",
      name: "teacher", showlegend: false, cliponaxis: false, hoverinfo: "text",
      marker: {symbol, size: 20, color, line: {color: themeColor("paper"), width: 1}},
      hovertext: [teacher.facts[part].map(([name, facts]) => titled(name, [facts])).join("<br>")]});
  }
  if (!visible) annotations.push({text: data.none, showarrow: false, font: {size: 18, color: themeColor("quiet")}});
  draw("plot", traces, {height: narrow() ? 460 : 560, annotations, shapes,
    xaxis: {title: data.latency, visible, range: latency.range,
      ...(latency.log ? {type: "log", dtick: "D2", tickformat: "~g"} : {})},
    yaxis: {title: `${part} ${escaped(data.label)}, %`, visible, range: [low, high]}});
}
