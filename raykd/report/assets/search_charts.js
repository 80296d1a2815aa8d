// The search: hypervolume by trial, source against target languages, importance of settings.

function drawSearch() {
  const {volume, scores, importance} = data;
  if (volume.length) draw("volume", [{x: volume.map(([number]) => number), y: volume.map(([, percent]) => percent),
    showlegend: false, mode: volume.length <= 60 ? "lines+markers" : "lines", marker: {size: 5},
    line: {shape: "hv", color: themeColor("ink"), width: 2}, hovertemplate: "trial #%{x}: %{y:.2f} %<extra></extra>"}],
    {height: 300, xaxis: {title: "trial", ...wholeNumbers(volume.at(-1)[0])}, yaxis: {title: "hypervolume, %"}});
  const styles = {
    dominated: {mode: "markers", marker: {size: 9, color: themeColor("grey"), opacity: .7}},
    front: {mode: "lines+markers+text", line: {shape: "vh", color: themeColor("ink"), width: 2},
      marker: {size: 22, color: themeColor("kind-0"), line: {color: themeColor("paper"), width: 1.2}},
      textfont: {size: 10, color: themeColor("paper")}},
    teacher: {mode: "markers", marker: {size: 16, symbol: "star", color: themeColor("gold")}},
  };
  if (byId("scores")) draw("scores", Object.entries(scores).map(([name, points]) => ({name, ...styles[name],
    text: points.map(([model]) => escaped(model)), x: points.map(([, source]) => source),
    y: points.map(([, , target]) => target),
    hovertemplate: "%{text}: source %{x:.1f}, targets %{y:.1f}<extra></extra>"})), {height: 420,
    xaxis: {title: `dev ${escaped(data.label)} of source languages, %`},
    yaxis: {title: `dev ${escaped(data.label)} of target languages, %`}});
  if (!importance) return;
  // Textures for readers who cannot tell the colours apart.
  const textures = ["", "/", ".", "x", "-", "+"], {settings} = importance, bars = Object.entries(importance.shares);
  draw("importance", bars.map(([name, shares], place) => ({type: "bar", orientation: "h", y: settings, x: shares,
    name: escaped(name), marker: {color: kindColor(place), pattern: {shape: textures[place % 6], size: 6}},
    hovertemplate: "%{y}: %{x:.0f} %<extra>%{fullData.name}</extra>"})).reverse(),
    {height: 86 + settings.length * (10 + 13 * bars.length), barmode: "group", bargap: .25,
      legend: {traceorder: "reversed"}, xaxis: {title: "share of the variance, %", range: [0, 102]},
      yaxis: {title: "", showgrid: false, ticklabelstandoff: 6}});
}
