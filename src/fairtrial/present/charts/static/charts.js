// Charts are drawn without a script. This adds tooltips, arrow keys between marks, and saving a chart as SVG or PNG.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);

  const show = (mark) => {
    const lines = mark.dataset.tip.split("|");
    tip.replaceChildren(...lines.map((line, n) => Object.assign(document.createElement(n ? "span" : "b"), { textContent: line })));
    tip.hidden = false;
    const at = (mark.querySelector("circle") ?? mark).getBoundingClientRect();
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.left + at.width / 2 - box.width / 2), innerWidth - box.width - 8);
    const above = at.top - box.height - 10;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(above > 8 ? above : at.bottom + 10) + scrollY}px`;
  };
  const marked = (event) => event.target.closest?.("[data-tip]");
  for (const name of ["pointerover", "focusin"]) {
    addEventListener(name, (event) => {
      const mark = marked(event);
      if (mark) show(mark);
      else tip.hidden = true;
    });
  }
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip.hidden = true;
    const mark = marked(event);
    if (!mark) return;
    const all = [...mark.closest("svg, table").querySelectorAll("[data-tip]")];
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const next = step && all[all.indexOf(mark) + step];
    if (next) {
      next.focus();
      event.preventDefault();
      event.stopPropagation();
    }
  });

  // A copy that carries its colours with it, so that it looks the same in any other program.
  const standalone = (svg) => {
    const copy = svg.cloneNode(true);
    const from = [svg, ...svg.querySelectorAll("*")];
    const to = [copy, ...copy.querySelectorAll("*")];
    const properties = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "font", "opacity"];
    from.forEach((element, n) => {
      const computed = getComputedStyle(element);
      for (const name of properties) to[n].setAttribute(name, computed.getPropertyValue(name));
    });
    const { width, height } = svg.getBoundingClientRect();
    const margin = 48; // labels of the axes stand outside
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    const sheet = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    sheet.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    sheet.setAttribute("width", width + 2 * margin);
    sheet.setAttribute("height", height + 2 * margin);
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    paper.setAttribute("width", "100%");
    paper.setAttribute("height", "100%");
    paper.setAttribute("fill", getComputedStyle(document.documentElement).getPropertyValue("--surface"));
    copy.setAttribute("x", margin);
    copy.setAttribute("y", margin);
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.setAttribute("overflow", "visible");
    sheet.append(paper, copy);
    return { text: new XMLSerializer().serializeToString(sheet), width: width + 2 * margin, height: height + 2 * margin };
  };
  const download = (address, name) => Object.assign(document.createElement("a"), { href: address, download: name }).click();
  const saveSvg = (svg, name) => download(URL.createObjectURL(new Blob([standalone(svg).text], { type: "image/svg+xml" })), `${name}.svg`);
  const savePng = (svg, name) => {
    const { text, width, height } = standalone(svg);
    const image = new Image();
    image.onload = () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
      canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
      download(canvas.toDataURL("image/png"), `${name}.png`);
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  };
  const addButtons = () => {
    for (const chart of document.querySelectorAll(".card .chart:not([data-saved])")) {
      chart.dataset.saved = "";
      const header = chart.closest(".card").querySelector("header");
      const svg = chart.querySelector(":scope > svg");
      if (!header || !svg) continue;
      const name = (header.querySelector("h2")?.textContent ?? "chart").trim().toLowerCase().replaceAll(/[^\w]+/g, "-");
      for (const [label, save] of [["SVG", saveSvg], ["PNG", savePng]]) {
        const button = Object.assign(document.createElement("button"), { type: "button", className: "save", textContent: label });
        button.setAttribute("aria-label", `Save this chart as ${label}`);
        button.addEventListener("click", () => save(svg, name));
        header.append(button);
      }
    }
  };
  document.addEventListener("part-loaded", addButtons); // parts of a page that come later
  addButtons();
})();
