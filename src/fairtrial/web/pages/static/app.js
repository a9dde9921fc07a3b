// Shared by every page: times in the reader's zone, parts loaded later, tabs, and confirmation before data is deleted.

const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function localTimes(root = document) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    time.title = time.textContent;
    time.textContent = zone.format(moment);
  }
}

// Announce a message to screen readers.
export function say(message) {
  document.getElementById("say").textContent = message;
}

// Load the parts of a page that take longer to compute than a page may take to load: rows one after another, for they
// would take all connections; parts at the same time, for one must not wait for a slower one.
export async function fetchPending(root = document) {
  for (const place of root.querySelectorAll("[data-pending]:not(tr)")) fetchPart(place);
  for (const place of root.querySelectorAll("tr[data-pending]")) await fetchPart(place);
}

async function fetchPart(place) {
  const address = place.dataset.pending;
  delete place.dataset.pending;
  try {
    const reply = await fetch(address, { headers: { Accept: "text/html" } });
    if (!reply.ok) throw new Error(String(reply.status));
    const part = new DOMParser().parseFromString(place.tagName === "TR" ? `<table><tbody>${await reply.text()}</tbody></table>` : await reply.text(), "text/html");
    const fresh = part.getElementById(place.closest("section[id]")?.id ?? ""); // the same section of a whole page
    const nodes = place.tagName === "TR" ? [...part.querySelectorAll("tr")] : fresh ? [...fresh.childNodes] : [...part.body.childNodes];
    localTimes(part);
    place.replaceWith(...nodes);
    document.dispatchEvent(new Event("part-loaded"));
  } catch {
    place.textContent = "Loading failed; reload the page to try again.";
  }
}

function tabs() {
  for (const list of document.querySelectorAll("[role=tablist]")) {
    const all = [...list.querySelectorAll("[role=tab]")];
    const choose = (tab) => {
      for (const item of all) {
        const chosen = item === tab;
        item.setAttribute("aria-selected", String(chosen));
        item.tabIndex = chosen ? 0 : -1;
        document.getElementById(item.getAttribute("aria-controls")).hidden = !chosen;
      }
    };
    list.addEventListener("click", (event) => {
      const tab = event.target.closest("[role=tab]");
      if (tab) choose(tab);
    });
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.stopPropagation();
      const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
      choose(next);
      next.focus();
    });
  }
}

document.addEventListener("submit", (event) => {
  const question = event.target.dataset?.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// Filters apply at once: choices when they are made, texts when typing pauses.
let typingTimer = 0;
document.addEventListener("change", (event) => {
  if (event.target.matches(".filters select, .filters [type=checkbox]")) event.target.form.requestSubmit();
});
document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-instant] [type=search]")) return;
  clearTimeout(typingTimer);
  typingTimer = setTimeout(() => event.target.form.requestSubmit(), 500);
});

// One of several charts in a card.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-tab]");
  if (!button) return;
  const card = button.closest("[data-tabs]");
  for (const other of card.querySelectorAll("[data-tab]")) other.setAttribute("aria-pressed", String(other === button));
  for (const panel of card.querySelectorAll("[data-panel]")) panel.hidden = panel.dataset.panel !== button.dataset.tab;
  card.querySelector("h2").textContent = card.querySelector("h2").textContent.replace(/\w+$/, button.textContent.toLowerCase());
});

// A fold whose content is fetched when it is opened.
document.addEventListener(
  "toggle",
  async (event) => {
    const fold = event.target;
    if (!fold.open || !fold.dataset?.load) return;
    const address = fold.dataset.load;
    delete fold.dataset.load;
    const reply = await fetch(address, { headers: { Accept: "text/html" } });
    const part = new DOMParser().parseFromString(await reply.text(), "text/html");
    fold.querySelector("[data-place]").replaceChildren(...part.body.childNodes);
  },
  true,
);

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || typing(event)) return;
  const search = document.querySelector("[data-slash]");
  if (!search) return;
  event.preventDefault();
  search.focus();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
  say("Copied");
});

// Say in sight of everybody that the server does not answer; an empty text takes it back.
export function lost(message) {
  const place = document.getElementById("lost");
  place.textContent = message;
  place.hidden = !message;
}

// What was typed before the page's script had loaded counts as typed now.
export function catchUp(root) {
  for (const field of root.querySelectorAll("input, textarea, select")) {
    const chosen = field.options ? [...field.options].some((one) => one.selected !== one.defaultSelected) && field.selectedIndex > 0 : false;
    const edited = field.options ? chosen : field.checked !== field.defaultChecked || field.value !== field.defaultValue;
    if (edited) for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, { bubbles: true }));
  }
}

export function typing(event) {
  return event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea, [contenteditable], dialog");
}

localTimes();
tabs();
fetchPending();
