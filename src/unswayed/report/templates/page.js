"use strict";
/* All text from data enters the page through textContent; nothing is ever parsed as HTML. */
document.documentElement.classList.add("js");
/* 1. Sortable tables: headings become buttons; cells carry data-v; empty values stay last. */
for (const table of document.querySelectorAll("table.data:not(.one)")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const said = document.getElementById("sorted");
  const sort = (head, column) => {
    const now = head.getAttribute("aria-sort");
    const way = now === null ? head.dataset.first : now === "ascending" ? "descending" : "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", way);
    const sign = way === "ascending" ? 1 : -1;
    const rows = [...body.rows].sort((a, b) => {
      const x = a.cells[column].dataset.v, y = b.cells[column].dataset.v;
      if (x === "" || y === "") return (x === "") - (y === "");
      return sign * (column === 0 ? x.localeCompare(y, "en") : x - y);
    });
    body.append(...rows);
    said.textContent = `Sorted by ${head.textContent}, ${way}.`;
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(head, column));
    head.replaceChildren(button);
  });
}
document.getElementById("sort-hint")?.removeAttribute("hidden");
/* 2. Flipped items. `texts` holds every string once; items are lists that refer to it by number. */
if (document.getElementById("flips")) {
  const data = JSON.parse(document.getElementById("flips").textContent), size = 8;
  const at = (id) => document.getElementById(id);
  const make = (tag, name, text) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const svgNode = (tag, name) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    node.setAttribute("class", name);
    return node;
  };
  const n = (x) => x.toLocaleString("en");
  const text = (number) => data.texts[number];
  const viewOf = ([heading, parts, choice, said, quiet, details]) => ({
    heading: text(heading), choice, quiet: text(quiet),
    parts: parts.map(([kind, own, candidate]) => ({ kind: text(kind), text: text(own), candidate })),
    said: said.map(([own, strong]) => [text(own), strong]),
    details: details.map((pair) => pair.map(text)),
  });
  const items = data.items.map(([id, group, run, noun, candidates, summary, views, others]) => ({
    id: text(id), group: text(group), run, noun: text(noun), candidates: candidates.map(text),
    summary: text(summary), views: views.map(viewOf), others: others.map(viewOf),
  }));
  let matches = items, page = 0, current = null;

  function words(item) {                     /* what the filter looks at, made when first needed */
    if (item.search === undefined) {
      const asked = item.views[0].parts.filter((part) => part.kind === "text").map((part) => part.text);
      item.search = [item.id, item.group, ...item.candidates, ...asked].join("\n").toLowerCase();
    }
    return item.search;
  }
  function piece(item, view, part) {
    if (part.kind !== "candidate") {
      const span = make("span", part.kind, part.text);
      if (part.kind === "text") span.dir = "auto";
      return span;
    }
    const c = part.candidate, chosen = c === view.choice;
    const block = make("span", `cand c${c}${chosen ? " chosen" : ""}`);
    block.dir = "auto";
    block.append(make("i", "", `${item.noun} ${c + 1}${chosen ? ", chosen" : ""}`), part.text || item.candidates[c]);
    return block;
  }
  function side(item, view) {
    const box = make("div", "side"), prompt = make("div", "prompt");
    prompt.tabIndex = 0;
    prompt.setAttribute("role", "group");
    prompt.setAttribute("aria-label", `Prompt, ${view.heading}`);
    prompt.append(...view.parts.map((part) => piece(item, view, part)));
    const said = make("p", "said");
    for (const [words, strong] of view.said) {
      if (!strong) { said.append(words); continue; }
      const bold = make("b");
      bold.append(make("bdi", "", words));
      said.append(bold);
    }
    if (view.quiet) said.append(make("span", "", view.quiet));
    box.append(make("h4", "", view.heading), prompt, said);
    for (const [title, words] of view.details) {
      const more = make("details"), body = make("div", "prompt", words);
      body.dir = "auto";
      more.append(make("summary", "", title), body);
      more.addEventListener("toggle", ribbons);
      box.append(more);
    }
    return box;
  }
  function ribbons() {                       /* draw where each answer went; decoration only */
    const box = document.querySelector(".sides.two"), svg = box && box.querySelector(".ribbons");
    if (!svg) return;
    svg.replaceChildren();
    const o = box.getBoundingClientRect();
    const prompts = [...box.querySelectorAll(".side > .prompt")];
    const [l, r] = prompts.map((p) => p.getBoundingClientRect());
    for (const c of [0, 1]) {
      const [a, b] = prompts.map((p) => p.querySelector(`.cand.c${c}`)?.getBoundingClientRect());
      if (!a || !b || r.left < l.right) continue;
      const x1 = l.right - o.left + 4, x2 = r.left - o.left - 4, m = (x1 + x2) / 2;
      const y = (block, panel) => Math.min(Math.max(block.top + 14, panel.top + 8), panel.bottom - 8) - o.top;
      const y1 = y(a, l), y2 = y(b, r);      /* at the block's name, kept inside a panel that scrolls */
      const path = svgNode("path", `c${c}`);
      path.setAttribute("d", `M${x1} ${y1}C${m} ${y1} ${m} ${y2} ${x2} ${y2}`);
      svg.append(path);
    }
  }
  function bring(prompt) {    /* after a long question, scroll to the answers; of many, to the chosen */
    const all = prompt.querySelectorAll(".cand");
    const wanted = all.length > 2 ? prompt.querySelector(".chosen") : all[0];
    if (!wanted) return;
    const seen = Math.min(wanted.offsetHeight, prompt.clientHeight / 2);
    if (wanted.offsetTop + seen > prompt.clientHeight) prompt.scrollTop = wanted.offsetTop - 48;
  }
  function others(item) {
    const more = make("details", "others"), box = make("div", "sides");
    more.append(make("summary", "", `Show the other orders (${n(item.others.length)})`), box);
    more.addEventListener("toggle", () => {
      if (more.open && !box.childElementCount) box.append(...item.others.map((view) => side(item, view)));
      ribbons();
    });
    return more;
  }
  function title(item) {
    const head = make("h3");
    head.append("Item ", make("bdi", "", item.id));
    if (item.group) head.append(", ", make("bdi", "", item.group));
    if (data.runs.length > 1) head.append(", ", make("bdi", "", data.runs[item.run]));
    return head;
  }
  function show(item, say = true) {
    current = item;
    const sides = make("div", item.views.length === 2 ? "sides two" : "sides");
    sides.append(...item.views.map((view) => side(item, view)));
    if (item.candidates.length === 2 && item.views.length === 2) {
      const svg = svgNode("svg", "ribbons");
      svg.setAttribute("aria-hidden", "true");
      sides.append(svg);
    }
    at("detail").replaceChildren(title(item), make("p", "", item.summary), sides);
    if (item.others.length) at("detail").append(others(item));
    sides.querySelectorAll(".side > .prompt").forEach(bring);
    for (const button of at("list").querySelectorAll("button"))
      if (button.item === item) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    if (say) at("shown").textContent = `Item ${item.id} is shown. ${item.summary}`;
    ribbons();
  }
  function entry(item) {
    const row = make("li"), button = make("button"), name = make("span"), group = make("span", "muted");
    button.type = "button";
    button.item = item;
    name.append(make("bdi", "", item.id));
    group.append(make("bdi", "", data.runs.length > 1 ? data.runs[item.run] : item.group));
    const excerpt = make("span", "ex");
    item.candidates.forEach((words, i) => excerpt.append(i ? " / " : "", make("bdi", "", words.slice(0, 120))));
    button.append(name, group, excerpt);
    button.addEventListener("click", () => show(item));
    if (item === current) button.setAttribute("aria-current", "true");
    row.append(button);
    return row;
  }
  function counted() {
    const inside = items.length;
    if (matches.length === 0) return "No item matches.";
    if (matches.length < inside)
      return `${n(matches.length)} of ${n(inside)} ${inside < data.total ? "embedded " : ""}items match`;
    return data.count;
  }
  function draw() {
    const pages = Math.max(1, Math.ceil(matches.length / size));
    page = Math.min(page, pages - 1);
    at("list").replaceChildren(...matches.slice(page * size, (page + 1) * size).map(entry));
    at("count").textContent = counted();
    at("where").textContent = `Page ${n(page + 1)} of ${n(pages)}`;
    at("prev").disabled = page === 0;
    at("next").disabled = page === pages - 1;
  }
  function filter() {
    const wanted = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const run = at("run") ? at("run").value : "";
    matches = items.filter((item) => (run === "" || item.run === Number(run))
      && wanted.every((word) => words(item).includes(word)));
    page = 0;
    draw();
    if (matches.length && !matches.includes(current)) show(matches[0]);
  }
  function turn(step) {
    page += step;
    draw();
  }
  at("filter").addEventListener("input", filter);
  at("run")?.addEventListener("change", filter);
  at("prev").addEventListener("click", () => turn(-1));
  at("next").addEventListener("click", () => turn(1));
  at("list").addEventListener("keydown", (event) => {
    const buttons = [...at("list").querySelectorAll("button")], here = buttons.indexOf(document.activeElement);
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || here < 0) return;
    event.preventDefault();
    if (to < 0 && page === 0) return;
    if (to >= buttons.length && (page + 1) * size >= matches.length) return;
    if (to < 0 || to >= buttons.length) turn(to < 0 ? -1 : 1);
    const fresh = [...at("list").querySelectorAll("button")];
    const next = fresh[to < 0 ? fresh.length - 1 : to >= buttons.length ? 0 : to];
    next.focus();
    next.click();
  });
  addEventListener("resize", ribbons);
  at("detail").addEventListener("scroll", ribbons, true);
  at("finder").hidden = false;
  draw();
  if (matches.length) show(matches[0], false);
}
