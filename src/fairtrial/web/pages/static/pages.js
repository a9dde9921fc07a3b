// Pages while they are written: each new state is a sealed page of its own, shown from another origin.
import { say } from "./app.js";

const sides = document.getElementById("sides");
let events;
const find = (arm, repeat) => sides.querySelector(`section[data-arm="${arm}"][data-repeat="${repeat}"]`);

function show(section, address) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", sides.dataset.sandbox);
  frame.setAttribute("referrerpolicy", "no-referrer");
  frame.title = "The page so far, sealed";
  // The old state stays until the new one is there: nothing flickers.
  const place = section.querySelector(".frame");
  const old = [...place.children];
  frame.addEventListener("load", () => {
    for (const one of old) one.remove();
    frame.hidden = false;
  });
  frame.hidden = old.some((one) => one.tagName === "IFRAME");
  if (!frame.hidden) for (const one of old) one.remove();
  frame.src = address;
  place.append(frame);
}

// What the page already shows as ended; when there is more, it is loaded anew.
const shown = new Set([...sides.querySelectorAll("[data-ended]")].map((section) => `${section.dataset.arm}.${section.dataset.repeat}`));

function hear(event) {
  const state = JSON.parse(event.data);
  for (const side of state.sides) {
    const section = find(side.arm, side.repeat) ?? find(side.arm, 0);
    if (!section || "done" in section.dataset) continue;
    section.querySelector(".state").textContent = "writing";
    section.querySelector(".length").textContent = `${side.length} characters`;
    section.querySelector(".tail").textContent = side.tail;
    if (side.preview) show(section, side.preview);
  }
  for (const [arm, repeat] of state.answered) {
    const badge = find(arm, repeat)?.querySelector(".state");
    if (badge) badge.textContent = "being looked at";
  }
  if (state.ended.some(([arm, repeat]) => !shown.has(`${arm}.${repeat}`)) || state.status !== "running") {
    events.close();
    say("A page is done");
    window.location.reload();
  }
}

// A tab that nobody sees holds no connection: a browser has only six of them for one server.
function listen() {
  events?.close();
  if (document.hidden) return;
  events = new EventSource(sides.dataset.events);
  events.onmessage = hear;
}

document.addEventListener("visibilitychange", listen);
listen();
