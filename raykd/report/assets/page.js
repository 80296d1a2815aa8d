// What the page shows, and its controls.

function drawStudent() {
  drawLanguages();
  drawCurves();
}
function drawAll() {
  if (!state.drawable) return;
  drawFront();
  drawStudent();
  drawSearch();
}
function choose(number, announce = true) {
  state.student = String(number);
  byId("student").value = state.student;
  const student = students[state.student];
  if (student) byId("box").innerHTML = titled(student.name, student.facts, escaped)
    + `<p class="settings">${student.settings.map(escaped).join("<br>")}</p>`;
  for (const row of document.querySelectorAll("tr[data-number]")) {
    const chosen = row.dataset.number === state.student;
    row.classList.toggle("chosen", chosen);
    row.setAttribute("aria-selected", String(chosen));
  }
  setTabStop();
  byId("picked").innerHTML = announce && student
    ? `<b>${escaped(student.name)}</b> is shown <a href="#student-section">below</a>` : "";
  if (state.drawable) { drawFront(); drawStudent(); }
}
function showPart(part) {
  state.part = part;
  document.body.classList.toggle("test", part === "test");
  for (const name of ["dev", "test"]) byId(name).setAttribute("aria-pressed", String(name === part));
  drawAll();
}
function setTheme(dark) {
  state.dark = dark;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = dark ? "light" : "dark";
  byId("theme").setAttribute("aria-label", `Show the page in ${dark ? "light" : "dark"} colours`);
  drawAll();
}
// In a sandbox, such as MLflow's, nothing can be stored: the choice then lasts for this visit.
const storedTheme = () => { try { return localStorage.getItem("raykd-theme"); } catch { return null; } };
const storeTheme = name => { try { localStorage.setItem("raykd-theme", name); } catch { /* see above */ } };

// The table: sorted by its headings; rows are chosen by click, or by arrows and Enter.

const shownRows = () => [...document.querySelectorAll("tr[data-number]")].filter(row => row.offsetParent);
function setTabStop() {
  // One row is reached by Tab, the others from there by the arrows.
  const rows = shownRows(), stop = rows.find(row => row.dataset.number === state.student) ?? rows[0];
  for (const row of rows) row.tabIndex = row === stop ? 0 : -1;
}
function sort(th) {
  const ascending = th.getAttribute("aria-sort") !== "ascending", column = th.cellIndex;
  const body = document.querySelector("#table tbody");
  const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const order = (a, b) => {
    const x = value(a), y = value(b);
    if (x === "" || y === "") return (x === "") - (y === "");
    const difference = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
    return ascending ? difference : -difference;
  };
  for (const heading of document.querySelectorAll("#table th")) heading.removeAttribute("aria-sort");
  th.setAttribute("aria-sort", ascending ? "ascending" : "descending");
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

// The other controls.

byId("dev").onclick = () => showPart("dev");
byId("test").onclick = () => showPart("test");
byId("all").onchange = event => { document.body.classList.toggle("all", event.target.checked); setTabStop(); };
byId("student").onchange = event => choose(event.target.value);
byId("theme").hidden = false;
byId("theme").onclick = () => { setTheme(!state.dark); storeTheme(state.dark ? "dark" : "light"); };
const systemTheme = matchMedia("(prefers-color-scheme: dark)");
systemTheme.onchange = () => storedTheme() || setTheme(systemTheme.matches);
matchMedia("(max-width: 619px)").onchange = drawAll;
let darkBeforePrint;
onbeforeprint = () => { darkBeforePrint = state.dark; setTheme(false); };
onafterprint = () => setTheme(darkBeforePrint);

// The page of a running sweep reloads itself and keeps what was chosen.
const reloadMeta = document.querySelector("meta[name=raykd-again]");
const session = (name, value) => { try {
  return value === undefined ? sessionStorage.getItem(name) : sessionStorage.setItem(name, value);
} catch { return null; } };
if (reloadMeta) {
  const key = `raykd-${document.title.split(":")[0]}`, choice = JSON.parse(session(key) ?? "null");
  if (choice) {
    if (students[choice.student]) state.student = choice.student;
    byId("all").checked = choice.all;
    document.body.classList.toggle("all", choice.all);
    if (choice.part === "test") showPart("test");
  }
  const minutes = Math.round((Date.now() - Date.parse(reloadMeta.dataset.written)) / 60000);
  byId("old").hidden = minutes < 10;
  byId("old").textContent = `Last written ${minutes} minutes ago: raykd watch shows whether the sweep still runs.`;
  setTimeout(() => {
    session(key, JSON.stringify({student: state.student, part: state.part, all: byId("all").checked}));
    location.reload();
  }, 1000 * reloadMeta.content);
}
document.querySelector(".student").hidden = !state.student;
setTheme((storedTheme() ?? (systemTheme.matches ? "dark" : "light")) === "dark");
choose(state.student, false);

// The library is packed (see front_page.py). Everything but the charts works before it is there, and without it.
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), character => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
async function start() {
  const script = document.createElement("script");
  script.textContent = await unpack(byId("plotly").textContent.trim());
  document.head.append(script);
  state.drawable = true;
  drawAll();
  byId("plot").on("plotly_click", event => {
    const number = event.points[0].customdata;
    if (number !== undefined) choose(number);
  });
  document.documentElement.dataset.ready = "yes";
}
start().catch(error => { byId("no-pictures").hidden = false; throw error; });
