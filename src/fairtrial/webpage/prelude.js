// Runs before anything of the page: what the seal would break without need is given a harmless stand-in,
// and what a policy cannot forbid (WebRTC, frames with documents of their own) is taken away.
(() => {
  "use strict";
  const window_ = window, document_ = document;
  document_.currentScript.remove();

  // WebRTC knows no policy: it goes, here and in every frame, and so do frames.
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "WebTransport"]) {
    try { delete window_[name]; } catch {}
    if (name in window_) Object.defineProperty(window_, name, { value: undefined, configurable: false });
  }
  const FRAMES = "iframe,frame,object,embed,fencedframe,portal";
  const matches = Element.prototype.matches, all = Element.prototype.querySelectorAll, remove = Element.prototype.remove;
  const guard = (root) =>
    new MutationObserver((changes) => {
      for (const change of changes)
        for (const node of change.addedNodes) {
          if (node.nodeType !== 1) continue;
          if (matches.call(node, FRAMES)) remove.call(node);
          else for (const inner of all.call(node, FRAMES)) remove.call(inner);
        }
    }).observe(root, { childList: true, subtree: true });
  guard(document_);
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options);
    guard(root);
    return root;
  };
  // Shadow roots that a parser makes cannot be watched.
  for (const prototype of [Element.prototype, ShadowRoot.prototype]) delete prototype.setHTMLUnsafe;
  delete Document.parseHTMLUnsafe;
  let tail = "";
  for (const name of ["write", "writeln"]) {
    const write = Document.prototype[name];
    Document.prototype[name] = function (...parts) {
      const text = parts.join("");
      const told = tail + text;
      tail = told.slice(-32);
      if (!/shadowrootmode/i.test(told)) write.call(this, text);
    };
  }

  // Storage belongs to an origin, and this page has none: it keeps what it stores until it goes.
  const memory = () => {
    const kept = new Map();
    const plain = {
      getItem: (key) => kept.get(String(key)) ?? null,
      setItem: (key, value) => void kept.set(String(key), String(value)),
      removeItem: (key) => void kept.delete(String(key)),
      clear: () => kept.clear(),
      key: (place) => [...kept.keys()][place] ?? null,
    };
    return new Proxy(plain, {
      get: (target, key) => (key === "length" ? kept.size : key in target ? target[key] : kept.get(String(key))),
      set: (target, key, value) => (kept.set(String(key), String(value)), true),
      deleteProperty: (target, key) => (kept.delete(String(key)), true),
      has: (target, key) => key in target || kept.has(String(key)),
      ownKeys: () => [...kept.keys()],
      getOwnPropertyDescriptor: (target, key) =>
        kept.has(String(key)) ? { value: kept.get(String(key)), enumerable: true, configurable: true } : undefined,
    });
  };
  for (const name of ["localStorage", "sessionStorage"]) {
    try { void window_[name]; }
    catch { Object.defineProperty(window_, name, { value: memory(), configurable: true }); }
  }
  try { void document_.cookie; }
  catch {
    let jar = "";
    Object.defineProperty(document_, "cookie", { get: () => jar, set: (text) => { jar = String(text).split(";")[0]; } });
  }

  // Dialogs would hold everything up: they are said instead.
  const info = console.info.bind(console);
  const say = (text) => (info(text), void document_.dispatchEvent(new Event("fairtrial:said")));
  window_.alert = (text) => say(`alert: ${text ?? ""}`);
  window_.confirm = (text) => (say(`confirm: ${text ?? ""}`), true);
  window_.prompt = (text, preset) => (say(`prompt: ${text ?? ""}`), preset ?? null);
  window_.print = () => say("print");

  // A sandboxed form never fires `submit`, but that is where pages check it: we fire it, and send nothing.
  const submit = (form, submitter) => {
    const lenient = form.noValidate || (submitter && submitter.formNoValidate);
    if (!lenient && !form.reportValidity()) return;
    const event = new SubmitEvent("submit", { bubbles: true, cancelable: true, submitter: submitter ?? null });
    form.dispatchEvent(event);
    const closing = form.method === "dialog" && !event.defaultPrevented && form.closest("dialog");
    if (closing && closing.open) closing.close(submitter ? submitter.value : "");
  };
  HTMLFormElement.prototype.requestSubmit = function (submitter) { submit(this, submitter); };
  HTMLFormElement.prototype.submit = function () {};
  window_.addEventListener("click", (event) => {
    if (event.defaultPrevented || !(event.target instanceof Element)) return;
    const button = event.target.closest("button, input");
    if (button && button.form && !button.disabled && (button.type === "submit" || button.type === "image")) {
      event.preventDefault();
      submit(button.form, button);
      return;
    }
    // A link that leads away would only show that nothing can be reached.
    const link = event.target.closest("a[href], area[href]");
    if (link && !(link.getAttribute("href") || "").trim().startsWith("#")) event.preventDefault();
  });
  window_.addEventListener("keydown", (event) => {
    const field = event.target;
    if (event.key !== "Enter" || event.defaultPrevented || event.isComposing) return;
    if (!(field instanceof HTMLInputElement) || !field.form) return;
    if (["button", "submit", "reset", "image", "checkbox", "radio", "file", "color", "range"].includes(field.type)) return;
    const first = [...field.form.elements].find((item) => item.type === "submit" || item.type === "image");
    if (first) { if (!first.disabled) first.click(); event.preventDefault(); }
    else if ([...field.form.elements].filter((item) => item instanceof HTMLInputElement).length === 1) {
      submit(field.form);
      event.preventDefault();
    }
  });
})();
