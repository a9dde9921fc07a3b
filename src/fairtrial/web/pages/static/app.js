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

// Load the parts of a page that take longer to compute than a page may take to load.
async function fetchPending(root = document) {
  for (const place of root.querySelectorAll("[data-pending]")) {
    const address = place.dataset.pending;
    delete place.dataset.pending;
    try {
      const reply = await fetch(address, { headers: { Accept: "text/html" } });
      if (!reply.ok) throw new Error(String(reply.status));
      const part = new DOMParser().parseFromString(place.tagName === "TR" ? `<table><tbody>${await reply.text()}</tbody></table>` : await reply.text(), "text/html");
      const fresh = part.querySelector("main") ? [...part.querySelector("main").querySelectorAll("section")].at(-1) : null;
      const nodes = place.tagName === "TR" ? [...part.querySelectorAll("tr")] : fresh ? [...fresh.childNodes] : [...part.body.childNodes];
      localTimes(part);
      place.replaceWith(...nodes);
    } catch {
      place.textContent = "Loading failed; reload the page to try again.";
    }
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

// Selecting a filter option submits the form at once.
document.addEventListener("change", (event) => {
  if (event.target.matches(".filters select")) event.target.form.requestSubmit();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
  say("Copied");
});

export function typing(event) {
  return event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea, [contenteditable], dialog");
}

localTimes();
tabs();
fetchPending();
