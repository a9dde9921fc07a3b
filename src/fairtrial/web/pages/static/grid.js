// The grid: keyboard, and a panel with the whole trial beside it.
import { localTimes, say, typing } from "./app.js";

let grid = null;
let panel = null;
const MOVES = { j: [1, 0], ArrowDown: [1, 0], k: [-1, 0], ArrowUp: [-1, 0], l: [0, 1], ArrowRight: [0, 1], h: [0, -1], ArrowLeft: [0, -1] };
let open = null; // the cell whose trial the panel shows

function links(row) {
  return [...row.querySelectorAll("a")];
}

function moved(from, [down, across]) {
  const rows = [...grid.tBodies[0].rows];
  const row = from?.closest?.("tr");
  const y = row && grid.contains(row) ? rows.indexOf(row) : -1;
  const x = y >= 0 ? links(row).indexOf(from) : 1;
  const next = rows[Math.max(0, Math.min(rows.length - 1, y < 0 ? 0 : y + down))];
  const cells = links(next);
  return cells[Math.max(0, Math.min(cells.length - 1, y < 0 ? x : x + across))];
}

async function show(cell) {
  open?.removeAttribute("aria-current");
  open = cell;
  open.setAttribute("aria-current", "true");
  const address = new URL(cell.href);
  address.searchParams.set("panel", "1");
  const reply = await fetch(address, { headers: { Accept: "text/html" } });
  if (open !== cell) return;
  const part = new DOMParser().parseFromString(await reply.text(), "text/html");
  if (open !== cell) return;
  localTimes(part);
  panel.replaceChildren(...part.body.childNodes); // our own template, texts escaped
  panel.hidden = false;
  panel.scrollTop = 0;
  say(panel.querySelector("h2")?.textContent ?? "");
}

function close() {
  panel.hidden = true;
  panel.replaceChildren();
  open?.removeAttribute("aria-current");
  open?.focus();
  open = null;
}

function openHere(event) {
  const cell = event.target.closest("td.cell a");
  if (!cell || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  show(cell);
}

function press(event) {
  const button = event.target.closest("[data-panel-do]");
  if (!button) return;
  if (button.dataset.panelDo === "close") close();
  else step({ next: [1, 0], before: [-1, 0] }[button.dataset.panelDo]);
}

function step(move) {
  const next = moved(open, move);
  if (!next?.closest("td.cell")) return;
  next.focus();
  show(next);
}

document.addEventListener("keydown", (event) => {
  if (!grid || typing(event)) return;
  if (event.key === "Escape" && open) return close();
  const move = MOVES[event.key];
  const inside = grid.contains(document.activeElement);
  const arrow = event.key.startsWith("Arrow");
  if (!move || (arrow && !inside) || event.defaultPrevented) return;
  event.preventDefault();
  if (open) return step(move);
  moved(inside ? document.activeElement : null, move)?.focus();
});

// The grid may come after the page, when many cases have to be put in order first.
function start() {
  const found = document.getElementById("grid");
  if (!found || found === grid) return;
  [grid, panel] = [found, document.getElementById("panel")];
  grid.addEventListener("click", openHere);
  panel.addEventListener("click", press);
  // The page reloads when a run ends: restore the focus in the grid.
  const focused = sessionStorage.getItem("focus");
  sessionStorage.removeItem("focus");
  if (focused) grid.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
}

start();
document.addEventListener("part-loaded", start);
