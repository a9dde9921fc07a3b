// The text is the state; the form is a view of it. Changing a field sends a change of the text.
import "./models.js";
import { catchUp, say } from "./app.js";
import { post } from "./talk.js";

const text = document.getElementById("text");
const form = document.getElementById("p-form");
const save = document.getElementById("save");
const saved = document.getElementById("saved");
const { file } = text.dataset;
let clean = text.value;
let queue = Promise.resolve();
let stale = false; // the text was edited directly: the form must be redrawn
const undo = document.getElementById("undo");
const before = []; // earlier texts, for undo
const MAX_UNDO = 100;
const MAX_PROBLEMS = 30;

const page = () => Number(document.getElementById("cases-part")?.dataset.page ?? 1);

// -- the preview: what one arm is asked for one case -------------------------------------------------------------------

const preview = document.getElementById("preview");
const shownTrial = { case: 0, arm: "" };
let previewTimer = 0;
let previewRequest = 0;

function renewPreview() {
  clearTimeout(previewTimer);
  previewTimer = setTimeout(async () => {
    const request = ++previewRequest;
    const reply = await post("/suites/preview", { text: text.value, file, ...shownTrial });
    if (request !== previewRequest || reply.error) return;
    if (!reply.html) {
      preview.classList.add("dim"); // it shows the last text that could be read
      return;
    }
    preview.classList.remove("dim");
    shownTrial.case = reply.case;
    const focused = document.activeElement?.dataset?.preview;
    preview.innerHTML = reply.html; // our own template, texts escaped
    if (focused) preview.querySelector(`[data-preview="${focused}"]`)?.focus();
  }, 400);
}

preview.addEventListener("click", (event) => {
  const step = { before: -1, after: 1 }[event.target.dataset?.preview];
  if (!step) return;
  shownTrial.case = Math.max(0, shownTrial.case + step);
  renewPreview();
});
preview.addEventListener("change", (event) => {
  if (event.target.dataset.preview !== "arm") return;
  shownTrial.arm = event.target.value;
  renewPreview();
});

