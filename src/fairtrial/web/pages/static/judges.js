// Samples of one's own: a file, or the built-in ones, are put into the field, where they can be edited.
const field = document.getElementById("samples");
const file = document.getElementById("samples-file");
const start = document.getElementById("start-samples");

file.addEventListener("change", async () => {
  if (!file.files.length) return;
  field.value = await file.files[0].text();
  file.value = ""; // what is sent is what can be seen
  field.focus();
});

start.hidden = false;
start.addEventListener("click", () => {
  field.value = document.getElementById("built-in").value;
  field.focus();
});
