// Shows the pairs of one audit at a time. Every text is set as text, never as markup, as it may hold anything.
"use strict";
const CAP = 15e6; // pixels: browsers lay out no taller element
const LONGEST = 400; // words: longer texts are marked only at their two ends
const viewer = { waiting: new Map(), loaded: new Map() };
const $ = (id) => document.getElementById(id);
const element = (name, attributes = {}, ...inside) => {
  const made = Object.assign(document.createElement(name), attributes);
  for (const one of inside) if (one !== null) made.append(one);
  return made;
};
const state = { set: null, measure: "", word: "", order: "", text: "", differ: false, beside: "", changed: false, pair: "" };
let shown = new Uint32Array(); // the numbers of the pairs that are listed, in order
let run = 0; // which search is the latest; an older one ends

// What the scripts of the folder `data` call.
viewer.catalogue = (content) => {
  viewer.content = content;
  content.sets.forEach((own, number) => Object.assign(own, { number, worst: own.degenerate ? "nothing to judge" : own.verdicts[0]?.verdict ?? "" }));
  begin();
};
viewer.index = ([folder, content]) => arrived(`${folder}/index`, unpacked(content));
viewer.pairs = ([folder, number, content]) => arrived(`${folder}/${number}`, content);

function arrived(name, content) {
  viewer.loaded.set(name, content);
  (viewer.waiting.get(name) || []).forEach((resolve) => resolve(content));
  viewer.waiting.delete(name);
}

function loaded(folder, part) {
  const name = `${folder}/${part}`;
  if (viewer.loaded.has(name)) return Promise.resolve(viewer.loaded.get(name));
  return new Promise((resolve, reject) => {
    if (viewer.waiting.has(name)) return viewer.waiting.get(name).push(resolve);
    viewer.waiting.set(name, [resolve]);
    const script = element("script", { src: `data/${folder}/${part}.js` });
    script.onerror = () => {
      viewer.waiting.delete(name);
      $("count").textContent = `data/${folder}/${part}.js is missing or cannot be read; write the pages again: fairness-pipeline view`;
      reject(new Error(name));
    };
    script.onload = () => script.remove();
    document.head.append(script);
  });
}

function bytes(text) {
  const raw = atob(text), found = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
  return found;
}

function unpacked(content) {
  const codes = bytes(content.word).buffer;
  content.word = content.wide ? new Uint32Array(codes) : new Uint16Array(codes);
  content.gaps = Object.fromEntries(Object.entries(content.gaps).map(([name, own]) => [name, new Int8Array(bytes(own).buffer)]));
  return content;
}

const byNumber = (number) => loaded(state.set.folder, Math.floor(number / viewer.content.page));
const ready = (set, number) => {
  const page = viewer.loaded.get(`${set.folder}/${Math.floor(number / viewer.content.page)}`);
  return page && picked(set, page, number % viewer.content.page, number);
};
function picked(set, page, place, number) {
  const index = viewer.loaded.get(`${set.folder}/index`);
  const values = Object.fromEntries(Object.entries(page.values).map(([name, sides]) => [name, sides.map((side) => side[place])]));
  return {
    number, id: index.ids[number], word: index.words[index.word[number]], values,
    a: { asked: page.asked_a[place], answer: page.answer_a[place] }, b: { asked: page.asked_b[place], answer: page.answer_b[place] },
  };
}

