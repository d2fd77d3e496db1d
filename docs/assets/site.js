// What the pages do beyond the theme; nothing is loaded from the network, and without scripts every page can be read.
"use strict";

// A field above each long table shows the rows that have all of the words, also in their folded details.
function addFilter(table, number) {
  const rows = [...table.querySelectorAll("tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const form = document.createElement("div");
  form.className = "filter";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", `Filter ${table.dataset.filter} ${number + 1}`);
  const label = document.createElement("label");
  label.htmlFor = `filter-${number}`;
  label.textContent = `Filter ${table.dataset.filter}`;
  const field = document.createElement("input");
  field.id = label.htmlFor;
  field.type = "search";
  field.autocomplete = "off";
  const count = document.createElement("span");
  count.setAttribute("role", "status");
  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row, at) => {
      row.hidden = !words.every((word) => texts[at].includes(word));
      return !row.hidden;
    });
    count.textContent = `${found.length} of ${rows.length}`;
  };
  field.addEventListener("input", show);
  form.append(label, field, count);
  table.before(form);
  show();
}

// A link to a row opens what it is folded into, and the details of the row itself.
function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target || !target.closest(".reference")) return;
  target.hidden = false;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  target.scrollIntoView();
}

// The theme makes tables and code scroll sideways where they are too wide: then the keyboard has to reach them. Each
// button that copies code says which block it copies.
function nameRegions() {
  const names = { ".md-typeset__scrollwrap": "Table", ".highlight pre": "Code" };
  for (const [selector, name] of Object.entries(names)) {
    document.querySelectorAll(selector).forEach((part, at) => {
      const inner = part.querySelector("code, .md-typeset__table") || part;
      const wide = Math.max(part.scrollWidth - part.clientWidth, inner.scrollWidth - inner.clientWidth) > 0;
      const scrolls = part.scrollWidth > part.clientWidth ? part : inner;
      if (wide && !scrolls.hasAttribute("tabindex")) {
        scrolls.tabIndex = 0;
        scrolls.setAttribute("role", "region");
        scrolls.setAttribute("aria-label", `${name} ${at + 1}`);
      }
    });
  }
  document.querySelectorAll(".md-search").forEach((part) => part.setAttribute("aria-label", "Search"));
  document.querySelectorAll("nav.md-code__nav").forEach((nav, at) => nav.setAttribute("aria-label", `Copy block ${at + 1}`));
}

document.querySelectorAll("[data-filter]").forEach(addFilter);
openTarget();
window.addEventListener("hashchange", openTarget);
nameRegions();
// The theme wraps tables and adds its buttons after this script has run, and again when the page gets narrower.
new MutationObserver(nameRegions).observe(document.body, { childList: true, subtree: true });
window.addEventListener("resize", nameRegions);
