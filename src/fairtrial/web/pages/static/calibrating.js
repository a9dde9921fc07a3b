// Poll a task that counts what it has done until it has ended.
import { say } from "./app.js";

const place = document.getElementById("task");
let said = 0;

function span(seconds) {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

async function poll() {
  const state = await fetch(`/tasks/${place.dataset.task}/state`).then((reply) => reply.json()).catch(() => null);
  if (!state) return setTimeout(poll, 1000); // the server is busy or unreachable: try again
  document.getElementById("done").textContent = state.done;
  document.getElementById("total").textContent = state.total || "…";
  document.getElementById("elapsed").textContent = span(state.seconds ?? 0);
  Object.assign(document.getElementById("bar"), { max: state.total || 1, value: state.done });
  const quarter = Math.floor((4 * state.done) / (state.total || 1));
  if (quarter > said) say(`${state.done} of ${state.total} ${place.dataset.things}`); // not every one: nobody wants to hear them all
  said = Math.max(said, quarter);
  if (state.ended) window.location.reload();
  else setTimeout(poll, 300);
}

poll();
