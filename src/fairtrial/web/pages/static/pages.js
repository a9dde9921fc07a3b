// Pages while they are written: each new state is a separate sandboxed page, shown from another origin.
import { localTimes, lost, say } from "./app.js";

const sides = document.getElementById("sides");
let events;
const find = (arm, repeat, root = sides) => root.querySelector(`section[data-arm="${arm}"][data-repeat="${repeat}"]`);
const latest = new WeakMap(); // the newest frame of each section

function show(section, address) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", sides.dataset.sandbox);
  frame.setAttribute("referrerpolicy", "no-referrer");
  frame.title = "The page so far, sandboxed";
  // Keep the old state until the new one has loaded, so that nothing flickers. A state that loads after a newer one
  // is dropped: it must not hide the finished page.
  const place = section.querySelector(".frame");
  latest.set(section, frame);
  frame.addEventListener("load", () => {
    if (latest.get(section) !== frame) return frame.remove();
    for (const node of [...place.children]) if (node !== frame) node.remove();
    frame.hidden = false;
  });
  frame.hidden = Boolean(place.querySelector("iframe"));
  if (!frame.hidden) place.replaceChildren();
  frame.src = address;
  place.append(frame);
}

// The trials that the page already shows as ended; the others are fetched when they end.
const key = (arm, repeat) => `${arm}.${repeat}`;
const shown = new Set([...sides.querySelectorAll("[data-ended]")].map((section) => key(section.dataset.arm, section.dataset.repeat)));

// Put the finished pages, with their checks, in the place of the growing ones; the others go on undisturbed.
async function finish(ended) {
  const reply = await fetch(window.location.href, { headers: { Accept: "text/html" } });
  if (!reply.ok) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  localTimes(page);
  for (const [arm, repeat] of ended) {
    const fresh = find(arm, repeat, page);
    if (!fresh) continue;
    const old = find(arm, repeat);
    if (old) old.replaceWith(fresh);
    else sides.append(fresh);
    say(`The page by ${fresh.getAttribute("aria-label")} is finished`);
  }
  document.querySelector("main .heading")?.replaceWith(page.querySelector("main .heading"));
}

let work = Promise.resolve();

function receive(event) {
  lost("");
  const state = JSON.parse(event.data);
  for (const side of state.sides) {
    const section = find(side.arm, side.repeat) ?? find(side.arm, 0);
    if (!section || "done" in section.dataset) continue;
    section.querySelector(".state").textContent = "writing";
    section.querySelector(".length").textContent = `${side.length.toLocaleString()} characters`;
    section.querySelector(".tail").textContent = side.tail;
    if (side.preview) show(section, side.preview);
  }
  for (const [arm, repeat] of state.answered) {
    const badge = find(arm, repeat)?.querySelector(".state");
    if (badge) badge.textContent = "being checked";
  }
  const ended = state.ended.filter(([arm, repeat]) => !shown.has(key(arm, repeat)));
  for (const [arm, repeat] of ended) shown.add(key(arm, repeat));
  const over = state.status !== "running";
  if (over) events.close();
  if (ended.length || over) work = work.then(() => finish(ended)).catch(() => window.location.reload());
}

// A hidden tab holds no connection: a browser allows only six per server.
function listen() {
  events?.close();
  if (document.hidden) return;
  events = new EventSource(sides.dataset.events);
  events.onmessage = receive;
  events.onerror = () => lost("The server does not answer. What was answered is kept. Trying again …");
}

document.addEventListener("visibilitychange", listen);
listen();
