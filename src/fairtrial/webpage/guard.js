// For people's own browsers, before the prelude: some elements connect or look up host names before any policy is
// checked, so the page must not be able to create one, whichever way it tries.
(() => {
  "use strict";
  const window_ = window, types = window_.trustedTypes;
  // Keep references to everything used later: the page can change every prototype.
  const apply = Reflect.apply, define = Object.defineProperty, describe = Object.getOwnPropertyDescriptor, text_ = String;
  const lower = String.prototype.toLowerCase, find = String.prototype.indexOf, cut = String.prototype.slice;
  const INSTEAD = {
    __proto__: null, link: "meta", base: "meta", embed: "wbr", frame: "wbr", iframe: "x-iframe", object: "x-object",
    portal: "x-portal", fencedframe: "x-fencedframe",
  };
  const instead = (name) => INSTEAD[apply(lower, name, [])] ?? name;
  const qualified = (name) => {
    const end = apply(find, name, [":"]) + 1;
    return apply(cut, name, [0, end]) + instead(apply(cut, name, [end]));
  };

  // HTML and XML that a script passes to the browser: a character reference makes no tag, but an entity could.
  const tag = /(<\/?(?:[^\t\n\f\r <>\/:]+:)?)([a-z]+)(?=[\s\/>])|<!(?=ENTITY)/gi;
  // Own properties, so that the page cannot change how it works.
  for (const [name, value] of Object.entries({ exec: RegExp.prototype.exec, flags: "gi", global: true, unicode: false, unicodeSets: false }))
    define(tag, name, { value });
  const replace = RegExp.prototype[Symbol.replace];
  const harmless = (markup) => apply(replace, tag, [markup, (all, before, name) => (name ? before + instead(name) : "<!-")]);

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
    const own = describe(prototype, name);
    define(prototype, name, { ...own, value(...given) { return apply(own.value, this, change(given)); } });
  };
  wrap(Document.prototype, "createElement", (given) => (given.length ? [instead(text_(given[0])), given[1]] : given));
  wrap(Document.prototype, "createElementNS", (given) => (given.length > 1 ? [given[0], qualified(text_(given[1])), given[2]] : given));
  wrap(DOMImplementation.prototype, "createDocument", (given) => (given.length > 1 && given[1] !== null ? [given[0], qualified(text_(given[1])), given[2] ?? null] : given));
  wrap(CustomElementRegistry.prototype, "define", (given) => {
    const base = given[2]?.extends;
    return base === undefined ? [given[0], given[1]] : [given[0], given[1], { extends: instead(text_(base)) }];
  });
})();
