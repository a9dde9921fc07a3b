// What can be measured in a page without asking anybody. It runs in a world of its own: the page can see neither
// these functions nor change what they use. `listen` runs before the page, `measure` and `press` when it has `settled`.
globalThis.fairtrial ??= (() => {
  "use strict";
  const kept = { blocked: [], changes: 0, noticed: 0 };

  function listen() {
    document.addEventListener("securitypolicyviolation", (event) => {
      if (kept.blocked.length < 50) kept.blocked.push(event.blockedURI || event.effectiveDirective);
    }, true);
    new MutationObserver((records) => { kept.changes += records.length; })
      .observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    // A field that complains, or a dialog that was said: something happened that leaves no trace in the document.
    for (const name of ["invalid", "fairtrial:said"]) document.addEventListener(name, () => { kept.noticed += 1; }, true);
  }

  const shownName = (element) => {
    const id = element.id ? `#${element.id}` : "";
    const kind = typeof element.className === "string" && element.className ? `.${element.className.trim().split(/\s+/)[0]}` : "";
    const text = (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 30);
    return `${element.tagName.toLowerCase()}${id || kind}${text ? ` “${text}”` : ""}`;
  };

  function visible(element) {
    if (!element.checkVisibility || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  }

  const everything = () => document.body ? [...document.body.querySelectorAll("*")].slice(0, 5000) : [];

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

  function behind(element) {
    // The colours behind a text, from the nearest to the first that hides the rest; null where a picture is behind it.
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
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  }

  function contrast() {
    const low = [];
    let texts = 0;
    for (const element of everything()) {
      const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
      if (!own || !visible(element) || element.closest("svg, [aria-hidden=true], [disabled]") || texts >= 500) continue;
      const background = behind(element);
      if (!background) continue;
      texts += 1;
      const style = getComputedStyle(element);
      const ink = over(colour(style.color), background);
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
    const shown = (selector) => [...document.querySelectorAll(selector)].filter(visible);
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
    let least = Infinity;
    for (const element of everything()) {
      const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
      if (own && visible(element) && !element.closest("svg")) least = Math.min(least, parseFloat(getComputedStyle(element).fontSize));
    }
    // A page without a viewport is shown smaller than it is written.
    return Number.isFinite(least) ? (least * (screen.width || innerWidth)) / Math.max(innerWidth, 1) : null;
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
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  function looks() {
    const fields = [...document.querySelectorAll("input, select, textarea")].map((field) => `${field.value}/${field.checked}`);
    const drawn = [...document.querySelectorAll("canvas")].slice(0, 4).map((canvas) => {
      try { return canvas.toDataURL(); } catch { return ""; }
    });
    const open = [...document.querySelectorAll("dialog, details")].map((element) => element.open);
    const focus = document.activeElement ? shownName(document.activeElement) : "";
    return JSON.stringify([fields, drawn, open, location.hash, scrollX, scrollY, focus, document.title]);
  }

  async function answers(element) {
    kept.changes = 0; kept.noticed = 0;
    const was = looks();
    element.click();
    await pause(40);
    if (kept.changes || kept.noticed || looks() !== was) return true;
    await pause(260); // a timer may be at work
    return kept.changes > 0 || looks() !== was;
  }

  function fill() {
    // Some controls only work on what was typed.
    const empty = [...document.querySelectorAll("input, textarea")]
      .filter((field) => visible(field) && !field.value && ["text", "search", "email", "number", "textarea"].includes(field.type));
    for (const field of empty) {
      field.value = field.type === "number" ? "1" : field.type === "email" ? "somebody@example.org" : "something";
      for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
    }
    return empty.length > 0;
  }

  async function press(most) {
    // Presses what can be pressed, one after the other, and sees whether anything happens at all.
    const found = [...document.querySelectorAll(CONTROLS)]
      .filter((element) => visible(element) && !element.disabled && element.getAttribute("aria-disabled") !== "true");
    const before = [kept.changes, looks()];
    await pause(150);
    const restless = kept.changes !== before[0] || looks() !== before[1];
    const dead = [];
    let pressed = 0;
    for (const element of found.slice(0, most)) {
      if (!element.isConnected || !visible(element)) continue;
      pressed += 1;
      if (restless) continue; // everything moves: nobody can tell what a press did
      if (await answers(element)) continue;
      if (fill() && (await pause(60), await answers(element))) continue;
      dead.push(shownName(element));
    }
    return { controls: pressed, dead: dead.length, examples: dead.slice(0, 5), restless };
  }

  async function settled(rest) {
    const end = performance.now() + 3000;
    while (document.readyState !== "complete" && performance.now() < end) await pause(20);
    await Promise.race([document.fonts.ready, pause(500)]);
    await pause(rest);
    return true;
  }

  listen();
  return { measure, press, settled };
})();
