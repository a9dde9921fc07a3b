// Reports and sites: choosing among figures, printing, and every answer. Texts of models are only ever set as text.
(() => {
  const $ = (id) => document.getElementById(id);
  const element = (name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };

  for (const card of document.querySelectorAll("[data-tabs]")) {
    card.addEventListener("click", (event) => {
      const button = event.target.closest("[data-tab]");
      if (!button) return;
      for (const one of card.querySelectorAll("[data-tab]")) one.setAttribute("aria-pressed", String(one === button));
      for (const panel of card.querySelectorAll("[data-panel]")) panel.hidden = panel.dataset.panel !== button.dataset.tab;
      card.querySelector("h2").textContent = `Score and ${button.textContent.toLowerCase()}`;
    });
  }

  if ($("print")) {
    $("print").hidden = false;
    $("print").addEventListener("click", () => print());
  }
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details[data-print]:not([open])")];
    for (const fold of opened) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of opened) fold.open = false; });

  const section = $("answers");
  if (!section) {
    document.documentElement.dataset.ready = "yes";
    return;
  }

  const PAGE = 10, ARMS = 6;
  const files = section.dataset.files ? section.dataset.files.split(" ") : [];
  const inside = [...document.querySelectorAll("template.piece")];
  const state = { arms: [], cases: [], chosen: [], page: 0, by: null, all: false, texts: new Map(), waiting: new Map() };

  const unpacked = async (packed) => {
    const bytes = Uint8Array.from(atob(packed.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  // A piece that lies beside the page is a script that calls this: a page that was opened from a disk cannot fetch.
  window.fairtrialPiece = (number, packed) => state.waiting.get(number)?.(packed);
  const beside = (number) => new Promise((done, failed) => {
    state.waiting.set(number, done);
    const script = document.createElement("script");
    script.src = files[number];
    script.onerror = () => failed(new Error(`${files[number]} cannot be loaded`));
    document.head.append(script);
  });
  const piece = (number) => {
    if (!state.texts.has(number)) {
      const packed = files.length ? beside(number) : Promise.resolve(inside[number].content.textContent);
      state.texts.set(number, packed.then(unpacked));
    }
    return state.texts.get(number);
  };
  const textsOf = async (item) => (await piece(item.piece))[item.place];

  const isScore = (value) => typeof value === "number";
  const shown = (value) => (isScore(value) ? value.toFixed(value % 1 ? 1 : 0) : value === null ? "not run" : value);
  const step = (value) => (isScore(value) ? `k${Math.min(5, Math.floor(value / 20 + 0.5))}` : "kx");

  const read = ({ arms, cases }) => {
    state.arms = arms;
    let last = -1, place = 0;
    state.cases = cases.map(([id, input, kinds, number, scores], position) => {
      place = number === last ? place + 1 : 0;
      last = number;
      const known = scores.filter(isScore);
      return {
        id, input, kinds, scores, position, piece: number, place,
        spread: known.length > 1 ? Math.max(...known) - Math.min(...known) : -1,
        mean: known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : 101,
      };
    });
  };

  const KINDS = {
    "": () => true,
    differ: (item) => item.spread > 0,
    low: (item) => item.scores.some((value) => isScore(value) && value < 50),
    none: (item) => item.scores.some((value) => !isScore(value) && value !== null),
  };
  const apart = (item, [a, b]) => (isScore(item.scores[a]) && isScore(item.scores[b]) ? Math.abs(item.scores[a] - item.scores[b]) : -1);
  const ORDERS = {
    differ: (one, other) => other.spread - one.spread || one.mean - other.mean,
    hard: (one, other) => one.mean - other.mean,
    case: (one, other) => one.position - other.position,
  };
  const lowest = (item, arm) => (isScore(item.scores[arm]) ? item.scores[arm] : -1);
  const order = () => {
    if (!state.by) return ORDERS[$("order").value];
    if (state.by.length === 2) return (one, other) => apart(other, state.by) - apart(one, state.by);
    return (one, other) => lowest(one, state.by[0]) - lowest(other, state.by[0]);
  };

  let asked = 0;
  const choose = async () => {
    const number = ++asked;
    const words = $("search").value.trim().toLowerCase();
    const has = (text) => text !== null && text !== undefined && String(text).toLowerCase().includes(words);
    const kind = KINDS[$("kind").value];
    const found = [];
    for (const item of state.cases) {
      if (!kind(item)) continue;
      if (!words || has(item.id) || has(item.input) || item.kinds.some(has)) found.push(item);
      else {
        const texts = await textsOf(item);
        if (number !== asked) return; // something else was typed meanwhile
        if (has(texts.input) || texts.trials.some((trial) => has(trial[3]) || has(trial[4]))) found.push(item);
      }
    }
    state.chosen = found.sort(order());
    state.page = 0;
    await draw();
  };

  const count = () => {
    const note = state.by && (state.by.length === 2
      ? `, first where ${state.arms[state.by[0]]} and ${state.arms[state.by[1]]} differ most`
      : `, those that ${state.arms[state.by[0]]} answers worst first`);
    const all = state.cases.length;
    const cases = state.chosen.length === all ? `${all} case${all === 1 ? "" : "s"}` : `${state.chosen.length} of ${all} cases`;
    $("count").textContent = `${cases}${note || ""}`;
    if (!note) return;
    const other = element("button", "All arms");
    other.type = "button";
    other.addEventListener("click", () => { state.by = null; history.replaceState(null, "", "#answers"); choose(); });
    $("count").append(" ", other);
  };

  const draw = async () => {
    const first = state.page * PAGE, pages = Math.max(1, Math.ceil(state.chosen.length / PAGE));
    const items = state.chosen.slice(first, first + PAGE);
    const texts = await Promise.all(items.map(textsOf));
    $("list").replaceChildren(...items.map((item, place) => article(item, texts[place])));
    count();
    $("page").textContent = `Page ${state.page + 1} of ${pages}`;
    $("before").disabled = state.page === 0;
    $("after").disabled = state.page + 1 >= pages;
    $("pager").hidden = pages === 1;
    if (!items.length) $("list").append(element("p", "No case matches.", "empty"));
  };

  const columns = () => {
    const all = state.arms.map((_, arm) => arm);
    if (state.all || all.length <= ARMS) return all;
    const wanted = state.by ?? [];
    return [...new Set([...wanted, ...all])].slice(0, ARMS).sort((one, other) => one - other);
  };

  const article = (item, texts) => {
    const made = element("article", null, "q");
    const head = element("h3", "");
    head.append(element("code", item.id), ` ${item.kinds.join(" · ")}`);
    made.append(head, element("p", item.input));
    const sides = element("div", null, "sides");
    const open = element("div", null, "trial");
    open.hidden = true;
    for (const arm of columns()) sides.append(cell(item, texts, arm, sides, open));
    const hidden = state.arms.length - sides.children.length;
    if (hidden > 0) {
      const more = element("button", `${hidden} more arms`);
      more.type = "button";
      more.addEventListener("click", () => { state.all = true; draw(); });
      sides.append(more);
    }
    made.append(sides, open);
    return made;
  };

  const cell = (item, texts, arm, sides, open) => {
    const trials = texts.trials.filter((trial) => trial[0] === arm);
    const score = item.scores[arm];
    const made = element("button", null, `side1 ${step(score)}`);
    made.type = "button";
    made.setAttribute("aria-expanded", "false");
    const head = element("b");
    head.append(element("span", state.arms[arm]), element("span", shown(score)));
    made.append(head, element("span", trials.length ? String(trials[0][3] ?? trials[0][4] ?? "").slice(0, 300) : ""));
    made.addEventListener("click", () => {
      const close = made.getAttribute("aria-expanded") === "true";
      for (const one of sides.querySelectorAll(".side1")) one.setAttribute("aria-expanded", "false");
      made.setAttribute("aria-expanded", String(!close));
      open.hidden = close;
      if (!close) open.replaceChildren(...details(texts, trials, state.arms[arm]));
    });
    return made;
  };

  const part = (title, text) => {
    if (text === undefined || text === null || text === "") return [];
    const box = element("pre", text);
    box.tabIndex = 0;
    return [element("strong", title), box];
  };
  const details = (texts, trials, name) => [
    ...part("Question", texts.input),
    ...part("Expected", texts.expected),
    ...trials.flatMap(([, repeat, score, answer, note, facts, verdicts, steps, diff]) => [
      ...part(`${score === "failed" ? "Failure" : "Answer"} of ${name}${trials.length > 1 ? `, repeat ${repeat}` : ""}`, answer),
      ...part("Score", note ? `${shown(score)}: ${note}` : shown(score)),
      ...(verdicts || []).flatMap(([judge, value, said]) => part(`Judge ${judge}`, `${value === null ? "no verdict" : value}: ${said}`)),
      ...stepsOf(steps || []),
      ...(diff ? part("Changes in its workspace", diff) : []),
      factsOf(facts || []),
    ]),
  ];
  // The same steps as on the page of a trial, in the same order, with the same classes.
  const stepsOf = ([headline, unknown, left, turns, steps]) => {
    if (!steps) return [];
    const list = element("ol", null, "steps");
    let last = 0;
    for (const step of steps) {
      const turn = step[1];
      if (turn !== last && (turns > 1 || unknown[turn])) {
        const head = element("li", null, "turn");
        if (turns > 1) head.append(element("h4", `Turn ${turn}`));
        if (unknown[turn]) head.append(element("span", unknown[turn], "pill"));
        list.append(head);
      }
      last = turn;
      list.append(stepOf(step));
    }
    return [element("strong", `What it did: ${headline}`), list, ...(left ? [element("p", left, "mute")] : [])];
  };
  const stepOf = ([number, , kind, name, brief, state, gave, source, took, depth, texts, mark, begun]) => {
    const row = element("li", null, `step is-${kind}${mark ? " wrong" : ""} d${Math.min(depth || 0, 4)}`);
    const line = element(texts?.length ? "summary" : "p");
    line.append(element("b", name, "who"), " ", element("span", brief, "brief"));
    if (state) line.append(" ", element("span", state, "pill behind"));
    if (source) line.append(" ", element("span", source, "pill"));
    if (gave) line.append(" ", element("span", gave, "gave"));
    const what = element("div", null, "what");
    if (texts?.length) {
      const fold = element("details");
      fold.append(line, ...texts.flatMap(([label, text]) => {
        const box = element("pre", text);
        box.tabIndex = 0;
        box.dir = "auto";
        return label ? [element("small", label, "mute"), box] : [box];
      }));
      what.append(fold);
    } else what.append(line);
    row.append(element("span", `e${number}`, "at"), element("span", begun, "clock"), what, element("span", took, "took"));
    return row;
  };
  const factsOf = ([id, model, latency, cost, tokens]) => {
    const list = element("dl", null, "pairs");
    const rows = [["trial", id], ["model", model], ["latency, ms", latency], ["cost", cost], ["tokens written", tokens]];
    for (const [key, value] of rows) if (value !== null && value !== undefined) list.append(element("dt", key), element("dd", value));
    return list;
  };

  // #arm-2: an arm's worst answers; #pair-0-1: the answers in which two arms differ most.
  const follow = () => {
    const found = /^#(?:arm-(\d+)|pair-(\d+)-(\d+))$/.exec(location.hash);
    if (!found) return false;
    const named = found.slice(1).filter((one) => one !== undefined).map(Number);
    if (named.some((arm) => arm >= state.arms.length)) return false;
    state.by = named;
    return true;
  };
  addEventListener("hashchange", async () => {
    if (!follow()) return;
    await choose();
    section.scrollIntoView({ block: "start" });
    section.querySelector(".side1")?.focus({ preventScroll: true });
  });

  const start = async () => {
    read(await unpacked($("index").content.textContent));
    if (state.arms.length < 2) {
      $("order").value = "hard";
      for (const value of ["differ"]) for (const option of section.querySelectorAll(`option[value=${value}]`)) option.remove();
    }
    follow();
    let pause = 0;
    $("search").addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(choose, 120); });
    $("kind").addEventListener("input", choose);
    $("order").addEventListener("input", () => { state.by = null; choose(); });
    $("filters").addEventListener("submit", (event) => event.preventDefault());
    $("before").addEventListener("click", () => { state.page -= 1; draw(); });
    $("after").addEventListener("click", () => { state.page += 1; draw(); });
    await choose();
  };
  start()
    .catch((error) => { $("count").textContent = `The answers could not be loaded: ${error.message}`; })
    .finally(() => { document.documentElement.dataset.ready = "yes"; });
})();
