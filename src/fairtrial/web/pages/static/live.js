// A run in progress: update counters and cells as they change. Model output is inserted as text, never as HTML.
import { follow, showProgress } from "./progress.js";

const panel = document.getElementById("live");
const grid = document.getElementById("grid");
const columns = grid ? [...grid.tHead.rows[0].cells].slice(1).map((head) => Number(head.dataset.arm)) : [];
const cases = grid ? [...grid.tBodies[0].rows].map((row) => row.dataset.case) : [];

function step(cell) {
  if (cell.mean === null) return cell.failed || cell.unscored ? "kx" : "kn";
  return `k${Math.max(0, Math.min(5, Math.floor(cell.mean / 20 + 0.5)))}`;
}

function fill(key, cell) {
  const [position, arm] = key.split(".").map(Number);
  const row = grid.querySelector(`tr[data-case="${position}"]`);
  const place = row?.cells[columns.indexOf(arm) + 1];
  if (!place) return;
  const far = place.classList.contains("far") ? " far" : "";
  place.className = `cell ${step(cell)}${far}`;
  const link = place.querySelector("a");
  link.removeAttribute("aria-label");
  const number = document.createElement("b");
  if (cell.mean !== null) number.append(cell.mean.toFixed(0));
  if (cell.failed) number.append(mark("✗", "bad", " failed"));
  if (cell.unscored) number.append(mark("?", "warn", " without a score"));
  if (!number.childNodes.length) number.append("…");
  const words = document.createElement("span");
  words.className = "clamp saying";
  words.textContent = cell.saying ?? link.querySelector(".clamp")?.textContent ?? "";
  link.replaceChildren(number, words);
}

function mark(sign, kind, label) {
  const badge = document.createElement("span");
  badge.className = `mark ${kind}`;
  badge.textContent = sign;
  const hidden = document.createElement("span");
  hidden.className = "visually-hidden";
  hidden.textContent = label;
  badge.append(hidden);
  return badge;
}

function show(state) {
  showProgress(state);
  if (grid) for (const [key, cell] of Object.entries(state.cells)) fill(key, cell);
}

const query = cases.map((position) => `case=${position}`).join("&");
let frame = 0;
let latest = null;
const waiting = {};
function receive(state) {
  // However fast events arrive, draw the page once per frame.
  latest = state;
  Object.assign(waiting, latest.cells);
  if (latest.status !== "running") {
    const focused = document.activeElement?.closest?.("#grid a")?.getAttribute("href");
    if (focused) sessionStorage.setItem("focus", focused);
    window.location.reload();
    return true;
  }
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    show({ ...latest, cells: { ...waiting } });
    for (const key of Object.keys(waiting)) delete waiting[key];
  });
  return false;
}

follow(`${panel.dataset.events}?${query}`, receive);
