// A judge being tried: look until it is over.
const place = document.getElementById("work");

async function look() {
  const state = await (await fetch(`/works/${place.dataset.work}/state`)).json();
  document.getElementById("done").textContent = state.done;
  document.getElementById("total").textContent = state.total || "…";
  Object.assign(document.getElementById("bar"), { max: state.total || 1, value: state.done });
  if (state.ended) window.location.reload();
  else setTimeout(look, 300);
}

look();
