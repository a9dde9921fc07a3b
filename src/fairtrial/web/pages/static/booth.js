// Vote and label without a page flash: the form is sent in the background and the next pair or answer takes its place.
// Every button names its keys; without this script the same form works as a page.
import { localTimes, lost, say, typing } from "./app.js";

let sending = false;

async function load(address, options) {
  const reply = await fetch(address, { headers: { Accept: "text/html" }, ...options });
  if (!reply.ok) throw new Error(String(reply.status));
  return { page: new DOMParser().parseFromString(await reply.text(), "text/html"), url: reply.url };
}

// A board that is still being computed: keep the old one until the new one is here.
async function fill(place, old) {
  const address = place.dataset.later;
  if (!address) return;
  if (old) place.replaceChildren(...old.childNodes);
  try {
    const { page } = await load(address);
    place.replaceChildren(...page.body.childNodes);
  } catch {
    if (!old) place.textContent = "Loading failed; reload the page to try again.";
  }
}

function arrive() {
  for (const place of document.querySelectorAll("#booth [data-later]")) fill(place);
}

async function send(form, button) {
  if (sending) return;
  sending = true;
  document.getElementById("booth").setAttribute("aria-busy", "true");
  const data = new FormData(form);
  if (button?.name) data.set(button.name, button.value);
  try {
    const { page, url } = await load(form.action, { method: "POST", body: new URLSearchParams(data) });
    const fresh = page.getElementById("booth");
    const old = document.getElementById("booth");
    const board = old.querySelector("[data-later], [data-board]");
    localTimes(page);
    old.replaceWith(fresh);
    document.title = page.title;
    document.querySelector("main").className = page.querySelector("main").className;
    history.replaceState(null, "", url);
    const place = fresh.querySelector("[data-later]");
    if (place) fill(place, board);
    window.scrollTo(0, 0);
    fresh.querySelector("[data-first]")?.focus({ preventScroll: true });
    say(fresh.querySelector("[data-said]")?.textContent.replace(/\s+/g, " ").trim() ?? "");
    lost("");
  } catch {
    document.getElementById("booth").removeAttribute("aria-busy");
    lost("The server does not answer: this was not counted. Try again.");
  } finally {
    sending = false;
  }
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("#booth form[method=post]")) return;
  event.preventDefault();
  send(event.target, event.submitter);
});

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.shiftKey || typing(event)) return;
  // An answer that has the focus scrolls with the arrows up and down.
  if (event.key === "ArrowDown" && event.target.closest?.("[data-scrolls]")) return;
  const button = document.querySelector(`#booth button[data-keys~="${CSS.escape(event.key)}"]`);
  if (!button) return;
  event.preventDefault();
  button.click();
});

arrive();
