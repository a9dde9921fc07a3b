// Vote with the keys 1, 2, 3, 4 and 0, except while typing in a field.
import { typing } from "./app.js";

document.addEventListener("keydown", (event) => {
  if (typing(event)) return;
  document.querySelector(`#ballot [data-key="${CSS.escape(event.key)}"]`)?.click();
});
