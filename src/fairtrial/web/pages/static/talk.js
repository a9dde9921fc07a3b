// Post and receive JSON; a failure is reported in `error`.
export async function post(address, body) {
  try {
    const json = !(body instanceof FormData);
    const headers = { Accept: "application/json", ...(json && { "Content-Type": "application/json" }) };
    const reply = await fetch(address, { method: "POST", headers, body: json ? JSON.stringify(body) : body });
    const result = await reply.json();
    return reply.ok || result.error ? result : { error: `the server returned status ${reply.status}` };
  } catch {
    return { error: "cannot reach the server: is it still running?" };
  }
}
