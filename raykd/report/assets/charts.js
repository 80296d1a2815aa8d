"use strict";
// The scripts of the page share one scope, in the order of SCRIPTS in front_page.py. This one has the data and what all
// charts share.

const byId = id => document.getElementById(id);
const data = JSON.parse(byId("figures").textContent), students = data.students;
const state = {part: "dev", student: byId("student").value, dark: false, drawable: false};
const narrow = () => innerWidth < 620, touchScreen = matchMedia("(pointer: coarse)");
const isNumber = Number.isFinite;

// Texts. Plotly reads a few tags in them, so names that a user chose are escaped.

const escaped = text => text.replace(/[&<>]/g, sign => `&#${sign.charCodeAt(0)};`);
const wrapped = text => escaped(text.replace(/(.{1,76})( |$)/g, "$1\n").trimEnd()).replace(/\n/g, "<br>");
const titled = (name, texts, form = wrapped) =>
  [`<b>${escaped(name)}</b>`, ...texts.map(text => form(text))].join("<br>");

// Colours, axes, and the call of plotly.

const probe = document.body.appendChild(document.createElement("i"));
function themeColor(name) {  // a colour of page.css as it is now: light or dark
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
const kindColor = kind => themeColor(`kind-${kind % 8}`);
function axis({title, ...more}) {
  return {gridcolor: themeColor("grid"), zeroline: false, automargin: true,
    title: {text: title, font: {color: themeColor("quiet"), size: 13}, standoff: 12}, ...more};
}
const wholeNumbers = last => ({tickformat: "d", ...(last < 8 ? {dtick: 1} : {})});  // for an axis from 0 or 1 to `last`
function draw(id, traces, {legend, margin, ...layout}) {
  const font = {family: getComputedStyle(document.body).fontFamily, size: 13, color: themeColor("ink")};
  const clear = "rgba(0,0,0,0)";
  for (const [name, value] of Object.entries(layout)) if (/^[xy]axis/.test(name)) layout[name] = axis(value);
  return Plotly.react(byId(id), traces, {
    font, paper_bgcolor: clear, plot_bgcolor: clear, hovermode: "closest",
    margin: {l: 20, r: 16, t: 16, b: 20, ...margin},
    // A finger that scrolls the page must not zoom.
    dragmode: touchScreen.matches ? false : "zoom",
    hoverlabel: {bgcolor: themeColor("paper"), bordercolor: themeColor("grey"), font, align: "left"},
    legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0, itemsizing: "constant", ...legend},
    modebar: {bgcolor: clear, color: themeColor("grey"), activecolor: themeColor("ink")}, ...layout,
  }, {
    // Nothing here may leave the reader's machine: no button that uploads the chart.
    responsive: true, displaylogo: false, showSendToCloud: false, displayModeBar: narrow() ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "pan2d", "zoomIn2d", "zoomOut2d", "sendChartToCloud"],
  });
}
