// Something that is being prepared: look until it has begun or failed.
const place = document.getElementById("task");

async function look() {
  const state = await fetch(`/tasks/${place.dataset.task}/state`).then((reply) => reply.json()).catch(() => null);
  if (!state) return setTimeout(look, 1000); // the server is busy or away: it is asked again
  if (state.run) window.location.replace(`/runs/${state.run}`);
  else if (state.ended) window.location.reload();
  else setTimeout(look, 500);
}

look();
