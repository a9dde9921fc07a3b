// The steps of a trial: other slices of them, jumps to one of them, and those of a trial that is under way.
import { say } from "./app.js";

const LIVE = 2000; // milliseconds between two looks at a trial that is under way
const MOST = 300; // steps of it that stay on the page
const place = () => document.getElementById("steps");

async function part(query) {
  const reply = await fetch(`${place().dataset.address}/steps${query}`, { headers: { Accept: "text/html" } });
  if (!reply.ok) throw new Error(String(reply.status));
  const page = new DOMParser().parseFromString(await reply.text(), "text/html"); // our own template, texts escaped
  return page.getElementById("steps");
}

function arrive(id) {
  const step = document.getElementById(id);
  if (!step) return false;
  const row = step.closest("li");
  for (const fold of row.querySelectorAll("details")) fold.open = true;
  for (const other of document.querySelectorAll(".step.here")) other.classList.remove("here");
  row.classList.add("here");
  row.tabIndex = -1;
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "center" });
  history.replaceState(null, "", `#${id}`);
  return true;
}

async function jump(id) {
  if (arrive(id)) return;
  place().replaceWith(await part(`?first=${id.slice(1)}`));
  arrive(id);
}

// Add a slice before or after the steps that are there, with the way to the next one.
async function extend(link, where) {
  const fresh = await part(new URL(link.href).search);
  const own = [...fresh.querySelectorAll(".steps > li")];
  const list = place().querySelector(".steps");
  const way = fresh.querySelector(`[data-slice="${where}"]`)?.closest("p");
  if (where === "after") list.append(...own);
  else list.prepend(...own);
  const old = link.closest("p");
  if (way) old.replaceWith(way);
  else old.remove();
  own.find((row) => row.classList.contains("step"))?.querySelector("a")?.focus({ preventScroll: where === "after" });
  say(`${own.length} more steps`);
}

async function choose(link) {
  const query = new URL(link.href).search;
  const fresh = await part(query);
  place().replaceWith(fresh);
  fresh.querySelector(".ways [aria-current]")?.focus();
  say(`${fresh.querySelectorAll(".step").length} steps`);
}

document.addEventListener("click", async (event) => {
  const link = event.target.closest("#steps a[data-slice], #steps a.at");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const kind = link.dataset.slice;
  try {
    if (kind === "jump" || kind === undefined) await jump(new URL(link.href).hash.slice(1));
    else if (kind === "before" || kind === "after") await extend(link, kind);
    else await choose(link);
  } catch {
    window.location.assign(link.href);
  }
});

function follow() {
  const id = window.location.hash.slice(1);
  if (/^e\d+$/.test(id)) jump(id).catch(() => {});
}

function plain(row) {
  const copy = row.cloneNode(true);
  copy.classList.remove("here");
  copy.removeAttribute("tabindex");
  for (const fold of copy.querySelectorAll("details")) fold.open = false;
  return copy;
}

function update(fresh) {
  const now = place();
  const list = now.querySelector(".steps");
  if (!list) return now.replaceChildren(...fresh.childNodes);
  const ways = fresh.querySelector(".ways");
  if (ways && !now.querySelector(".ways").contains(document.activeElement)) now.querySelector(".ways").replaceWith(ways);
  for (const row of [...fresh.querySelectorAll(".steps > .step")]) {
    const known = document.getElementById(row.id);
    if (!known) list.append(row);
    else if (!plain(known).isEqualNode(plain(row))) known.replaceWith(row);
  }
  while (list.children.length > MOST) list.firstElementChild.remove();
}

async function watch() {
  const only = new URLSearchParams(window.location.search).get("only");
  try {
    const fresh = await part(only ? `?only=${encodeURIComponent(only)}` : "");
    if (fresh.dataset.ended !== undefined) return window.location.reload();
    update(fresh);
  } catch {
    // The next look may succeed.
  }
  setTimeout(watch, LIVE);
}

if (place()) {
  follow();
  addEventListener("hashchange", follow);
  if (place().dataset.live !== undefined) setTimeout(watch, LIVE);
}