function showProblems(result) {
  renewPreview();
  document.getElementById("facts").textContent = result.facts || "not ready to run";
  const list = document.getElementById("problems");
  const shown = result.problems.slice(0, MAX_PROBLEMS);
  list.replaceChildren(
    ...shown.map((problem) => {
      const item = document.createElement("li");
      item.textContent = [problem.line && `line ${problem.line}`, problem.key, problem.message].filter(Boolean).join(": ");
      return item;
    }),
  );
  if (result.problems.length > shown.length) {
    const more = document.createElement("li");
    more.textContent = `and ${result.problems.length - shown.length} more`;
    list.append(more);
  }
  for (const field of form.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
  for (const note of form.querySelectorAll(".field-problem")) note.remove();
  for (const problem of shown) {
    const field = fields().find((item) => pathOf(item) === problem.key);
    if (!field) continue;
    field.setAttribute("aria-invalid", "true");
    const note = document.createElement("span");
    note.className = "bad field-problem";
    note.textContent = problem.message;
    note.id = `problem-${pathOf(field)}`;
    field.setAttribute("aria-describedby", note.id);
    field.closest("label")?.after(note);
  }
}

const fields = () => [...form.querySelectorAll("[data-path], [data-target], [data-scorer], [data-judge]")];

function pathOf(field) {
  if (field.dataset.path) return JSON.parse(field.dataset.path).join(".");
  if (field.dataset.target) return `targets.${field.dataset.target}.${field.dataset.key}`;
  if (field.dataset.scorer) return JSON.parse(field.dataset.scorer).join(".");
  return `judge.${field.dataset.judge}`;
}

function showError(message) {
  saved.textContent = message;
  saved.classList.add("bad");
}

function changed() {
  const dirty = text.value !== clean;
  save.disabled = !dirty;
  undo.disabled = !before.length;
  saved.classList.remove("bad");
  saved.textContent = dirty ? "Not saved yet." : "Saved.";
}

function redraw(html) {
  const open = [...form.querySelectorAll("details[open][data-keep]")].map((one) => one.dataset.keep);
  const active = document.activeElement;
  const focus = active?.dataset?.path ?? active?.dataset?.do ?? active?.id;
  form.innerHTML = html; // our own server's template, with every text of the suite escaped
  for (const keep of open) form.querySelector(`details[data-keep="${CSS.escape(keep)}"]`)?.setAttribute("open", "");
  const focused = [...form.querySelectorAll("[data-path], [data-do], [id]")].find((one) => focus && [one.dataset.path, one.dataset.do, one.id].includes(focus));
  focused?.focus();
}

function applyReply(reply) {
  if (text.value !== reply.text) before.push(text.value);
  if (before.length > MAX_UNDO) before.shift();
  text.value = reply.text;
  if (reply.html) redraw(reply.html);
  stale = false;
  changed();
  showProblems(reply);
}

// Changes are applied one at a time, in order, each to the text that the previous one produced. While the form is about
// to be redrawn, the old one is inert: its fields may belong to other cases by then.
function change(changes, { draw = false, at = page(), then } = {}) {
  if (draw) form.inert = true;
  queue = queue.then(async () => {
    const sent = text.value;
    const reply = await post("/suites/change", { text: sent, file, changes, form: draw || stale, page: at });
    form.inert = false;
    if (reply.error) return showError(reply.error);
    if (text.value !== sent) return showError("The file was edited in the meantime: this change was not applied.");
    applyReply(reply);
    then?.(reply);
  });
  return queue;
}

undo.addEventListener("click", () => {
  flush();
  queue = queue.then(async () => {
    if (!before.length) return;
    text.value = before.pop();
    const reply = await post("/suites/check", { text: text.value, file, form: true, page: page() });
    if (reply.html) redraw(reply.html);
    changed();
    showProblems(reply.error ? { problems: [{ message: reply.error }], facts: "" } : reply);
    say("Undone");
  });
});

function valueOf(field) {
  if (field.type === "checkbox") return field.checked || null;
  const value = field.value;
  if (field.dataset.kind === "number") return value.trim() === "" ? null : Number.isNaN(Number(value)) ? value : Number(value);
  if (field.dataset.kind === "list") return value.split(",").map((part) => part.trim()).filter(Boolean);
  return value;
}

function empty(value) {
  return value === "" || value === null || (Array.isArray(value) && !value.length) ? null : value;
}

function fieldChange(field) {
  if (field.dataset.kind === "words") return { do: "words", path: JSON.parse(field.dataset.path), text: field.value };
  if (field.dataset.kind === "mapping") return { do: "mapping", path: JSON.parse(field.dataset.path), text: field.value };
  if (field.dataset.path) return { do: "set", path: JSON.parse(field.dataset.path), value: empty(valueOf(field)) };
  if (field.dataset.target) return { do: "target", path: ["targets", Number(field.dataset.target)], key: field.dataset.key, value: field.value };
  if (field.dataset.judge) return { do: "judge", key: field.dataset.judge, value: empty(valueOf(field)) };
  if (field.dataset.rename) return { do: "rename", path: JSON.parse(field.dataset.rename), name: field.value };
  if (field.dataset.list) {
    const all = [...form.querySelectorAll(`[data-list="${CSS.escape(field.dataset.list)}"]`)];
    return { do: "set", path: JSON.parse(field.dataset.list), value: empty(all.filter((one) => one.checked).map((one) => one.value)) };
  }
  const box = field.closest(".fields");
  const scorer = field.matches("[data-scorer]") ? field : field.matches("[data-options]") ? box.querySelector("[data-scorer]") : null;
  if (!scorer) return null;
  return { do: "scorer", path: JSON.parse(scorer.dataset.scorer), type: scorer.value, options: box.querySelector("[data-options]").value };
}

let timer = 0;
let waiting = null;

// Send the pending field change now.
function flush() {
  clearTimeout(timer);
  if (!waiting) return;
  const field = waiting;
  waiting = null;
  const edit = fieldChange(field);
  if (edit) change([edit], { draw: edit.do === "rename" || "redraw" in field.dataset });
}

form.addEventListener("input", (event) => {
  if (event.target.matches("[data-rename], .chosen")) return; // a name is applied once typing has finished
  if (waiting && waiting !== event.target) flush();
  waiting = event.target;
  clearTimeout(timer);
  timer = setTimeout(flush, event.target.matches("select, [type=checkbox]") ? 0 : 350);
});

form.addEventListener("change", (event) => {
  if (event.target.matches("[data-rename]")) waiting = event.target;
  flush();
  if (event.target.id === "import" && event.target.files.length) importCases(event.target);
  if (event.target.id === "all-cases") for (const box of form.querySelectorAll(".chosen")) box.checked = event.target.checked;
});

const chosen = () => [...form.querySelectorAll(".chosen:checked")].map((box) => Number(box.value));

form.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  flush();
  if (button.dataset.do) {
    const edit = JSON.parse(button.dataset.do);
    change([edit], { draw: true, then: () => focusAdded(edit) });
  }
  else if (button.dataset.page) change([], { draw: true, at: Number(button.dataset.page) });
  else if (button.dataset.improve) improve(JSON.parse(button.dataset.improve));
  else if (button.id === "add-case") addCase();
  else if (button.id === "draft-cases") draftCases(button);
  else if (button.id.startsWith("bulk-")) bulk(button.id);
});

