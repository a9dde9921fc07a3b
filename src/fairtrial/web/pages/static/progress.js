// What is known about a run while it runs: counters, bars and means, updated as they change, once per frame.
import { lost, say } from "./app.js";

const byId = (id) => document.getElementById(id);

function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const minutes = Math.floor(seconds / 60);
  return minutes ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.round(seconds)} s`;
}

// A line that has its room from the beginning, so that nothing moves when there is something to say.
function tell(place, words) {
  place.textContent = words.join(" · ");
  place.title = place.textContent;
}

let announcedAt = 0;

export function showProgress(state) {
  if (state.total !== undefined) {
    byId("bar").max = state.total;
    byId("bar").value = state.done;
    byId("done").textContent = state.done;
    byId("total").textContent = state.total;
    byId("rate").textContent = state.rate === null ? "–" : state.rate.toFixed(1);
    byId("left").textContent = span(state.left);
    byId("cost").textContent = state.cost;
    byId("bad").textContent = state.bad;
    byId("part").textContent = state.part ?? "";
    tell(byId("why"), state.waits);
    tell(byId("failures"), state.failures);
    state.arms.forEach((arm, index) => {
      const row = byId("live").querySelector(`tr[data-arm="${index}"]`);
      row.querySelector("progress").value = arm.done;
      row.querySelector(".count").textContent = arm.done;
      row.querySelector(".left").textContent = arm.left;
      row.querySelector(".mean").textContent = arm.mean === null ? "–" : arm.mean.toFixed(1);
      row.querySelector(".bad").textContent = arm.bad || "";
    });
    if (Date.now() - announcedAt > 15000) {
      announcedAt = Date.now();
      say(`${state.part ? `${state.part}: ` : ""}${state.done} of ${state.total} trials done`);
    }
  }
  document.title = `${state.part ? `${state.part}, ` : ""}${state.done ?? ""}/${state.total ?? ""} · fairtrial`;
}

function promiseNothing() {
  for (const id of ["left", "rate"]) if (byId(id)) byId(id).textContent = "–";
}

// Hear the events of an address as long as the page is looked at: a browser allows only six connections per server.
// `receive` is given each state; where it returns true, nothing more is expected.
export function follow(address, receive) {
  let events;
  const over = () => {
    events?.close();
    document.removeEventListener("visibilitychange", listen);
  };
  function listen() {
    events?.close();
    if (document.hidden) return;
    events = new EventSource(address);
    events.onmessage = (event) => {
      if (receive(JSON.parse(event.data))) over();
    };
    events.onopen = () => lost("");
    events.onerror = () => {
      lost("The server does not answer. The run may have stopped; what was answered is kept. Trying again …");
      promiseNothing();
      requestAnimationFrame(promiseNothing); // a state that came before may be shown only now
      if (events.readyState === EventSource.CLOSED) setTimeout(again, 2000); // the browser has given up
    };
  }
  // A server that was started anew may not know this browser any more: then the page asks for the token.
  async function again() {
    const reply = await fetch(address, { headers: { Accept: "text/html" }, redirect: "manual" }).catch(() => null);
    reply?.body?.cancel();
    if (reply && !reply.ok) window.location.reload();
    else listen();
  }
  document.addEventListener("visibilitychange", listen);
  listen();
}
