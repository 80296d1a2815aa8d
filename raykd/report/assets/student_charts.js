// One student: its scores by language, and its training.

function drawLanguages() {
  const languages = data.languages, student = students[state.student], {part} = state;
  byId("by-language").hidden = !student?.[part]?.some(isNumber);
  if (byId("by-language").hidden) return;
  const shown = languages.names.map((_, i) => i)
    .filter(i => [...data.front, state.student].some(n => isNumber(students[n]?.[part]?.[i])));
  const pick = values => shown.map(i => values[i]), names = pick(languages.names).map(escaped), traces = [];
  const addScores = (scores, name, more) => scores && traces.push({x: names, y: pick(scores), yaxis: "y2", name,
    connectgaps: false, hovertemplate: `${name} %{y:.1f}<extra></extra>`, ...more});
  const labels = languages.labels[student.labels];
  const color = student.kind === null ? themeColor("gold") : kindColor(student.kind);
  if (labels) traces.push({type: "bar", x: names, y: pick(labels), name: "labels",
    marker: {color: themeColor("bar"), line: {width: 0}}, hovertemplate: "%{y:,} training labels<extra></extra>"});
  const others = data.front.filter(n => String(n) !== state.student && students[n][part]);
  traces.push({x: others.flatMap(() => names), y: others.flatMap(n => pick(students[n][part])), yaxis: "y2",
    mode: "markers", name: "others of the front", hoverinfo: "skip",
    marker: {size: 5, color: themeColor("grey"), opacity: .8}});
  addScores(languages.teacher[part], "teacher", {mode: "lines", line: {color: themeColor("gold"), dash: "dash"}});
  addScores(students[student.twin]?.[part], "gold labels only",
    {mode: "markers", marker: {size: 8, color: themeColor("paper"), line: {color: themeColor("gold"), width: 1.6}}});
  addScores(student[part], escaped(student.name.split(" · ")[0]), {mode: "lines+markers", line: {color, width: 1.2},
    marker: {size: 9, color, symbol: data.kinds[student.kind]?.symbol ?? "circle"}});
  draw("languages", traces, {height: 380, hovermode: "x unified",
    xaxis: {type: "category", showgrid: false, dtick: 1, ticklabelstandoff: 4, autotickangles: [0, -90],
      categoryorder: "array", categoryarray: names},
    // Bars are on the axis below the other one, so that points are never behind them.
    yaxis: {title: "training labels", side: "right", showgrid: false, visible: !!labels},
    yaxis2: {title: `${part} ${escaped(data.label)}, %`, side: "left", overlaying: "y", tickmode: "auto"}});
}
// Dev scores of all runs above, losses of the first run below. The data count epochs from 0, the chart from 1.
function drawCurves() {
  const curves = students[state.student]?.curves;
  byId("by-epoch").hidden = !curves;
  if (!curves) return;
  const {steps, stages, runs: [first, ...others]} = curves, severalStages = stages.length > 1, traces = [];
  const epochs = run => run.at ?? run.dev.map((_, i) => i), x = epochs(first), indexOfBest = step => x.indexOf(step.best);
  const mode = first.epochs <= 40 ? "lines+markers" : "lines", marker = {size: 4};
  const stageOf = step => `stage ${step.stage + 1} ${escaped(stages[step.stage])}`;

  const scoreName = run => `dev ${escaped(data.label)}${run.name && `, ${escaped(run.name)}`}`;
  const addScores = (run, name, showlegend, line) => traces.push({x: epochs(run).map(e => e + 1), y: run.dev, mode, line,
    marker, name, showlegend, legendgroup: name,
    hovertemplate: `${scoreName(run)} %{y:.1f}<br>epoch %{x}<extra></extra>`});
  others.forEach((run, place) => addScores(run, "other runs", place === 0, {color: themeColor("grey"), width: 1}));
  addScores(first, scoreName(first), true, {color: themeColor("kind-0"), width: 2});
  const placeOf = step => (severalStages ? ` of ${stageOf(step)}` : "") + (step.layers && `, ${escaped(step.layers)}`);
  const addBestEpochs = (ofSteps, y, more) => traces.push({x: ofSteps.map(step => step.best + 1), y, mode: "markers",
    cliponaxis: false, name: steps.length > 1 ? "best epochs" : "best epoch", legendgroup: "best", hoverinfo: "text",
    marker: {size: 10, symbol: "star", color: themeColor("ship"), line: {color: themeColor("paper"), width: 1}},
    hovertext: ofSteps.map(step => `best epoch${placeOf(step)}: ${step.best + 1}`), ...more});
  addBestEpochs(steps, steps.map(step => first.dev[indexOfBest(step)]), {});

  // Losses of different stages are of different sizes: each stage has its own axis over the same area.
  const axes = {}, annotations = [], inLegend = new Set(), width = byId("by-epoch").clientWidth - 76;
  stages.forEach((_, stage) => {
    const stageSteps = steps.filter(step => step.stage === stage), number = stage + 2, stageLosses = [];
    if (!stageSteps.length) return;
    const start = stageSteps[0].first, end = steps.find(step => step.stage > stage)?.first ?? first.epochs;
    const indices = [...x.keys()].filter(i => start <= x[i] && x[i] < end);
    const addLosses = (name, values, line) => {
      const y = indices.map(i => values[i]);
      if (!y.some(isNumber)) return;
      stageLosses.push(...y.filter(isNumber));
      traces.push({x: indices.map(i => x[i] + 1), y, yaxis: `y${number}`, mode, line, marker, name, legendgroup: name,
        showlegend: !inLegend.has(name), hovertemplate: `${name} %{y:.4~g}<br>epoch %{x}<extra></extra>`});
      inLegend.add(name);
    };
    addLosses("training loss", curves.loss, {color: themeColor("quiet"), width: 1.5});
    addLosses("held-out loss", curves.held_out, {color: themeColor("kind-1"), width: 1.5, dash: "dot"});
    const chosenByLoss = stageSteps.filter(step => step.by_loss);
    addBestEpochs(chosenByLoss, chosenByLoss.map(step => curves.held_out[indexOfBest(step)]),
      {yaxis: `y${number}`, showlegend: false});
    const [low, high] = [Math.min(...stageLosses), Math.max(...stageLosses)];
    axes[`yaxis${number}`] = {domain: [0, .35], anchor: "x", showticklabels: !severalStages, showgrid: !severalStages,
      title: stage ? "" : severalStages ? "loss, by stage" : "loss", ...(stage ? {overlaying: "y2"} : {}),
      tickformat: "~g", ...(low > 0 ? {type: "log", dtick: high / low > 50 ? 1 : "D2"} : {})};
    const text = `${+low.toPrecision(3)} – ${+high.toPrecision(3)}`;
    if (severalStages && width * (end - start) / first.epochs > 6.4 * text.length) annotations.push({x: start + .5,
      y: .35, yref: "paper", yanchor: "bottom", xanchor: "left", xshift: 3, text, showarrow: false,
      font: {size: 11, color: themeColor("quiet")}});
  });

  // The names of stages and steps stand on a second axis, above: plotly turns its labels where they would touch.
  const named = severalStages || steps.length > 1 ? steps : [], last = Math.max(...curves.runs.map(run => run.epochs));
  const opensStage = (step, i) => severalStages && step.stage !== steps[i - 1]?.stage;
  const range = [.5, last + .5], height = 470;
  const shapes = named.map((step, i) => ({type: "line", x0: step.first + .5, x1: step.first + .5, y0: 0, y1: 1,
    yref: "paper", layer: "below",
    line: {color: themeColor("grey"), ...(opensStage(step, i) ? {width: 1.3} : {width: 1, dash: "dot"})}}));
  const texts = named.map((step, i) => [opensStage(step, i) ? `<b>${stageOf(step)}</b>` : "", escaped(step.layers)]);
  traces.push({x: [1], y: [null], xaxis: "x2", showlegend: false, hoverinfo: "skip"});
  draw("curves", traces, {height, annotations, shapes, ...axes, legend: {y: 0, yref: "container", yanchor: "bottom"},
    xaxis: {title: "epoch", range, anchor: "y2", ...wholeNumbers(last)},
    xaxis2: {title: "", matches: "x", range, overlaying: "x", side: "top", anchor: "y", showgrid: false,
      ticklabelposition: "outside right", autotickangles: [0, -90], tickvals: named.map(step => step.first + .5),
      ticktext: texts.map(lines => lines.filter(Boolean).join("<br>"))},
    yaxis: {title: `dev ${escaped(data.label)}, %`, domain: [.42, 1]}}).then(() => {
    // The height that turned labels take from the plot is added.
    const missing = 350 - byId("curves")._fullLayout._size.h;
    if (missing > 0) Plotly.relayout("curves", {height: height + missing});
  });
}
