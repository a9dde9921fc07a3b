// Model names suggested while typing, with price and context where known.
let latest = 0;

export function describe(model) {
  const facts = [];
  if (model.input_usd !== null && model.output_usd !== null && model.input_usd + model.output_usd > 0) facts.push(`$${model.input_usd} in, $${model.output_usd} out per million tokens`);
  if (model.context) facts.push(`${Math.round(model.context / 1000)}k context`);
  if (!model.usable) facts.push(`${model.variable} is not set`);
  return [model.title, ...facts].join(" · ");
}

export async function search(words) {
  const reply = await fetch(`/models?q=${encodeURIComponent(words)}`);
  return (await reply.json()).models;
}

document.addEventListener("input", async (event) => {
  if (!event.target.matches("[data-models]")) return;
  const request = ++latest;
  const models = await search(event.target.value);
  if (request !== latest) return;
  const list = document.getElementById("models");
  list.replaceChildren(
    ...models.map((model) => {
      const option = document.createElement("option");
      option.value = model.name;
      option.label = describe(model);
      return option;
    }),
  );
});
