"use strict";
// The page: what is typed is encoded, compared and searched.

const MOST_COMPARED = 30;
const MOST_FOUND = 10;
const KEPT = 20000; // vectors of lines
const DARK = 0.62; // from this similarity on, a cell's number is better read in the other colour
const SLICE = 30; // milliseconds of work before the page may answer again

const byId = (id) => document.getElementById(id);
const vectors = new Map();
let encoder = null;
let latest = 0;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function say(text) {
  byId("status").textContent = text;
}

function typedLines() {
  const lines = byId("lines").value.split("\n");
  return lines.map((line) => line.trim()).filter((line) => line);
}

const shortNumber = (value) => value.toFixed(2).replace("-0.00", "0.00");

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

/** Encodes what has no vector yet; says how long it took. False: a later change has begun. */
async function encodeAll(texts, turn) {
  if (vectors.size + texts.length > KEPT) vectors.clear();
  const unknown = [...new Set(texts)].filter((text) => !vectors.has(text));
  let spent = 0;
  let pause = performance.now() + SLICE;
  for (const [place, text] of unknown.entries()) {
    const start = performance.now();
    vectors.set(text, encoder.encode(text));
    const end = performance.now();
    spent += end - start;
    if (end > pause) {
      say(`Encoding: ${place + 1} of ${plural(unknown.length, "sentence")}.`);
      await new Promise((resolve) => setTimeout(resolve));
      if (turn !== latest) return false;
      pause = performance.now() + SLICE;
    }
  }
  if (unknown.length) {
    const each = (spent / unknown.length).toFixed(2);
    say(`Encoded ${plural(unknown.length, "sentence")} in ${Math.ceil(spent)} ms: ${each} ms each.`);
  }
  return true;
}

function showMap(lines) {
  const shown = lines.slice(0, MOST_COMPARED);
  byId("map-note").textContent =
    lines.length < 2
      ? "Type two lines or more to compare them."
      : lines.length > shown.length
        ? `The first ${shown.length} of ${plural(lines.length, "line")}.`
        : "";
  byId("map-frame").hidden = lines.length < 2;
  const head = element("tr", "");
  head.append(element("th", "Line", { scope: "col" }));
  shown.forEach((line, place) =>
    head.append(element("th", place + 1, { scope: "col", title: line, "aria-label": line })),
  );
  const rows = shown.map((line, place) => {
    const row = element("tr", "");
    const name = element("th", "", { scope: "row", title: line });
    name.append(element("span", `${place + 1}`, { class: "number" }), element("span", line));
    row.append(name);
    for (const other of shown) {
      const value = cosine(vectors.get(line), vectors.get(other));
      const cell = element("td", shortNumber(value), { class: value > DARK ? "high" : "low" });
      cell.style.setProperty("--similarity", Math.min(1, Math.max(0, value)));
      row.append(cell);
    }
    return row;
  });
  byId("map-head").replaceChildren(head);
  byId("map-body").replaceChildren(...rows);
}

function showFound(lines, query) {
  const asked = query && encoder.encode(query);
  const found = query
    ? lines
        .map((line) => [cosine(asked, vectors.get(line)), line])
        .sort((a, b) => b[0] - a[0])
        .slice(0, MOST_FOUND)
    : [];
  byId("found").replaceChildren(
    ...found.map(([value, line]) => {
      const item = element("li", "");
      item.append(
        element("span", shortNumber(value), { class: "score" }),
        element("span", line),
      );
      return item;
    }),
  );
  byId("found-note").textContent = !query
    ? "Type a question or a sentence to find the nearest lines."
    : found.length
      ? `The nearest ${found.length} of ${plural(lines.length, "line")}, with their cosine similarity.`
      : "There are no lines to search.";
}

async function update() {
  const turn = ++latest;
  const lines = typedLines();
  const query = byId("query").value.trim();
  if (!(await encodeAll(lines, turn))) return;
  showFound(lines, query);
  showMap(lines);
}

function addScript(source) {
  return new Promise((resolve, reject) => {
    const script = element("script", "", { src: source });
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${source} is missing. Copy the whole folder.`));
    document.head.append(script);
  });
}

async function start() {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser is too old. Use Chrome 111, Firefox 113, Safari 16.4 or newer.");
  }
  await addScript("model.js");
  for (let part = 0; part < MODEL.parts; part++) {
    byId("loading").value = part / MODEL.parts;
    await addScript(`model-${part}.js`);
  }
  encoder = await unpackedEncoder();
  byId("loading").hidden = true;
  byId("model").textContent =
    `${MODEL.name}: ${MODEL.dimension} dimensions, ${MODEL.precision}` +
    (MODEL.license ? `, licence ${MODEL.license}` : "");
  let waiting = 0;
  for (const field of [byId("lines"), byId("query")]) {
    field.disabled = false;
    field.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(update, 150);
    });
  }
  await update();
}

start().catch((error) => {
  byId("loading").hidden = true;
  say(`The model was not loaded: ${error.message}`);
  console.error(error);
});
