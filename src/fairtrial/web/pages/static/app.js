// What every page has: times in the reader's zone, parts that come later, tabs, and questions before something is lost.

const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function localTimes(root = document) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    time.title = time.textContent;
    time.textContent = zone.format(moment);
  }
}

export function say(words) {
  document.getElementById("say").textContent = words;
}

// Parts of a page that take longer to work out than a page may take.
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
      place.textContent = "This could not be loaded; reload the page to try again.";
    }
  }
}

function tabs() {
  for (const list of document.querySelectorAll("[role=tablist]")) {
    const all = [...list.querySelectorAll("[role=tab]")];
    const choose = (tab) => {
      for (const other of all) {
        const chosen = other === tab;
        other.setAttribute("aria-selected", String(chosen));
        other.tabIndex = chosen ? 0 : -1;
        document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
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
  const words = event.target.dataset?.confirm;
  if (words && !window.confirm(words)) event.preventDefault();
});

// A choice in a filter needs no second click.
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
