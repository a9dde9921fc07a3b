// Keyboard navigation in the grid.
import { typing } from "./app.js";

const grid = document.getElementById("grid");
const MOVES = { j: [1, 0], ArrowDown: [1, 0], k: [-1, 0], ArrowUp: [-1, 0], l: [0, 1], ArrowRight: [0, 1], h: [0, -1], ArrowLeft: [0, -1] };

// The page reloads when a run ends: restore the focus in the grid.
const focused = sessionStorage.getItem("focus");
sessionStorage.removeItem("focus");
if (focused) grid?.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();

function links(row) {
  return [...row.querySelectorAll("a")];
}

document.addEventListener("keydown", (event) => {
  const move = MOVES[event.key];
  const inside = grid?.contains(document.activeElement);
  const arrow = event.key.startsWith("Arrow");
  if (!grid || !move || typing(event) || (arrow && !inside)) return;
  const rows = [...grid.tBodies[0].rows];
  const row = document.activeElement.closest?.("tr");
  const y = inside ? rows.indexOf(row) : -1;
  const x = inside && y >= 0 ? links(row).indexOf(document.activeElement) : 1;
  const next = rows[Math.max(0, Math.min(rows.length - 1, y < 0 ? 0 : y + move[0]))];
  const across = links(next);
  event.preventDefault();
  across[Math.max(0, Math.min(across.length - 1, y < 0 ? x : x + move[1]))]?.focus();
});
