// For people's own browsers, before the prelude: some elements connect or look up host names before any policy is
// checked, so the page must not be able to create one, whichever way it tries. Links are such elements, as soon as they
// have the focus or the mouse is over them: a link to another site becomes one to a place in this page that is not there.
(() => {
  "use strict";
  const window_ = window, types = window_.trustedTypes;
  // Keep references to everything used later: the page can change every prototype.
  const apply = Reflect.apply, define = Object.defineProperty, describe = Object.getOwnPropertyDescriptor, text_ = String;
  const lower = String.prototype.toLowerCase, find = String.prototype.indexOf, cut = String.prototype.slice;
  const exec = RegExp.prototype.exec, matches = (pattern, text) => apply(exec, pattern, [text]) !== null;
  const INSTEAD = {
    __proto__: null, link: "meta", base: "meta", embed: "wbr", frame: "wbr", iframe: "x-iframe", object: "x-object",
    portal: "x-portal", fencedframe: "x-fencedframe",
  };
  const instead = (name) => INSTEAD[apply(lower, name, [])] ?? name;
  const qualified = (name) => {
    const end = apply(find, name, [":"]) + 1;
    return apply(cut, name, [0, end]) + instead(apply(cut, name, [end]));
  };

  // Links lead to a place in this page, run a script or show an image; or they lead nowhere.
  const own = document.URL.split("#")[0] + "#";
  const inside = /^[\0-\x20]*(?:javascript:|data:image\/)/i, leaving = /^[\0-\x20]*(?:[a-z][a-z0-9+.\-\t\r\n]*:|[\/\\][\t\r\n]*[\/\\])/i;
  const address = (given) => {
    const text = text_(given);
    return matches(leaving, text) && !matches(inside, text) && apply(find, text, [own]) !== 0 ? `#${text}` : text;
  };
  const linking = /^(?:.*:)?href$/i, animating = /^(?:.*:)?attributename$/i;
  const attribute = (name, value) => {
    if (matches(linking, name)) return address(value);
    if (!matches(animating, name)) return value;
    const text = text_(value);
    return apply(find, apply(lower, text, []), ["href"]) < 0 ? text : `x-${text}`;
  };

  // HTML and XML that a script passes to the browser: a character reference makes no tag, but an entity could, and a
  // declaration gives an element attributes that are not written. The same addresses as in `seal.py`.
  const tag = /(<\/?(?:[^\t\n\f\r <>\/:]+:)?)([a-z]+)(?=[\s\/>])|<!(?=ENTITY|ATTLIST)/gi;
  const link = new RegExp(FAIRTRIAL_LINK, "gi"), animation = new RegExp(FAIRTRIAL_ANIMATION, "gi");
  // Own properties, so that the page cannot change how they work.
  for (const pattern of [tag, link, animation])
    for (const [name, value] of Object.entries({ exec, flags: "gi", global: true, unicode: false, unicodeSets: false }))
      define(pattern, name, { value });
  const replace = RegExp.prototype[Symbol.replace];
  const harmless = (markup) => {
    const elements = apply(replace, tag, [markup, (all, before, name) => (name ? before + instead(name) : "<!-")]);
    return apply(replace, animation, [apply(replace, link, [elements, (all) => `${all}#`]), (all) => `${all}x-`]);
  };

  // The browser passes every text through this policy before it becomes part of the page.
  types?.createPolicy("default", {
    createHTML: harmless,
    createScriptURL: (address) => address,
    // A javascript: address may run, but must not replace the page: the new one would have no guard.
    createScript: (code, _, sink) => (sink === "Location href" ? `${code}\n;void 0` : code),
  });
  // Outside a frame, or without support for such policies, the page stays text and nothing of it runs.
  if (!types || window_.top === window_)
    return void document.write("<p>This page is shown live only inside fairtrial, in a browser that supports Trusted Types.</p><plaintext hidden>");
  delete window_.trustedTypes; // there is one policy, and it is taken: pages that ask first do without
  delete Navigator.prototype.mediaSession; // the browser fetches its artwork, not the page

  const wrap = (prototype, name, change) => {
    const original = describe(prototype, name);
    if (original) define(prototype, name, { ...original, value(...given) { return apply(original.value, this, change(given)); } });
  };
  const wrapSetter = (prototype, name, change) => {
    const original = describe(prototype, name);
    define(prototype, name, { ...original, set(given) { apply(original.set, this, [change(given, this)]); } });
  };
  wrap(Document.prototype, "createElement", (given) => (given.length ? [instead(text_(given[0])), given[1]] : given));
  wrap(Document.prototype, "createElementNS", (given) => (given.length > 1 ? [given[0], qualified(text_(given[1])), given[2]] : given));
  wrap(DOMImplementation.prototype, "createDocument", (given) => (given.length > 1 && given[1] !== null ? [given[0], qualified(text_(given[1])), given[2] ?? null] : given));
  wrap(CustomElementRegistry.prototype, "define", (given) => {
    const base = given[2]?.extends;
    return base === undefined ? [given[0], given[1]] : [given[0], given[1], { extends: instead(text_(base)) }];
  });

  // Whatever gives an element an address.
  wrap(Element.prototype, "setAttribute", (given) => {
    if (given.length < 2) return given;
    const name = text_(given[0]);
    return [name, attribute(name, given[1])];
  });
  wrap(Element.prototype, "setAttributeNS", (given) => {
    if (given.length < 3) return given;
    const name = text_(given[1]);
    return [given[0], name, attribute(name, given[2])];
  });
  const kindOf = describe(Node.prototype, "nodeType").get, nameOf = describe(Attr.prototype, "name").get;
  wrapSetter(Attr.prototype, "value", (given, it) => attribute(apply(nameOf, it, []), given));
  for (const name of ["nodeValue", "textContent"])
    wrapSetter(Node.prototype, name, (given, it) => (given !== null && apply(kindOf, it, []) === 2 ? attribute(apply(nameOf, it, []), given) : given));
  for (const { prototype } of [HTMLAnchorElement, HTMLAreaElement]) {
    wrapSetter(prototype, "href", address);
    for (const name of ["protocol", "host", "hostname", "port", "username", "password"])
      define(prototype, name, { ...describe(prototype, name), set() {} });
  }
  wrapSetter(SVGAnimatedString.prototype, "baseVal", address);
  wrap(Document.prototype, "execCommand", (given) => {
    const name = text_(given[0]);
    return apply(lower, name, []) === "createlink" ? [name, given[1], address(given[2])] : [name, given[1], ...(given.length > 2 ? [given[2]] : [])];
  });
  // What is dragged or copied, and dropped or pasted into the page itself, or onto the browser.
  const carried = (kind, given) => {
    const text = text_(given), type = apply(lower, kind, []);
    return apply(find, type, ["html"]) >= 0 ? harmless(text) : apply(find, type, ["ur"]) >= 0 ? address(text) : text;
  };
  wrap(DataTransfer.prototype, "setData", (given) => {
    if (given.length < 2) return given;
    const kind = text_(given[0]);
    return [kind, carried(kind, given[1])];
  });
  wrap(DataTransferItemList.prototype, "add", (given) => {
    if (given.length < 2) return given;
    const kind = text_(given[1]);
    return [carried(kind, given[0]), kind];
  });
  // A middle click would open a tab of its own, in which nothing of this is.
  const prevent = Event.prototype.preventDefault;
  window_.addEventListener("auxclick", (event) => apply(prevent, event, []), true);
})();
