// Score by keyboard, except while typing in a field.
import { typing } from "./app.js";

document.addEventListener("keydown", (event) => {
  if (typing(event)) return;
  document.querySelector(`main form [data-key="${CSS.escape(event.key)}"]`)?.click();
});
