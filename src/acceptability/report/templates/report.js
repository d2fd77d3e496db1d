"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const make = (tag, text, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    return element;
  };

  // Files: a text that begins like a formula, also where a spreadsheet splits at semicolons, gets an apostrophe
  // before it, so that no spreadsheet runs it. Every cell is quoted.
  const starts = /^[ \u00a0\u200b\u2060\ufeff\0]*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
  const inside = /([;\t\r\n][ \u00a0\u200b\u2060\ufeff\0]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
  const harmless = (cell) => {
    if (typeof cell !== "string" || /^[+-]?\d+(\.\d+)?$/.test(cell)) return cell;
    return (starts.test(cell) ? "'" : "") + cell.replace(inside, "$1'");
  };
  const field = (cell) =>
    '"' + (cell === null || cell === undefined ? "" : String(harmless(cell))).replaceAll('"', '""') + '"';
  const csv = (columns, rows) => [columns, ...rows].map((row) => row.map(field).join(",")).join("\n") + "\n";
  const download = (name, text, type) => {
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  byId("bibtex-download").addEventListener("click", () =>
    download("references.bib", byId("bibtex").textContent, "application/x-bibtex"));

  // Figures are drawn when they come into view, and the others when the browser has nothing else to do.
  const objects = (figure) =>
    figure.rows.map((row) => Object.fromEntries(figure.columns.map((name, index) => [name, row[index]])));
  const fitted = (figure, room) => {
    const spec = structuredClone(figure.spec);
    spec.datasets = { rows: objects(figure) };
    if (spec.width === "container") {
      // Beyond this a line is hard to follow with the eye; below it the page scrolls sideways.
      spec.width = Math.max(320, Math.min(room, 860));
      spec.autosize = { type: "fit-x", contains: "padding" };
    } else if (spec.facet) {
      if (typeof spec.spec.width === "number") spec.spec.width = Math.min(spec.spec.width, Math.max(160, room - 115));
      const inner = typeof spec.spec.width === "number" ? spec.spec.width : 240;
      spec.columns = Math.max(1, Math.min(spec.columns || 1, Math.floor(room / (inner + 70))));
    }
    return spec;
  };
  const theme = (room) => {
    const config = structuredClone(data.themes[dark.matches ? "dark" : "light"]);
    if (room < 500) {
      config.legend.columns = 1;
      config.axis.labelLimit = 130;
    }
    return config;
  };
  const ERRORS = 1; // the log level of Vega at which it reports errors only
  const drawn = new Set();
  const draw = async (element) => {
    const figure = data.figures[element.dataset.figure];
    const target = element.querySelector(".chart");
    drawn.add(element);
    const room = element.clientWidth - 34;
    return vegaEmbed(target, fitted(figure, room), {
      ast: true, actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true },
      renderer: figure.rows.length > 2500 ? "canvas" : "svg", config: theme(room), logLevel: ERRORS,
    }).then(() => {
      // The chart as a whole is one picture with a description; names of its thousand parts would only be noise.
      target.querySelectorAll("svg [role], svg[role]").forEach((part) => ["role", "aria-roledescription", "aria-label", "aria-hidden"].forEach((name) => part.removeAttribute(name)));
    }).catch((error) => { target.textContent = "This figure could not be drawn: " + error.message; });
  };
  const figures = [...document.querySelectorAll("[data-figure]")];
  const drawOnce = (element) => drawn.has(element) ? undefined : draw(element);
  const watch = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => drawOnce(entry.target)), { rootMargin: "300px" });
  figures.forEach((element) => watch.observe(element));
  const idle = window.requestIdleCallback || ((work) => setTimeout(work, 200));
  const drawRest = () => {
    const next = figures.find((element) => !drawn.has(element));
    if (next) idle(() => { Promise.resolve(drawOnce(next)).then(drawRest); });
    else document.documentElement.dataset.drawn = "all";
  };
  addEventListener("load", drawRest);
  const drawAgain = () => figures.filter((element) => drawn.has(element)).forEach(draw);
  dark.addEventListener("change", drawAgain);
  let width = innerWidth;
  let waiting;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if (innerWidth !== width) { width = innerWidth; drawAgain(); } }, 250);
  });
  document.querySelectorAll("[data-csv]").forEach((button) => button.addEventListener("click", () => {
    const figure = data.figures[button.dataset.csv];
    download(figure.name + ".csv", csv(figure.columns, figure.rows), "text/csv");
  }));
  const most = 500;
  document.querySelectorAll("[data-rows]").forEach((details) => details.addEventListener("toggle", () => {
    const figure = data.figures[details.dataset.rows];
    const target = details.querySelector("div");
    if (!details.open || target.childElementCount) return;
    const table = make("table");
    const head = make("tr");
    figure.columns.forEach((name) => { const cell = make("th", name); cell.scope = "col"; head.append(cell); });
    const body = make("tbody");
    figure.rows.slice(0, most).forEach((row) => {
      const line = make("tr");
      row.forEach((cell) => line.append(make("td", cell === null ? "–" : String(cell), typeof cell === "number" ? "number" : "")));
      body.append(line);
    });
    const top = make("thead");
    top.append(head);
    table.append(top, body);
    target.append(table);
    if (figure.rows.length > most) target.append(make("p", `The first ${most} of ${figure.rows.length} rows; the CSV has all.`, "small"));
  }));

  // Pairs.
  const items = data.items;
  if (!items) return;
  const size = 20;
  let page = 0;
  let shown = [];
  const option = (select, value, text) => { const added = make("option", text); added.value = value; select.append(added); };
  const tags = new Map();
  items.pairs.forEach((pair) => Object.entries(pair.tags).forEach(([tag, value]) => {
    if (!tags.has(tag)) tags.set(tag, new Set());
    tags.get(tag).add(value);
  }));
  const tag = byId("tag"), tagValue = byId("tag-value"), sort = byId("sort"), shade = byId("shade"), search = byId("search");
  option(tag, "", "any");
  [...tags].filter(([, values]) => values.size > 1 && values.size <= 500).forEach(([name]) => option(tag, name, name));
  const fillValues = () => {
    tagValue.replaceChildren();
    option(tagValue, "", "any");
    [...(tags.get(tag.value) || [])].sort().forEach((value) => option(tagValue, value, value));
    tagValue.disabled = !tag.value;
  };
  fillValues();
  option(sort, "", "order of the file");
  if (items.models.length > 1) option(sort, "differ", "models differ first");
  items.models.forEach((name, index) => {
    option(sort, `up${index}`, `gap of ${name}, smallest first`);
    option(sort, `down${index}`, `gap of ${name}, largest first`);
  });
  option(shade, "", "nothing");
  items.shaded.forEach((name, index) => option(shade, String(index), name));
  shade.value = items.shaded.length ? String(items.shaded.length - 1) : "";
  const verdicts = items.models.map((name) => {
    const label = make("label", name);
    const select = make("select");
    [["", "any"], ["1", "right"], ["0", "wrong"]].forEach(([value, text]) => option(select, value, text));
    label.append(select);
    byId("verdicts").append(label);
    return select;
  });
  const isRight = (credit) => credit > 0.5;
  const fits = (pair) => {
    const words = search.value.trim().toLowerCase();
    if (words && !(pair.texts.join("\n") + "\n" + pair.id).toLowerCase().includes(words)) return false;
    if (tag.value && tagValue.value && pair.tags[tag.value] !== tagValue.value) return false;
    return verdicts.every((select, index) =>
      !select.value || (pair.right[index] !== null && isRight(pair.right[index]) === (select.value === "1")));
  };
  const differs = (pair) => new Set(pair.right.filter((credit) => credit !== null)).size > 1;
  const ordered = (pairs) => {
    if (sort.value === "differ") return [...pairs].sort((first, second) => differs(second) - differs(first));
    const named = /^(up|down)(\d+)$/.exec(sort.value);
    if (!named) return pairs;
    const sign = named[1] === "up" ? 1 : -1;
    const gap = (pair) => pair.gaps[named[2]] ?? Infinity * sign;
    return [...pairs].sort((first, second) => sign * (gap(first) - gap(second)));
  };
  const sentence = (pair, role) => {
    const line = make("p", undefined, "sentence");
    line.append(make("span", ["better", "worse"][role], "role"));
    const letters = Array.from(pair.texts[role]);
    const tokens = shade.value ? pair.tokens[role][shade.value] || [] : [];
    let at = 0;
    for (let index = 0; index < tokens.length; index += 4) {
      const [start, end, bits, unknown] = tokens.slice(index, index + 4);
      if (start > at) line.append(letters.slice(at, start).join(""));
      if (end <= at) continue;
      const span = make("span", letters.slice(Math.max(start, at), end).join(""), "token");
      span.style.setProperty("--much", Math.min(bits / 24, 0.62).toFixed(2));
      span.title = unknown ? `${bits} bits, not in the model's vocabulary` : `${bits} bits`;
      if (unknown) {
        span.classList.add("unknown");
        span.append(make("span", " (unknown)", "hidden"));
      }
      line.append(span);
      at = end;
    }
    line.append(letters.slice(at).join(""));
    if (tokens.length) {
      const total = tokens.filter((_, index) => index % 4 === 2).reduce((sum, bits) => sum + bits, 0);
      line.append(make("span", `, ${total.toFixed(1)} bits in all`, "hidden"));
    }
    return line;
  };
  const card = (pair) => {
    const item = make("li");
    item.append(sentence(pair, 0), sentence(pair, 1));
    const gaps = make("p", undefined, "gaps");
    items.models.forEach((name, index) => {
      if (pair.gaps[index] === null) return;
      const right = isRight(pair.right[index]);
      const text = `${right ? "✓" : "✗"} ${name} ${pair.gaps[index] > 0 ? "+" : ""}${pair.gaps[index].toFixed(2)}`;
      const verdict = make("span", text, right ? "right" : "wrong");
      verdict.append(make("span", right ? " (right)" : " (wrong)", "hidden"));
      gaps.append(verdict);
    });
    const labels = Object.entries(pair.tags).map(([name, value]) => `${name}: ${value}`);
    item.append(gaps, make("div", [pair.suite, ...labels].join(" · "), "about"));
    return item;
  };
  const show = () => {
    const pages = Math.max(1, Math.ceil(shown.length / size));
    page = Math.max(0, Math.min(page, pages - 1));
    byId("pairs").replaceChildren(...shown.slice(page * size, (page + 1) * size).map(card));
    byId("where").textContent = `Page ${page + 1} of ${pages}`;
    byId("before").disabled = page === 0;
    byId("after").disabled = page === pages - 1;
  };
  const choose = () => {
    shown = ordered(items.pairs.filter(fits));
    page = 0;
    byId("count").textContent = `${shown.length} of ${items.pairs.length} pairs`;
    show();
  };
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  search.addEventListener("input", choose);
  tag.addEventListener("change", () => { fillValues(); choose(); });
  [tagValue, sort, ...verdicts].forEach((select) => select.addEventListener("change", choose));
  shade.addEventListener("change", show);
  const turn = (by) => { page += by; show(); byId("count").scrollIntoView(); };
  byId("before").addEventListener("click", () => turn(-1));
  byId("after").addEventListener("click", () => turn(1));
  byId("pairs-csv").addEventListener("click", () => {
    const names = [...tags.keys()];
    const columns = ["suite", "contrast", "better", "worse", ...names.map((name) => "tag/" + name),
      ...items.models.flatMap((name) => [`gap ${name}`, `earned ${name}`])];
    const rows = shown.map((pair) => [pair.suite, pair.id, ...pair.texts, ...names.map((name) => pair.tags[name]),
      ...items.models.flatMap((_, index) => [pair.gaps[index], pair.right[index]])]);
    download("pairs.csv", csv(columns, rows), "text/csv");
  });
  choose();
})();
