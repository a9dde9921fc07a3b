// Runs before the page's own code: features that the seal would break needlessly get harmless substitutes,
// and what a policy cannot forbid (WebRTC, frames with their own documents) is removed.
(() => {
  "use strict";
  const window_ = window, document_ = document;
  document_.currentScript.remove();

  // Keep references to everything used later: the page can change every prototype.
  const apply = Reflect.apply, define = Object.defineProperty, describe = Object.getOwnPropertyDescriptor;
  const getter = (prototype, name) => describe(prototype, name).get;
  const lower = String.prototype.toLowerCase, find = String.prototype.indexOf, text_ = String;
  const mentions = (text, word) => apply(find, apply(lower, text_(text), []), [word]) >= 0;

  // No policy covers WebRTC: remove it, and frames too, which would have their own.
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "WebTransport"]) {
    try { delete window_[name]; } catch {}
    if (name in window_) define(window_, name, { value: undefined, configurable: false });
  }
  const FRAMES = "iframe,frame,object,embed,fencedframe,portal";
  const matches = Element.prototype.matches, all = Element.prototype.querySelectorAll, remove = Element.prototype.remove;
  const kindOf = getter(Node.prototype, "nodeType"), added = getter(MutationRecord.prototype, "addedNodes");
  const lengthOf = getter(NodeList.prototype, "length"), Observer = MutationObserver, observe = Observer.prototype.observe;
  const guard = (root) => {
    const observer = new Observer((changes) => {
      for (let place = 0; place < changes.length; place += 1) {
        const nodes = apply(added, changes[place], []);
        for (let number = apply(lengthOf, nodes, []) - 1; number >= 0; number -= 1) {
          const node = nodes[number];
          if (apply(kindOf, node, []) !== 1) continue;
          if (apply(matches, node, [FRAMES])) { apply(remove, node, []); continue; }
          const inner = apply(all, node, [FRAMES]);
          for (let deep = apply(lengthOf, inner, []) - 1; deep >= 0; deep -= 1) apply(remove, inner[deep], []);
        }
      }
    });
    apply(observe, observer, [root, { childList: true, subtree: true }]);
  };
  guard(document_);
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const { mode, delegatesFocus, slotAssignment } = options;
    // A cloned shadow root would never pass through here.
    const root = apply(attach, this, [{ mode, delegatesFocus, slotAssignment, clonable: false, serializable: false }]);
    guard(root);
    return root;
  };
  // No policy stops a frame's srcdoc document: it can never be set, whichever way it is written.
  const framing = (text) => mentions(text, "srcdoc") || mentions(text, "<!entity"); // an entity spells it as it likes
  const inert = (prototype, name, place) => {
    const own = describe(prototype, name);
    if (!own) return;
    if (own.set) {
      define(prototype, name, { ...own, configurable: false, set(given) {
        const text = given === null ? "" : text_(given); // read once: what is looked at is what is used
        if (!framing(text)) apply(own.set, this, [text]);
      } });
    } else if (typeof own.value === "function") {
      const value = function (...parts) {
        if (place < parts.length) parts[place] = text_(parts[place]);
        return framing(parts[place]) ? undefined : apply(own.value, this, parts);
      };
      define(prototype, name, { ...own, value, configurable: false, writable: false });
    }
  };
  for (const [prototype, name, place] of [
    [Element.prototype, "innerHTML", 0], [Element.prototype, "outerHTML", 0], [ShadowRoot.prototype, "innerHTML", 0],
    [Element.prototype, "insertAdjacentHTML", 1], [Range.prototype, "createContextualFragment", 0],
    [DOMParser.prototype, "parseFromString", 0], [Element.prototype, "setAttribute", 0], [Element.prototype, "setAttributeNS", 1],
    [Element.prototype, "toggleAttribute", 0], [Document.prototype, "createAttribute", 0], [Document.prototype, "createAttributeNS", 1],
    [Document.prototype, "execCommand", 2],
  ]) inert(prototype, name, place);
  define(HTMLIFrameElement.prototype, "srcdoc", { get: () => "", set: () => {}, configurable: false });
  delete window_.XSLTProcessor;
  // Shadow roots created by a parser cannot be watched: remove everything that creates them.
  for (const prototype of [Element.prototype, ShadowRoot.prototype, Document.prototype, Document])
    for (const name of Object.getOwnPropertyNames(prototype))
      if (/HTMLUnsafe$|^parseHTML$|^setHTML$|^(stream|append|prepend|before|after|replace).*HTML/.test(name)) delete prototype[name];
  // document.write inserts at the position of the script, parsed separately.
  const script = getter(Document.prototype, "currentScript"), insert = Element.prototype.insertAdjacentHTML;
  const bodyOf = getter(Document.prototype, "body");
  let last = null, end = null;
  const write = function (...parts) {
    let told = "";
    for (let place = 0; place < parts.length; place += 1) told += text_(parts[place]);
    const here = apply(script, document_, []);
    if (here && here === last && end) return void apply(insert, end, ["beforebegin", told]);
    if (here) {
      last = here;
      end = document_.createElement("fairtrial-end");
      here.after(end);
      return void apply(insert, end, ["beforebegin", told]);
    }
    const body = apply(bodyOf, document_, []);
    if (body) { body.replaceChildren(); apply(insert, body, ["beforeend", told]); }
  };
  define(Document.prototype, "write", { value: write, configurable: false, writable: false });
  define(Document.prototype, "writeln", { value: write, configurable: false, writable: false });
  for (const name of ["open", "close"])
    define(Document.prototype, name, { value() { return document_; }, configurable: false, writable: false });

  // Storage belongs to an origin, and this page has none: keep stored values in memory until the page is closed.
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

  // Remove the other features that need an origin, so that pages that test for them can do without.
  for (const [holder, name] of [[Navigator.prototype, "serviceWorker"], [window_, "indexedDB"], [window_, "caches"]])
    try { delete holder[name]; } catch {}
  const fine = () => Promise.resolve();
  if (navigator.clipboard) {
    let copied = "";
    const clipboard = { writeText: (text) => (copied = text_(text), fine()), readText: () => Promise.resolve(copied), write: fine };
    define(navigator, "clipboard", { value: clipboard, configurable: true });
  }
  Element.prototype.requestFullscreen = fine;
  Element.prototype.requestPointerLock = fine;

  // Dialogs would block everything: log them instead.
  const info = console.info.bind(console), tell = EventTarget.prototype.dispatchEvent, Said = Event;
  const say = (text) => (info(text), void apply(tell, document_, [new Said("fairtrial:said")]));
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
  // In the capture phase, so that the page cannot stop the event; decided after the page's handlers have run.
  const later = setTimeout;
  window_.addEventListener("click", (event) => {
    if (!(event.target instanceof Element)) return;
    const button = event.target.closest("button, input");
    if (button && button.form && !button.disabled && (button.type === "submit" || button.type === "image"))
      later(() => { if (!event.defaultPrevented && button.form) submit(button.form, button); }, 0);
    // A link to another site would only show that nothing can be reached.
    const link = event.target.closest("a[href], area[href]");
    if (link && !/^\s*(#(?![a-z][a-z0-9+.-]*:|[\/\\]{2})|javascript:)/i.test(link.getAttribute("href"))) event.preventDefault();
  }, true);
  // Enter clicks a form's submit button; a form without one would be submitted, which fires no event here.
  window_.addEventListener("keypress", (event) => {
    const field = event.target;
    if (event.key !== "Enter" || !(field instanceof HTMLInputElement) || !field.form) return;
    const parts = [...field.form.elements];
    if (parts.some((part) => part.type === "submit" || part.type === "image")) return;
    if (parts.filter((part) => part instanceof HTMLInputElement && !["hidden", "checkbox", "radio", "button", "reset"].includes(part.type)).length !== 1) return;
    later(() => { if (!event.defaultPrevented) submit(field.form); }, 0);
  }, true);
})();
