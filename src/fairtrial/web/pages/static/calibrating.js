// A judge being tried: look until it is over.
const place = document.getElementById("task");

async function look() {
  const state = await fetch(`/tasks/${place.dataset.task}/state`).then((reply) => reply.json()).catch(() => null);
  if (!state) return setTimeout(look, 1000); // the server is busy or away: it is asked again
  document.getElementById("done").textContent = state.done;
  document.getElementById("total").textContent = state.total || "…";
  Object.assign(document.getElementById("bar"), { max: state.total || 1, value: state.done });
  if (state.ended) window.location.reload();
  else setTimeout(look, 300);
}

look();
