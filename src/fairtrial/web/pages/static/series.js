// A series that is not over: counters as they change; the page is drawn anew where a run begins or ends, so that the
// analysis of several runs appears by itself, also where the series was stopped and is resumed in another tab.
import { fetchPending, localTimes, lost, say } from "./app.js";
import { follow, showProgress } from "./progress.js";

const page = () => document.getElementById("series");
let drawing = false;
let frame = 0;
let latest = null;

// Draw this page anew; what has the focus keeps it, and what was opened stays open.
async function draw() {
  const reply = await fetch(window.location.href, { headers: { Accept: "text/html" } });
  if (!reply.ok) throw new Error(String(reply.status));
  lost(""); // the server answers, even if the browser tries to hear its events only in a while
  const part = new DOMParser().parseFromString(await reply.text(), "text/html");
  const fresh = part.getElementById("series");
  for (const fold of page().querySelectorAll("details[open][id]")) {
    const same = [...fresh.querySelectorAll("details")].find((one) => one.id === fold.id);
    if (same) same.open = true;
  }
  const focused = document.activeElement?.id;
  localTimes(fresh);
  page().replaceWith(fresh);
  document.title = part.title;
  if (focused) document.getElementById(focused)?.focus();
  fetchPending(fresh);
  document.dispatchEvent(new Event("part-loaded"));
  say(fresh.querySelector("h1")?.textContent ?? "");
}

function update(state) {
  showProgress(state);
  document.getElementById("all-done").textContent = state.all_done;
}

function receive(state) {
  latest = state;
  if (state.shape !== page().dataset.shape) {
    if (!drawing) {
      drawing = true;
      draw().catch(() => {}).finally(() => {
        drawing = false;
        setTimeout(() => receive(latest), latest.shape === page().dataset.shape ? 0 : 500); // it may have changed since
      });
    }
  } else if (page().hasAttribute("data-live")) {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      if (page().hasAttribute("data-live")) update(latest);
    });
  }
  return state.over;
}

follow(page().dataset.events, receive);
