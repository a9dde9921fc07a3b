// Poll a task until its run has begun or it has failed.
const place = document.getElementById("task");

async function poll() {
  const state = await fetch(`/tasks/${place.dataset.task}/state`).then((reply) => reply.json()).catch(() => null);
  if (!state) return setTimeout(poll, 1000); // the server is busy or unreachable: try again
  if (state.run) window.location.replace(state.address);
  else if (state.ended) window.location.reload();
  else setTimeout(poll, 500);
}

poll();
