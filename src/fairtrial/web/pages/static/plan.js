// Planning: moving a slider or choosing other arms asks the server again and replaces the answer.
import { catchUp } from "./app.js";

const section = document.getElementById("planned");
let timer = 0;
let latest = 0;

async function renew(form) {
  const request = ++latest;
  const address = new URL(form.action);
  address.search = new URLSearchParams(new FormData(form)).toString();
  history.replaceState(null, "", address);
  address.searchParams.set("wait", "1");
  const reply = await fetch(address, { headers: { Accept: "text/html" } });
  if (!reply.ok || request !== latest) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const focused = document.activeElement?.name;
  section.replaceChildren(...page.getElementById("planned").childNodes); // our own template, texts escaped
  if (focused) section.querySelector(`[name="${focused}"]`)?.focus();
}

section?.addEventListener("input", (event) => {
  const form = event.target.closest("form");
  if (!form) return;
  const shown = event.target.parentElement.querySelector("output");
  if (shown) shown.textContent = event.target.value;
  clearTimeout(timer);
  timer = setTimeout(() => renew(form), 250);
});

if (section) catchUp(section);
