// JSON there and back; what went wrong is in `error`.
export async function post(address, body) {
  try {
    const json = !(body instanceof FormData);
    const headers = { Accept: "application/json", ...(json && { "Content-Type": "application/json" }) };
    const reply = await fetch(address, { method: "POST", headers, body: json ? JSON.stringify(body) : body });
    const found = await reply.json();
    return reply.ok || found.error ? found : { error: `the server said ${reply.status}` };
  } catch {
    return { error: "the server cannot be reached: is it still running?" };
  }
}
