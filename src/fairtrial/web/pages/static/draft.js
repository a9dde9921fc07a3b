// A suite drafted by a model: shown for review and correction before a file is written.
import "./models.js";
import { post } from "./talk.js";

const form = document.getElementById("draft-suite");
const drafted = document.getElementById("drafted-suite");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const problem = form.querySelector(".problem");
  const button = form.querySelector("button");
  problem.hidden = true;
  button.disabled = true;
  button.textContent = "Drafting …";
  const fields = Object.fromEntries(new FormData(form));
  const reply = await post("/suites/draft", { kind: "suite", ...fields });
  button.disabled = false;
  button.textContent = "Draft";
  if (reply.error) {
    problem.textContent = reply.error;
    problem.hidden = false;
    return;
  }
  drafted.text.value = reply.text;
  drafted.file.value = `${reply.draft.name.toLowerCase().replace(/[^\w]+/g, "-").replace(/^-|-$/g, "") || "draft"}.yaml`;
  drafted.hidden = false;
  drafted.text.focus();
});
