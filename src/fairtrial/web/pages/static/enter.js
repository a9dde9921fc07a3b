// A token after # is never sent with the address and appears in no log; it is read from there once.
const token = window.location.hash.slice(1);
if (token) {
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
  const form = document.querySelector("form");
  form.token.value = decodeURIComponent(token);
  form.submit();
}
