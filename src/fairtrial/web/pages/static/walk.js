// Keyboard shortcuts: follow the link that names the pressed key.
import { typing } from "./app.js";

const ALSO = { ArrowLeft: "h", ArrowRight: "l", ArrowDown: "", ArrowUp: "" };

document.addEventListener("keydown", (event) => {
  if (typing(event) || event.target.closest?.("[role=tab]")) return;
  const key = ALSO[event.key] ?? event.key;
  const link = key && document.querySelector(`a[data-key="${CSS.escape(key)}"]`);
  if (link) {
    event.preventDefault();
    link.click();
  }
});
