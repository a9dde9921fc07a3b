// Measurements of a page that need no judgement. They run in an isolated world: the page can neither see these
// functions nor change what they use. `listen` runs before the page, everything else once it has settled.
// Nothing here waits: the caller controls the time.
globalThis.fairtrial ??= (() => {
  "use strict";
  const kept = { blocked: [], changes: 0, noticed: 0, controls: [], before: null, dragged: null };

  function listen() {
    document.addEventListener("securitypolicyviolation", (event) => {
      if (kept.blocked.length < 50) kept.blocked.push(event.blockedURI || event.effectiveDirective);
    }, true);
    new MutationObserver((records) => { kept.changes += records.length; })
      .observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    // An invalid field or a suppressed dialog: something happened that leaves no trace in the document.
    for (const name of ["invalid", "fairtrial:said"]) document.addEventListener(name, () => { kept.noticed += 1; }, true);
    document.addEventListener("mousedown", () => { kept.dragged = null; }, true);
    document.addEventListener("dragstart", (event) => { kept.dragged = event; }, true);
  }

  const shownName = (element) => {
    // The page's own text goes into facts that judges read: keep it on one line, short and in quotes.
    const plain = (text) => text.trim().replace(/[\s“”]+/g, " ").slice(0, 30);
    const id = /^[\w-]{1,40}$/.test(element.id) ? `#${element.id}` : "";
    const first = typeof element.className === "string" ? element.className.trim().split(/\s+/)[0] : "";
    const kind = /^[\w-]{1,40}$/.test(first) ? `.${first}` : "";
    const text = plain(element.textContent || "");
    return `${element.tagName.toLowerCase().slice(0, 30)}${id || kind}${text ? ` “${text}”` : ""}`;
  };

  function visible(element) {
    if (!element.checkVisibility || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  }

  function everything() {
    // Every element, including those in open shadow roots.
    const found = [];
    const walk = (root) => {
      for (const element of root.querySelectorAll("*")) {
        if (found.length >= 5000) return;
        found.push(element);
        if (element.shadowRoot) walk(element.shadowRoot);
      }
    };
    if (document.body) walk(document.body);
    return found;
  }

  // -- blank ------------------------------------------------------------------------------------
  function painted(canvas) {
    try {
      const empty = new OffscreenCanvas(canvas.width || 1, canvas.height || 1);
      const plain = document.createElement("canvas");
      plain.width = empty.width; plain.height = empty.height;
      return canvas.toDataURL() !== plain.toDataURL();
    } catch { return true; }
  }

  function blank() {
    if (!document.body) return true;
    if ((document.body.innerText || "").trim()) return false;
    return !everything().some((element) => {
      if (!visible(element)) return false;
      const tag = element.tagName.toLowerCase();
      if (tag === "canvas") return painted(element);
      if (["img", "svg", "video", "input", "textarea", "select", "button", "progress", "meter"].includes(tag)) return true;
      const style = getComputedStyle(element);
      return style.backgroundImage !== "none" || !clear(style.backgroundColor);
    });
  }

  // -- colours ----------------------------------------------------------------------------------
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const colours = new Map();
  function colour(text) {
    if (!colours.has(text)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = "#000";
      pen.fillStyle = text;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      colours.set(text, a ? [r, g, b, a / 255] : [0, 0, 0, 0]);
    }
    return colours.get(text);
  }
  const clear = (text) => colour(text)[3] === 0;
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  function light([r, g, b]) {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  }

  function layersOf(elements) {
    // Elements that may lie behind or in front of a text without containing it, so that its colours are unknown.
    const found = [];
    for (const element of elements) {
      if (found.length >= 300) break;
      const style = getComputedStyle(element);
      const replaced = /^(canvas|img|video|picture|svg|iframe)$/i.test(element.tagName);
      const out = ["absolute", "fixed", "sticky"].includes(style.position);
      const coloured = style.backgroundImage !== "none" || !clear(style.backgroundColor) || style.boxShadow !== "none";
      const painted = ["::before", "::after"].some((name) => {
        const pseudo = getComputedStyle(element, name);
        return pseudo.content !== "none" && pseudo.content !== "normal" && (pseudo.backgroundImage !== "none" || !clear(pseudo.backgroundColor));
      });
      if (!painted && !replaced && !(out && (coloured || element.querySelector("canvas, img, video")))) continue;
      if (visible(element) || painted) found.push({ element, painted, box: element.getBoundingClientRect() });
    }
    return found;
  }

  function covered(element, layers) {
    // The colours of elements around or inside the text are known; those of pseudo-elements never are.
    const box = element.getBoundingClientRect();
    return layers.some(({ element: layer, painted, box: other }) => {
      if (!painted && (layer.contains(element) || element.contains(layer))) return false;
      return other.left < box.right && box.left < other.right && other.top < box.bottom && box.top < other.bottom;
    });
  }

  const ground = () => (getComputedStyle(document.documentElement).colorScheme.trim() === "dark" ? [18, 18, 18, 1] : [255, 255, 255, 1]);

  function behind(element) {
    // The background colours of a text, from the nearest to the first opaque one; null if an image is behind it.
    const layers = [];
    for (let place = element; place; place = place.parentElement) {
      const style = getComputedStyle(place);
      if (style.backgroundImage !== "none") return null;
      if (Number(style.opacity) < 1 || style.mixBlendMode !== "normal") return null;
      const found = colour(style.backgroundColor);
      if (found[3] > 0) layers.push(found);
      if (found[3] === 1) break;
      if (["absolute", "fixed"].includes(style.position) && found[3] === 0 && place !== element) return null;
    }
    return layers.reverse().reduce((below, top) => over(top, below), ground());
  }

  function contrast() {
    const low = [], elements = everything(), layers = layersOf(elements);
    let texts = 0;
    for (const element of elements) {
      const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
      if (!own || !visible(element) || texts >= 500) continue;
      if (element.closest("svg, [aria-hidden=true], [disabled], [aria-disabled=true]") || covered(element, layers)) continue;
      const background = behind(element);
      if (!background) continue;
      texts += 1;
      const style = getComputedStyle(element);
      const ink = over(colour(style.webkitTextFillColor || style.color), background);
      const [a, b] = [light(ink), light(background)].sort((x, y) => y - x);
      const ratio = (a + 0.05) / (b + 0.05);
      const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
      const needed = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
      if (ratio < needed - 0.005) low.push(`${shownName(element)} ${ratio.toFixed(1)}:1`);
    }
    return { texts, low: low.length, examples: low.slice(0, 5) };
  }

  // -- labels -----------------------------------------------------------------------------------
  const named = (element) => {
    const ids = (element.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean);
    if (ids.some((id) => (document.getElementById(id)?.textContent || "").trim())) return true;
    if ((element.getAttribute("aria-label") || "").trim() || (element.getAttribute("title") || "").trim()) return true;
    return [...(element.labels || [])].some((label) => (label.textContent || "").trim());
  };
  const spoken = (element) =>
    named(element) || (element.textContent || "").trim() || (element.value && element.tagName === "INPUT")
    || [...element.querySelectorAll("img[alt], svg title, [aria-label]")].some((inner) =>
      (inner.getAttribute("alt") || inner.getAttribute("aria-label") || inner.textContent || "").trim());

  function labels() {
    const missing = [];
    const shown = (selector) => everything().filter((element) => element.matches(selector) && visible(element));
    for (const field of shown("input, select, textarea")) {
      if (["hidden", "submit", "button", "reset", "image"].includes(field.type)) continue;
      if (!named(field)) missing.push(`no label: ${shownName(field)}`);
    }
    for (const control of shown("button, a[href], [role=button], input[type=submit], input[type=button]"))
      if (!spoken(control)) missing.push(`no name: ${shownName(control)}`);
    for (const image of shown("img")) if (!image.hasAttribute("alt")) missing.push(`no alt text: ${shownName(image)}`);
    return { missing: missing.length, examples: missing.slice(0, 5) };
  }

  // -- widths -----------------------------------------------------------------------------------
  function overflow() {
    const width = document.documentElement.clientWidth;
    const beyond = Math.max(document.documentElement.scrollWidth, document.body ? document.body.scrollWidth : 0) - width;
    let culprit = "";
    let far = width + 1;
    if (beyond > 1)
      for (const element of everything()) {
        const right = element.getBoundingClientRect().right + scrollX;
        if (visible(element) && right > far) { far = right; culprit = shownName(element); }
      }
    return { width, beyond: Math.max(0, Math.round(beyond)), culprit };
  }

  function smallest() {
    // The size that nine tenths of the text have at least: small footnotes are fine.
    const sizes = [];
    for (const element of everything()) {
      const own = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.textContent.trim()).join("");
      if (own && visible(element) && !element.closest("svg")) sizes.push([parseFloat(getComputedStyle(element).fontSize), own.length]);
    }
    if (!sizes.length) return null;
    sizes.sort((a, b) => a[0] - b[0]);
    let left = 0.1 * sizes.reduce((sum, [, length]) => sum + length, 0);
    const [size] = sizes.find(([, length]) => (left -= length) < 0) || sizes[0];
    // A page without a viewport is scaled down.
    return (size * (screen.width || innerWidth)) / Math.max(innerWidth, 1);
  }

  function reach() {
    // Many pages show content only when it comes into view: return the scroll step and the height to scroll to.
    return [innerHeight, Math.min(document.documentElement.scrollHeight, 5000)];
  }

  function hide() {
    // Hide everything but the background: if that changes nothing, the page was blank.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`body *, body::before, body::after { visibility: hidden !important }
      body { color: transparent !important; -webkit-text-fill-color: transparent !important; text-shadow: none !important }`);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }

  function measure() {
    return {
      blank: blank(),
      title: document.title.trim().slice(0, 200),
      language: document.documentElement.lang,
      viewport: Boolean(document.querySelector("meta[name=viewport i]")),
      nodes: document.querySelectorAll("*").length,
      height: Math.max(document.documentElement.scrollHeight, document.body ? document.body.scrollHeight : 0),
      text: (document.body?.innerText || "").trim().replace(/\s+/g, " ").slice(0, 500),
      overflow: overflow(),
      smallest: smallest(),
      contrast: contrast(),
      labels: labels(),
      blocked: [...new Set(kept.blocked)],
    };
  }

  // -- controls ---------------------------------------------------------------------------------
  const CONTROLS = "button, [role=button], [role=tab], [onclick], summary, a[href^='#'], input[type=submit], input[type=button], input[type=reset]";
  function looks() {
    const fields = [...document.querySelectorAll("input, select, textarea")].map((field) => `${field.value}/${field.checked}`);
    const drawn = [...document.querySelectorAll("canvas")].slice(0, 4).map((canvas) => {
      try { return canvas.toDataURL(); } catch { return ""; }
    });
    const open = [...document.querySelectorAll("dialog, details")].map((element) => element.open);
    const popped = document.querySelectorAll(":popover-open").length;
    const focus = document.activeElement ? shownName(document.activeElement) : "";
    return JSON.stringify([fields, drawn, open, popped, location.hash, scrollX, scrollY, focus, document.title]);
  }

  // A link to nowhere is a placeholder, and one to an existing anchor needs no test.
  function shouldPress(element) {
    if (!visible(element) || element.disabled || element.getAttribute("aria-disabled") === "true") return false;
    const href = element.tagName === "A" ? element.getAttribute("href") || "" : null;
    if (href === null || element.hasAttribute("onclick")) return true;
    return href.length > 1 && !document.getElementById(decodeURIComponent(href.slice(1)));
  }

  function controls(most) {
    // Collect the controls to press and return how many there are.
    kept.controls = everything().filter((element) => element.matches(CONTROLS) && shouldPress(element)).slice(0, most);
    watch();
    return kept.controls.length;
  }

  function watch() {
    kept.changes = 0; kept.noticed = 0; kept.before = looks();
  }

  // Whether anything has happened since `watch`; null in another document.
  const changed = () => (kept.before === null ? null : kept.changes > 0 || kept.noticed > 0 || looks() !== kept.before);

  function press(number) {
    // Press a control and return its name, or null if it is gone.
    const element = kept.controls[number];
    if (!element || !element.isConnected || !visible(element)) return null;
    const name = shownName(element);
    watch();
    if (typeof element.click === "function") element.click();
    else element.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, view: window }));
    return name;
  }

  function fill() {
    // Fill empty fields: some controls only work on typed input.
    const empty = [...document.querySelectorAll("input, textarea")]
      .filter((field) => visible(field) && !field.value && ["text", "search", "email", "number", "textarea"].includes(field.type));
    for (const field of empty) {
      field.value = field.type === "number" ? "1" : field.type === "email" ? "somebody@example.org" : "something";
      for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
    }
    return empty.length > 0;
  }

  // Whether a native drag with the mouse is in progress.
  const dragging = () => kept.dragged !== null && !kept.dragged.defaultPrevented;

  listen();
  return { measure, controls, press, changed, fill, reach, hide, dragging };
})();
