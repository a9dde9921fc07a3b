// Something that is being prepared: look until it has begun or failed.
const place = document.getElementById("work");

async function look() {
  const reply = await fetch(`/works/${place.dataset.work}/state`);
  const state = await reply.json();
  if (state.run) window.location.replace(`/runs/${state.run}`);
  else if (state.ended) window.location.reload();
  else setTimeout(look, 500);
}

look();
