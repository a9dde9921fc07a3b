// The run settings and their estimate.
import { catchUp } from "./app.js";
import { describe, search } from "./models.js";

const form = document.getElementById("arena");

let timer = 0;
let latest = 0;

async function estimate() {
  const request = ++latest;
  const reply = await fetch("/new/estimate", { method: "POST", body: new URLSearchParams(new FormData(form)) });
  const html = await reply.text();
  if (request === latest) document.getElementById("estimate").innerHTML = html; // our own template, texts escaped
}

function lock() {
  const locked = document.getElementById("benchmark").checked;
  for (const field of form.querySelectorAll("[data-lock]")) {
    field.disabled = locked;
    field.closest("label").classList.toggle("locked", locked);
    if (locked) field.dataset.kept ??= field.value;
    field.value = locked ? field.dataset.lock : (field.dataset.kept ?? field.value);
    if (!locked) delete field.dataset.kept;
  }
}

async function add() {
  const input = document.getElementById("add-model");
  const name = input.value.trim();
  if (!name) return;
  const model = (await search(name)).find((item) => item.name === name);
  const label = document.createElement("label");
  label.className = "check";
  const box = document.createElement("input");
  Object.assign(box, { type: "checkbox", name: "more", value: name, checked: true });
  const strong = document.createElement("b");
  strong.textContent = name;
  const facts = document.createElement("span");
  facts.className = "dim";
  facts.textContent = model ? ` ${describe(model)}` : "";
  label.append(box, " ", strong, facts);
  const line = document.createElement("p");
  line.append(label);
  document.getElementById("more").append(line);
  input.value = "";
  estimate();
}

if (form) {
  document.getElementById("add").addEventListener("click", add);
  document.getElementById("add-model").addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      add();
    }
  });
  form.addEventListener("input", (event) => {
    if (event.target.id === "add-model") return;
    if (event.target.id === "benchmark") lock();
    clearTimeout(timer);
    timer = setTimeout(estimate, 300);
  });
  catchUp(form);
  lock();
}