// The words of two texts that are in one of them only, by their longest common subsequence.
function marked(text, other) {
  if (text === null) return [];
  const split = (own) => (own || "").match(/\s+|[\p{L}\p{N}'’_-]+|[^\s\p{L}\p{N}]/gu) || [];
  const own = split(text), theirs = split(other);
  const kept = new Array(own.length).fill(false);
  let first = 0, last = 0;
  while (first < own.length && first < theirs.length && own[first] === theirs[first]) kept[first++] = true;
  while (last < own.length - first && last < theirs.length - first && own.at(-1 - last) === theirs.at(-1 - last)) kept[own.length - 1 - last++] = true;
  const n = own.length - first - last, m = theirs.length - first - last;
  if (n && m && n <= LONGEST && m <= LONGEST) {
    const longest = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
    for (let i = n - 1; i >= 0; i--)
      for (let j = m - 1; j >= 0; j--)
        longest[i][j] = own[first + i] === theirs[first + j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    for (let i = 0, j = 0; i < n && j < m; ) {
      if (own[first + i] === theirs[first + j]) { kept[first + i] = true; i++; j++; }
      else if (longest[i + 1][j] >= longest[i][j + 1]) i++;
      else j++;
    }
  }
  const found = [];
  for (let i = 0; i < own.length; ) {
    let end = i;
    while (end < own.length && (kept[end] === kept[i] || (!kept[i] && /^\s+$/.test(own[end]) && kept[end + 1] === false))) end++;
    const piece = own.slice(i, end).join("");
    found.push(kept[i] || other === null ? piece : element("mark", {}, piece));
    i = end;
  }
  return found;
}

const tone = (verdict) => `v-${verdict.replaceAll(" ", "-")}`;
const signed = (number) => (number > 0 ? "+" : number < 0 ? "−" : "") + Math.abs(number).toLocaleString("en", { maximumSignificantDigits: 3 });
const label = (name) => state.set.verdicts.find((row) => row.measure === name)?.label ?? name.replaceAll("_", " ");
const option = (value, text) => element("option", { value, textContent: text });
const groupsOf = () => state.set.verdicts.find((row) => row.measure === state.measure)?.groups ?? state.set.groups;
const answered = (side) => side.answer !== null && side.answer !== undefined;

function choice(name, text, options, value, changed) {
  const select = element("select", { id: `of-${name}` });
  for (const [key, told] of options) select.append(option(key, told)); // there may be more than a call takes
  select.value = value;
  select.onchange = () => changed(select.value);
  return element("label", {}, text, select);
}

function check(text, value, changed) {
  const box = element("input", { type: "checkbox", checked: value, onchange: () => changed(box.checked) });
  return element("label", { className: "check" }, box, text);
}

// The list of audits.
const narrowed = {};
function begin() {
  const { content } = viewer;
  $("about").textContent = `${content.description}. As of ${content.made}, fairness-pipeline ${content.version}. Models' words and texts of corpora may offend.`;
  const axes = [...new Set(content.sets.flatMap((own) => Object.keys(own.key)))];
  const values = { study: [...new Set(content.sets.map((own) => own.title))] };
  axes.forEach((axis) => (values[axis] = [...new Set(content.sets.map((own) => own.key[axis]).filter(Boolean))].sort()));
  values.verdict = [...new Set(content.sets.flatMap((own) => own.verdicts.map((row) => row.verdict)))];
  if (content.sets.some((own) => own.run)) values.run = ["this run", ...new Set(content.sets.map((own) => own.run).filter(Boolean))];
  $("choices").append(...Object.entries(values).map(([name, own]) => choice(name, name, [["", "all"], ...own.map((one) => [one, one])], "", (value) => { narrowed[name] = value; listSets(); })));
  listSets();
  read();
  addEventListener("hashchange", read);
}

function fits(own) {
  return Object.entries(narrowed).every(([name, value]) => !value
    || (name === "study" ? own.title === value : name === "run" ? (own.run || "this run") === value
      : name === "verdict" ? own.verdicts.some((row) => row.verdict === value) : own.key[name] === value));
}

function listSets() {
  $("sets").replaceChildren(...viewer.content.sets.filter(fits).map((own) => {
    const button = element("button", { onclick: () => choose(own) },
      Object.values(own.key).join(" · "), element("br"),
      element("small", {}, element("span", { className: tone(own.worst), textContent: own.worst }), ` · ${own.title} · ${own.n.toLocaleString("en")}${own.run ? ` · run of ${own.run}` : ""}`));
    button.setAttribute("aria-current", own === state.set);
    return element("li", {}, button);
  }));
}

// The address holds all that is chosen, so that it can be sent to somebody.
function write() {
  const { set, ...own } = state;
  const said = new URLSearchParams({ set: set.folder });
  Object.entries(own).forEach(([name, value]) => value && said.set(name, value === true ? "1" : value));
  const hash = `#${said}`;
  if (location.hash !== hash) history.replaceState(null, "", hash);
}

function read() {
  const said = new URLSearchParams(location.hash.slice(1)), { sets } = viewer.content;
  const wanted = said.get("set") || "";
  // A folder's last part changes with its content; a link to what was made anew leads to the same audit.
  const stem = (folder) => folder.replace(/-[0-9a-f]{12}$/, "");
  const set = sets.find((own) => own.folder === wanted) || sets.find((own) => stem(own.folder) === stem(wanted)) || sets[0];
  for (const name of ["measure", "word", "order", "text", "beside", "pair"]) state[name] = said.get(name) || "";
  for (const name of ["differ", "changed"]) state[name] = said.get(name) === "1";
  open(set);
}

function choose(set) {
  Object.assign(state, { measure: "", word: "", order: "", text: "", differ: false, beside: "", changed: false, pair: "" });
  open(set);
}

async function open(set) {
  state.set = set;
  listSets();
  $("name").textContent = `${Object.values(set.key).join(" · ")}${set.run ? ` (run of ${set.run})` : ""}: ${set.groups.join(" and ")}`;
  $("count").textContent = "Loading ...";
  await loaded(set.folder, "index");
  if (state.set !== set) return;
  listVerdicts();
  listFilters();
  await filter();
  if (state.pair) detail(viewer.loaded.get(`${set.folder}/index`).ids.indexOf(state.pair));
}

function listVerdicts() {
  $("verdicts").replaceChildren(...(state.set.degenerate ? [element("li", { className: "v-nothing-to-judge" }, `Nothing to judge: ${state.set.degenerate}`)] : []),
    ...state.set.verdicts.map((row) => {
      const button = element("button", { title: state.set.measures.includes(row.measure) ? row.finding || `${row.label}: ${row.verdict}` : "of all answers together: a single pair has no value", disabled: !state.set.measures.includes(row.measure), onclick: () => { state.measure = state.measure === row.measure ? "" : row.measure; listVerdicts(); listFilters(); filter(); } },
        `${row.label} `, element("span", { className: tone(row.verdict), textContent: row.verdict }), ` ${row.difference}`);
      button.setAttribute("aria-pressed", state.measure === row.measure);
      return element("li", {}, button);
    }));
}

const others = () => viewer.content.sets.filter((own) => own !== state.set && own.title === state.set.title
  && Object.entries(own.key).filter(([axis, value]) => state.set.key[axis] !== value).every(([, value]) => value === own.subject));

function listFilters() {
  const { set } = state, index = viewer.loaded.get(`${set.folder}/index`), [a, b] = set.groups;
  const again = (name) => (value) => { state[name] = value; filter(); };
  const text = element("input", { type: "search", value: state.text, placeholder: "any words" });
  text.onchange = () => again("text")(text.value.trim());
  const beside = others();
  $("filters").replaceChildren(
    choice("measure", "measure", [["", "all"], ...set.measures.map((name) => [name, label(name)])], state.measure, (value) => { state.measure = value; listVerdicts(); filter(); }),
    choice("order", "order", [["", "what was found first"], ["a", `more: ${a}`], ["b", `more: ${b}`]], state.order, again("order")),
    ...(index.words.length > 1 ? [choice("word", "swapped word", [["", "all"], ...index.words.map((word) => [word, word || "(none)"])], state.word, again("word"))] : []),
    element("label", {}, "text", text),
    ...(beside.length ? [choice("beside", "beside", [["", "nothing"], ...beside.map((own) => [own.folder, `${own.subject}${own.run ? `, run of ${own.run}` : ""}`])], state.beside, again("beside"))] : []),
    check("values differ", state.differ, again("differ")),
    ...(beside.length ? [check("answers differ from those beside", state.changed, again("changed"))] : []));
}

const placesOf = (index) => (index.places ??= new Map(index.ids.map((id, i) => [id, i])));
const besides = () => viewer.content.sets.find((own) => own.folder === state.beside) || null;

// Lists the pairs that fit: first by what the index knows, then, for words, by reading every page.
async function filter() {
  const mine = ++run, { set } = state, index = viewer.loaded.get(`${set.folder}/index`);
  write();
  const gaps = state.measure ? [index.gaps[state.measure]].filter(Boolean) : Object.values(index.gaps);
  const word = state.word ? index.words.indexOf(state.word) : null; // -1: a link to a word that is gone
  let found = [];
  for (let i = 0; i < set.n; i++) {
    if (word !== null && index.word[i] !== word) continue;
    if (state.measure && gaps[0] && gaps[0][i] === -128) continue;
    if (state.differ && !gaps.some((own) => own[i] && own[i] !== -128)) continue;
    found.push(i);
  }
  if (gaps.length && (state.measure || state.order)) {
    // Without another order, the side first on which the measure was found to be more.
    const sign = state.order ? (state.order === "b" ? -1 : 1) : set.verdicts.find((row) => row.measure === state.measure && ["biased", "differs"].includes(row.verdict))?.sign ?? 0;
    const size = (own, i) => (own[i] === -128 ? 0 : sign ? sign * own[i] : Math.abs(own[i]));
    const sizes = new Map(found.map((i) => [i, Math.max(...gaps.map((own) => size(own, i)))]));
    found.sort((x, y) => sizes.get(y) - sizes.get(x) || x - y);
  }
  const beside = besides();
  const other = beside ? await loaded(beside.folder, "index") : null;
  if (mine !== run) return;
  if (state.text || (state.changed && other)) {
    const sought = state.text.toLowerCase(), fitting = new Set(), pages = Math.ceil(set.n / viewer.content.page);
    const candidates = new Set(found);
    for (let page = 0; page < pages; page++) {
      const own = await loaded(set.folder, page);
      if (mine !== run) return;
      for (let place = 0; place < own.asked_a.length; place++) {
        const number = page * viewer.content.page + place;
        if (!candidates.has(number)) continue;
        const texts = [own.asked_a[place], own.answer_a[place], own.asked_b[place], own.answer_b[place]];
        if (sought && !texts.some((text) => text && text.toLowerCase().includes(sought))) continue;
        if (state.changed && other) {
          const there = placesOf(other).get(index.ids[number]);
          if (there === undefined) continue;
          const theirs = await loaded(beside.folder, Math.floor(there / viewer.content.page)), at = there % viewer.content.page;
          if (theirs.answer_a[at] === own.answer_a[place] && theirs.answer_b[at] === own.answer_b[place]) continue;
        }
        fitting.add(number);
      }
      if (page % 10 === 0 || page === pages - 1) {
        show(found.filter((number) => fitting.has(number)), `, ${page + 1} of ${pages} pages read`, page > 0);
        await new Promise((resolve) => setTimeout(resolve));
      }
    }
    found = found.filter((number) => fitting.has(number));
    show(found, "", true);
  } else show(found, "", false);
}

function show(found, told, stay) {
  shown = Uint32Array.from(found);
  $("count").textContent = `${shown.length.toLocaleString("en")} of ${state.set.n.toLocaleString("en")} pairs${told}`;
  if (!stay) $("list").scrollTop = 0;
  draw();
}

// Only the rows in sight are there. Where all together would be too tall, a pixel of scrolling is more than one.
let rowHeight = 116;
function draw() {
  const list = $("list");
  rowHeight = parseInt(getComputedStyle(document.documentElement).getPropertyValue("--row"));
  const whole = shown.length * rowHeight, tall = Math.min(whole, CAP), inside = list.clientHeight;
  $("spacer").style.height = `${tall}px`;
  const scale = tall > inside ? (whole - inside) / (tall - inside) : 1;
  const top = list.scrollTop * scale, first = Math.max(0, Math.floor(top / rowHeight) - 1);
  const last = Math.min(shown.length, Math.ceil((top + inside) / rowHeight) + 1);
  $("rows").style.transform = `translateY(${list.scrollTop - (top - first * rowHeight)}px)`;
  const rows = [];
  for (let place = first; place < last; place++) rows.push(row(shown[place]));
  $("rows").replaceChildren(...rows);
}

function row(number) {
  const { set } = state, pair = ready(set, number);
  const made = element("div", { className: "row", tabIndex: 0 });
  made.onclick = () => detail(number);
  made.onkeydown = (event) => event.key === "Enter" && detail(number);
  if (!pair) {
    made.append(element("small", {}, "Loading ..."));
    byNumber(number).then(() => made.isConnected && made.replaceWith(row(number)), () => {});
    return made;
  }
  const differing = Object.entries(pair.values).filter(([, [a, b]]) => (a ?? 0) !== (b ?? 0))
    .sort(([one], [other]) => (other === state.measure) - (one === state.measure));
  made.append(element("div", {}, element("small", { textContent: pair.word || pair.id }),
    ...differing.slice(0, 4).map(([name, [a, b]]) => element("span", { className: "gap", textContent: `${label(name)} ${a === null || b === null ? (a ?? b).toLocaleString("en") : signed(a - b)}` }))));
  const groups = groupsOf(), beside = besides();
  for (const [side, other, group] of [["a", "b", groups[0]], ["b", "a", groups[1]]]) made.append(column(pair[side], pair[other], group));
  if (beside) lay(made, pair, beside);
  return made;
}

// Below each answer that of the set beside, where it is another one.
async function lay(made, pair, beside) {
  const there = placesOf(await loaded(beside.folder, "index")).get(pair.id) ?? -1;
  if (there < 0) return;
  await loaded(beside.folder, Math.floor(there / viewer.content.page));
  const theirs = ready(beside, there);
  ["a", "b"].forEach((side, place) => {
    const column = made.children[place + 1];
    if (!column || !answered(theirs[side])) return;
    const same = theirs[side].answer === pair[side].answer;
    column.append(element("p", { className: "beside" }, `${beside.run ? "earlier" : beside.subject}: `, ...(same ? ["the same"] : marked(theirs[side].answer, pair[side].answer))));
  });
}

function column(own, other, group, heading = "span") {
  if (own.asked === null) return element("div", {});
  const lone = other.asked === null;
  return element("div", {}, element(heading, { className: "side", textContent: group }),
    element("p", { className: "asked" }, ...(lone ? [own.asked] : marked(own.asked, other.asked))),
    answered(own) ? element("p", { className: "answer" }, ...(own.answer === "" ? [element("span", { className: "empty", textContent: "(empty)" })] : lone ? [own.answer] : marked(own.answer, other.answer))) : null);
}

// One pair, whole.
async function detail(number) {
  if (number < 0) { $("count").textContent = `There is no pair '${state.pair}' here.`; return; }
  const { set } = state;
  await byNumber(number);
  const pair = ready(set, number), dialog = $("pair"), place = shown.indexOf(number);
  state.pair = pair.id;
  write();
  const beside = besides();
  const parts = [element("div", { className: "sides" }, column(pair.a, pair.b, set.groups[0]), ...(pair.b.asked === null ? [] : [column(pair.b, pair.a, set.groups[1])]))];
  if (pair.a.asked === null) parts[0].firstChild.remove();
  let theirs = null;
  if (beside) {
    const there = (await loaded(beside.folder, "index")).ids.indexOf(pair.id);
    if (there >= 0) {
      await loaded(beside.folder, Math.floor(there / viewer.content.page));
      theirs = ready(beside, there);
      parts.push(element("h3", { textContent: `${beside.subject}${beside.run ? `, run of ${beside.run}` : ""}` }),
        element("div", { className: "sides" }, column(theirs.a, theirs.b, set.groups[0]), column(theirs.b, theirs.a, set.groups[1])));
    } else parts.push(element("p", { textContent: `${beside.subject} has no pair '${pair.id}'.` }));
  }
  const number_ = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumSignificantDigits: 4 }));
  const heads = ["measure", ...set.groups, "difference", ...(theirs ? [`beside: ${set.groups[0]}`, set.groups[1]] : []), "verdict on all pairs"];
  const lines = Object.entries(pair.values).map(([name, [a, b]]) => {
    const verdict = set.verdicts.find((own) => own.measure === name)?.verdict ?? "";
    return element("tr", {}, ...[label(name), number_(a), number_(b), a === null || b === null ? "–" : signed(a - b), ...(theirs ? (theirs.values[name] || [null, null]).map(number_) : [])]
      .map((text) => element("td", { textContent: text })), element("td", { className: tone(verdict), textContent: verdict }));
  });
  const step = (by) => element("button", { textContent: by < 0 ? "Previous" : "Next", disabled: place < 0 || !(place + by in shown), onclick: () => detail(shown[place + by]) });
  dialog.replaceChildren(
    element("div", { className: "bar" }, element("h2", { textContent: `Pair ${pair.id}${pair.word ? `: ${pair.word}` : ""}` }), step(-1), step(1), element("button", { textContent: "Close", onclick: () => dialog.close() })),
    ...parts,
    element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { textContent: text })))), element("tbody", {}, ...lines)),
    element("div", { className: "bar" }, element("label", {}, "link to this pair"), element("input", { readOnly: true, value: location.href, onfocus: (event) => event.target.select() })));
  if (!dialog.open) dialog.showModal();
}

$("pair").addEventListener("close", () => { state.pair = ""; write(); });
$("pair").addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key], place = [...shown.keys()].find((i) => viewer.loaded.get(`${state.set.folder}/index`).ids[shown[i]] === state.pair);
  if (by && event.target.tagName !== "INPUT" && place + by in shown) detail(shown[place + by]);
});
let waiting = false;
const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); } };
$("list").addEventListener("scroll", soon);
addEventListener("resize", soon);
