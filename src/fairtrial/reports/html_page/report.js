"use strict";
// Text from models is only ever set as text content; nothing here sets HTML.
const PAGE = 50;
const $ = (id) => document.getElementById(id);
const state = { trials: [], shown: [], page: 0, cases: [], arms: [], only: null, spread: [] };

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

async function unpack() {
  const packed = Uint8Array.from(atob($("data").content.textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function read(data) {
  state.arms = data.arms;
  state.cases = data.cases;
  data.cases.forEach((item, place) => {
    for (const [arm, repeat, score, answer, note, facts, verdicts, calls] of item.trials)
      state.trials.push({ place, case: item, arm, repeat, score, answer, note, facts: facts || [], verdicts: verdicts || [], calls: calls || [] });
  });
  data.arms.forEach((name, number) => {
    const option = element("option", name);
    option.value = String(number);
    $("arm").append(option);
  });
}

const scored = (trial) => typeof trial.score === "number";
const KINDS = {
  "": () => true,
  low: (trial) => scored(trial) && trial.score < 50,
  mid: (trial) => scored(trial) && trial.score >= 50 && trial.score < 100,
  full: (trial) => trial.score === 100,
  none: (trial) => !scored(trial),
};

function choose() {
  const words = $("search").value.trim().toLowerCase();
  const arm = $("arm").value;
  const kind = KINDS[$("kind").value];
  const has = (text) => text && String(text).toLowerCase().includes(words);
  state.shown = state.trials.filter(
    (trial) =>
      (state.only === null || trial.place === state.only) &&
      (arm === "" || trial.arm === Number(arm)) &&
      kind(trial) &&
      (!words || has(trial.case.id) || has(trial.answer) || has(trial.note) || has(trial.case.input) || trial.case.kinds.some(has)),
  );
  const order = $("order").value;
  if (order === "differ") {
    state.shown = [...state.shown].sort((a, b) => state.spread[b.place] - state.spread[a.place]);
  } else if (order !== "case") {
    const sign = order === "worst" ? 1 : -1;
    const worth = (trial) => (scored(trial) ? trial.score : -1);
    state.shown = [...state.shown].sort((a, b) => sign * (worth(a) - worth(b)));
  }
  state.page = 0;
  draw();
}

function draw() {
  const body = $("table").tBodies[0];
  const first = state.page * PAGE;
  const pages = Math.max(1, Math.ceil(state.shown.length / PAGE));
  body.replaceChildren(...state.shown.slice(first, first + PAGE).map(row));
  const ofCase = state.only === null ? "" : ` of case ${state.cases[state.only].id}`;
  $("count").textContent = `${state.shown.length} of ${state.trials.length} trials${ofCase} `;
  if (state.only !== null) {
    const all = element("button", "all cases");
    all.type = "button";
    all.addEventListener("click", () => { state.only = null; choose(); });
    $("count").append(all);
  }
  $("page").textContent = `page ${state.page + 1} of ${pages}`;
  $("before").disabled = state.page === 0;
  $("after").disabled = state.page + 1 >= pages;
}

function row(trial) {
  const made = element("tr", null, "row");
  const name = element("button", trial.case.id + (trial.repeat > 1 ? ` #${trial.repeat}` : ""));
  name.type = "button";
  name.setAttribute("aria-expanded", "false");
  const head = element("td");
  head.append(name);
  made.append(head, element("td", state.arms[trial.arm]));
  made.append(element("td", scored(trial) ? trial.score.toFixed(1) : trial.score, "number"));
  made.append(element("td", (trial.answer || trial.note || "").slice(0, 300)));
  made.addEventListener("click", () => toggle(made, name, trial));
  return made;
}

function toggle(made, name, trial) {
  const open = name.getAttribute("aria-expanded") === "true";
  name.setAttribute("aria-expanded", String(!open));
  if (open) made.nextSibling.remove();
  else made.after(details(trial));
}

function details(trial) {
  const made = element("tr", null, "open");
  const cell = element("td");
  cell.colSpan = 4;
  const part = (title, text) => {
    if (text === undefined || text === null || text === "") return;
    cell.append(element("strong", title), element("pre", text));
  };
  part("prompt", trial.case.input);
  part("expected", trial.case.expected);
  part(trial.score === "failed" ? "failure" : "answer", trial.answer);
  part("score", trial.note ? `${scored(trial) ? trial.score.toFixed(1) : trial.score}: ${trial.note}` : null);
  for (const [judge, value, said] of trial.verdicts) part(`judge ${judge}`, `${value === null ? "no verdict" : value}: ${said}`);
  for (const call of trial.calls) part("tool call", call);
  const [id, model, latency, cost, tokens] = trial.facts;
  const facts = [["trial", id], ["model", model], ["latency, ms", latency], ["cost, USD", cost], ["completion tokens", tokens]];
  const list = element("dl");
  for (const [key, value] of facts) if (value !== null && value !== undefined) list.append(element("dt", key), element("dd", value));
  cell.append(list);
  made.append(cell);
  return made;
}

// The heat map: blocks of cases, one row per arm.
function colour(value) {
  if (value === null) return "transparent";
  const low = [213, 94, 0], middle = [240, 228, 200], high = [0, 114, 178];
  const [from, to, share] = value < 50 ? [low, middle, value / 50] : [middle, high, (value - 50) / 50];
  return `rgb(${from.map((c, i) => Math.round(c + (to[i] - c) * share)).join(",")})`;
}

function heat() {
  const arms = state.arms.length, count = state.cases.length;
  if (!count) return;
  const space = Math.max(240, $("heat").clientWidth), size = Math.max(6, Math.min(22, Math.floor(space / Math.min(count, 150))));
  const wide = Math.max(1, Math.floor(space / size)), block = arms * size + 8, rows = Math.ceil(count / wide);
  const canvas = document.createElement("canvas");
  canvas.width = Math.min(count, wide) * size;
  canvas.height = rows * block;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Mean scores of ${count} cases under ${arms} arms; the table below lists them all.`);
  const pen = canvas.getContext("2d");
  const means = state.cases.map((item) => {
    const sums = Array.from({ length: arms }, () => [0, 0]);
    for (const trial of item.trials) if (typeof trial[2] === "number") { sums[trial[0]][0] += trial[2]; sums[trial[0]][1] += 1; }
    return sums.map(([sum, n]) => (n ? sum / n : null));
  });
  means.forEach((values, place) => values.forEach((value, arm) => {
    const x = (place % wide) * size, y = Math.floor(place / wide) * block + arm * size;
    pen.fillStyle = colour(value);
    pen.fillRect(x, y, size - 1, size - 1);
    if (value === null) { pen.strokeStyle = "#888"; pen.strokeRect(x + 0.5, y + 0.5, size - 2, size - 2); }
  }));
  state.spread = means.map((values) => {
    const known = values.filter((value) => value !== null);
    return known.length > 1 ? Math.max(...known) - Math.min(...known) : -1;
  });
  const at = (event) => {
    const place = Math.floor(event.offsetX / size) + wide * Math.floor(event.offsetY / block), arm = Math.floor((event.offsetY % block) / size);
    return place < count && arm < arms ? { place, arm } : null;
  };
  canvas.addEventListener("mousemove", (event) => {
    const found = at(event);
    if (!found) return;
    const value = means[found.place][found.arm];
    $("heat-note").textContent = `${state.cases[found.place].id} · ${state.arms[found.arm]} · ${value === null ? "no score" : value.toFixed(1)}`;
  });
  canvas.addEventListener("click", (event) => {
    const found = at(event);
    if (!found) return;
    state.only = found.place;
    choose();
    $("trials").scrollIntoView({ behavior: "smooth" });
  });
  $("heat").replaceChildren(canvas);
  $("heat-note").textContent = `Rows, from top to bottom: ${state.arms.join(", ")}.`;
}

unpack().then((data) => {
  read(data);
  heat();
  for (const id of ["search", "arm", "kind", "order"]) $(id).addEventListener("input", choose);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("before").addEventListener("click", () => { state.page -= 1; draw(); });
  $("after").addEventListener("click", () => { state.page += 1; draw(); });
  choose();
  document.documentElement.dataset.ready = "yes";
}).catch((error) => { $("count").textContent = `The answers could not be loaded in this browser: ${error}`; });
