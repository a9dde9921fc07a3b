// A token behind # is never sent with an address and stands in no log; it is taken from there once.
const token = window.location.hash.slice(1);
if (token) {
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
  const form = document.querySelector("form");
  form.token.value = decodeURIComponent(token);
  form.submit();
}
