// A run in progress: update counters and cells as they change. Model output is inserted as text, never as HTML.
import { lost, say } from "./app.js";

const panel = document.getElementById("live");
const byId = (id) => document.getElementById(id);
const grid = byId("grid");
const columns = grid ? [...grid.tHead.rows[0].cells].slice(1).map((head) => Number(head.dataset.arm)) : [];
const cases = grid ? [...grid.tBodies[0].rows].map((row) => row.dataset.case) : [];

function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const minutes = Math.floor(seconds / 60);
  return minutes ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.round(seconds)} s`;
}

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

// A line that has its room from the beginning, so that nothing moves when there is something to say.
function tell(place, words) {
  place.textContent = words.join(" · ");
  place.title = place.textContent;
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
    tell(byId("why"), state.waits);
    tell(byId("failures"), state.failures);
    state.arms.forEach((arm, index) => {
      const row = panel.querySelector(`tr[data-arm="${index}"]`);
      row.querySelector("progress").value = arm.done;
      row.querySelector(".count").textContent = arm.done;
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
  events.onopen = () => lost("");
  events.onerror = () => {
    lost("The server does not answer. The run may have stopped; what was answered is kept. Trying again …");
    byId("left").textContent = "–";
    byId("rate").textContent = "–";
  };
}

document.addEventListener("visibilitychange", listen);
listen();
