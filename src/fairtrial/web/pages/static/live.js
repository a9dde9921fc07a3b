// A run in progress: update counters and cells as they change. Model output is inserted as text, never as HTML.
import { say } from "./app.js";

const panel = document.getElementById("live");
const byId = (id) => document.getElementById(id);
const grid = byId("grid");
const cases = grid ? [...grid.tBodies[0].rows].map((row) => row.dataset.case) : [];

function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const minutes = Math.floor(seconds / 60);
  return minutes ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.round(seconds)} s`;
}

function tone(cell) {
  return cell.mean === null ? "t-none" : `t-${Math.max(0, Math.min(9, Math.floor(cell.mean / 10)))}`;
}

function fill(key, cell) {
  const [position, arm] = key.split(".").map(Number);
  const row = grid.querySelector(`tr[data-case="${position}"]`);
  const place = row?.cells[arm + 1];
  if (!place) return;
  place.className = `cell ${tone(cell)}`;
  const link = place.querySelector("a");
  link.removeAttribute("aria-label");
  link.className = "";
  link.replaceChildren();
  if (cell.mean !== null) link.append(cell.mean.toFixed(0));
  if (cell.failed) link.append(mark("✗", "bad", " failed"));
  if (cell.unscored) link.append(mark("?", "warn", " without a score"));
  if (cell.saying !== undefined && cell.mean === null) {
    const saying = document.createElement("span");
    saying.className = "saying";
    saying.textContent = cell.saying || "…";
    link.append(saying);
  } else if (!link.childNodes.length) link.append("…");
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

let announcedAt = 0;

function show(state) {
  if (state.total !== undefined) {
    byId("bar").max = state.total;
    byId("bar").value = state.done;
    byId("done").textContent = state.done;
    byId("total").textContent = state.total;
    byId("rate").textContent = state.rate === null ? "–" : state.rate.toFixed(1);
    byId("left").textContent = span(state.left);
    byId("cost").textContent = state.cost;
    byId("bad").textContent = state.bad;
    byId("part").textContent = state.part ?? "";
    state.arms.forEach((arm, index) => {
      const row = panel.querySelector(`tr[data-arm="${index}"]`);
      row.querySelector("progress").value = arm.done;
      row.querySelector(".done").textContent = arm.done;
      row.querySelector(".mean").textContent = arm.mean === null ? "–" : arm.mean.toFixed(1);
      row.querySelector(".bad").textContent = arm.bad || "";
    });
    if (Date.now() - announcedAt > 15000) {
      announcedAt = Date.now();
      say(`${state.done} of ${state.total} trials done`);
    }
  }
  if (grid) for (const [key, cell] of Object.entries(state.cells)) fill(key, cell);
  document.title = `${state.done ?? ""}/${state.total ?? ""} · fairtrial`;
}

const query = cases.map((position) => `case=${position}`).join("&");
let events;
let frame = 0;
let latest = null;
const waiting = {};
function receive(event) {
  // However fast events arrive, draw the page once per frame.
  latest = JSON.parse(event.data);
  Object.assign(waiting, latest.cells);
  if (latest.status !== "running") {
    events.close();
    const focused = document.activeElement?.closest?.("#grid a")?.getAttribute("href");
    if (focused) sessionStorage.setItem("focus", focused);
    window.location.reload();
    return;
  }
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    show({ ...latest, cells: { ...waiting } });
    for (const key of Object.keys(waiting)) delete waiting[key];
  });
}

// A hidden tab holds no connection: a browser allows only six per server.
function listen() {
  events?.close();
  if (document.hidden) return;
  events = new EventSource(`${panel.dataset.events}?${query}`);
  events.onmessage = receive;
}

document.addEventListener("visibilitychange", listen);
listen();