// Focus what was just added, so that typing continues there.
function focusAdded(edit) {
  if (edit.do === "insert" && edit.path[0] === "targets") [...form.querySelectorAll("[data-target][data-key=target]")].at(-1)?.select();
  if (edit.do !== "add") return;
  const kind = edit.path[0] === "conditions" ? "condition" : "server";
  const last = [...form.querySelectorAll(`details[data-keep^="${kind}-"]`)].at(-1);
  if (!last) return;
  last.open = true;
  last.querySelector("input").select();
}

function addCase() {
  change([{ do: "insert", path: ["cases"], values: [{ input: "A question", expected: "Its answer" }] }], {
    draw: true,
    at: 1e6,
    then: () => {
      const last = [...form.querySelectorAll("details[data-keep^=case-]")].at(-1);
      last.open = true;
      last.querySelector("textarea").select();
    },
  });
}

function bulk(action) {
  const picked = chosen();
  if (!picked.length) return showError("Select cases first: tick the boxes next to them.");
  if (action === "bulk-remove") return change([...picked].reverse().map((index) => ({ do: "remove", path: ["cases", index] })), { draw: true });
  if (action === "bulk-duplicate") return change([...picked].reverse().map((index) => ({ do: "duplicate", path: ["cases", index] })), { draw: true });
  const key = document.getElementById("bulk-key").value;
  const entered = document.getElementById("bulk-value").value.trim();
  const value = key === "weight" && entered !== "" && !Number.isNaN(Number(entered)) ? Number(entered) : key === "tags" ? entered.split(",").map((tag) => tag.trim()).filter(Boolean) : entered;
  return change(picked.map((index) => ({ do: "set", path: ["cases", index, key], value: empty(value) })), { draw: true });
}

async function importCases(input) {
  if (input.files[0].size > 20 * 2 ** 20) return showError("the file is larger than 20 MB: put it next to the suite and name it under `dataset:`");
  await queue;
  const body = new FormData();
  body.append("table", input.files[0]);
  body.append("text", text.value);
  body.append("file", file);
  const reply = await post("/suites/import", body);
  if (reply.error) return showError(reply.error);
  applyReply(reply);
  saved.textContent = `${reply.count} cases imported; not saved yet.`;
}

// -- drafts: reviewed before they become part of the text -----------------------------------------------------------

const dialog = document.getElementById("dialog");
const drafts = document.getElementById("drafts");

function field(name, value) {
  const label = document.createElement("label");
  label.className = "across";
  label.textContent = name;
  const area = document.createElement("textarea");
  area.value = value;
  area.rows = 2;
  area.dataset.name = name;
  label.append(area);
  return label;
}

