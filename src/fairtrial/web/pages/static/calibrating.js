// Poll a calibration until it has ended.
const place = document.getElementById("task");

async function poll() {
  const state = await fetch(`/tasks/${place.dataset.task}/state`).then((reply) => reply.json()).catch(() => null);
  if (!state) return setTimeout(poll, 1000); // the server is busy or unreachable: try again
  document.getElementById("done").textContent = state.done;
  document.getElementById("total").textContent = state.total || "…";
  Object.assign(document.getElementById("bar"), { max: state.total || 1, value: state.done });
  if (state.ended) window.location.reload();
  else setTimeout(poll, 300);
}

poll();
