// Pages while they are written: each new state is a separate sandboxed page, shown from another origin.
import { say } from "./app.js";

const sides = document.getElementById("sides");
let events;
const find = (arm, repeat) => sides.querySelector(`section[data-arm="${arm}"][data-repeat="${repeat}"]`);

function show(section, address) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", sides.dataset.sandbox);
  frame.setAttribute("referrerpolicy", "no-referrer");
  frame.title = "The page so far, sandboxed";
  // Keep the old state until the new one has loaded, so that nothing flickers.
  const place = section.querySelector(".frame");
  const old = [...place.children];
  frame.addEventListener("load", () => {
    for (const node of old) node.remove();
    frame.hidden = false;
  });
  frame.hidden = old.some((node) => node.tagName === "IFRAME");
  if (!frame.hidden) for (const node of old) node.remove();
  frame.src = address;
  place.append(frame);
}

// The trials that the page already shows as ended; it reloads when there are more.
const shown = new Set([...sides.querySelectorAll("[data-ended]")].map((section) => `${section.dataset.arm}.${section.dataset.repeat}`));

function receive(event) {
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
    if (badge) badge.textContent = "being checked";
  }
  if (state.ended.some(([arm, repeat]) => !shown.has(`${arm}.${repeat}`)) || state.status !== "running") {
    events.close();
    say("A page is finished");
    window.location.reload();
  }
}

// A hidden tab holds no connection: a browser allows only six per server.
function listen() {
  events?.close();
  if (document.hidden) return;
  events = new EventSource(sides.dataset.events);
  events.onmessage = receive;
}

document.addEventListener("visibilitychange", listen);
listen();