async function draftCases(button) {
  await queue;
  button.disabled = true;
  const model = document.getElementById("draft-model").value;
  const count = Number(document.getElementById("draft-count").value);
  saved.textContent = "Drafting …";
  const reply = await post("/suites/draft", { kind: "cases", model, count, text: text.value });
  button.disabled = false;
  if (reply.error) return showError(reply.error);
  changed();
  drafts.replaceChildren(
    ...reply.draft.map((drafted, index) => {
      const box = document.createElement("fieldset");
      const legend = document.createElement("legend");
      const take = document.createElement("label");
      take.className = "check";
      const check = document.createElement("input");
      check.type = "checkbox";
      check.checked = true;
      take.append(check, ` Case ${index + 1}`);
      legend.append(take);
      box.append(legend, ...["id", "input", "expected", "category", "difficulty"].map((name) => field(name, drafted[name] ?? "")));
      return box;
    }),
  );
  dialog.onclose = () => {
    if (dialog.returnValue !== "accept") return;
    const accepted = [...drafts.querySelectorAll("fieldset")].filter((box) => box.querySelector("input").checked);
    const values = accepted.map((box) => Object.fromEntries([...box.querySelectorAll("textarea")].map((area) => [area.dataset.name, area.value.replaceAll("${", "$${")]).filter(([, value]) => value !== "")));
    if (values.length) change([{ do: "insert", path: ["cases"], values }], { draw: true, at: 1e6 });
  };
  dialog.returnValue = "";
  dialog.showModal();
}

async function improve(path) {
  await queue;
  const area = form.querySelector(`[data-path="${CSS.escape(JSON.stringify(path))}"]`) ?? [...form.querySelectorAll("[data-path]")].find((one) => one.dataset.path === JSON.stringify(path) || JSON.stringify(JSON.parse(one.dataset.path)) === JSON.stringify(path));
  const model = document.getElementById("draft-model").value;
  saved.textContent = "Drafting …";
  const reply = await post("/suites/draft", { kind: "prompt", model, prompt: area.value });
  if (reply.error) return showError(reply.error);
  changed();
  const before = field("current", area.value);
  before.querySelector("textarea").readOnly = true;
  const note = document.createElement("p");
  note.textContent = reply.draft.changes;
  drafts.replaceChildren(note, before, field("improved", reply.draft.prompt));
  dialog.onclose = () => {
    if (dialog.returnValue !== "accept") return;
    const value = drafts.querySelector('[data-name="improved"]').value.replaceAll("${", "$${");
    change([{ do: "set", path, value }], { draw: true });
  };
  dialog.returnValue = "";
  dialog.showModal();
}

// -- the file itself ----------------------------------------------------------------------------------------------

let typed = 0;
text.addEventListener("input", () => {
  stale = true;
  changed();
  clearTimeout(typed);
  typed = setTimeout(() => {
    queue = queue.then(async () => {
      const reply = await post("/suites/check", { text: text.value, file, form: true, page: page() });
      if (reply.error) return showProblems({ problems: [{ message: reply.error }], facts: "" });
      redraw(reply.html);
      stale = false;
      showProblems(reply);
    });
  }, 350);
});

async function check() {
  const late = form.querySelector("[data-late]"); // a long suite: its form comes with the check
  const wanted = late ? { form: true, page: Number(late.dataset.late) } : {};
  const reply = await post("/suites/check", { text: text.value, file, ...wanted });
  if (reply.html) redraw(reply.html);
  showProblems(reply.error ? { problems: [{ message: reply.error }], facts: "" } : reply);
}

queue = queue.then(check);
catchUp(form);

async function store() {
  flush();
  await queue;
  const sent = text.value;
  let reply = await post("/suites/save", { file, text: sent, before: text.dataset.before });
  if (reply.error?.includes("changed on disk") && window.confirm(`${reply.error}.\n\nOverwrite it with your text?`)) {
    reply = await post("/suites/save", { file, text: sent, before: "", force: true });
  }
  if (reply.error) return showError(reply.error);
  text.dataset.before = reply.before;
  clean = sent;
  changed();
  showProblems(reply);
  if (reply.problems.some((problem) => !["warning", "note"].includes(problem.key))) saved.textContent = "Saved, but it cannot run yet.";
}

save.addEventListener("click", store);
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "s") {
    event.preventDefault();
    if (!save.disabled || waiting) store();
  }
});
window.addEventListener("beforeunload", (event) => {
  if (text.value !== clean) event.preventDefault();
});
