// Loads the scripts of a page as its index.html does, in one global scope, and answers one call:
// node page_driver.cjs FOLDER TEXTS.json ANSWER.json vectors|ids
const [folder, given, answer, call] = process.argv.slice(2);
const fs = require("fs"), vm = require("vm"), path = require("path");
const text = (bytes) => new TextDecoder(bytes[0] === 0xff ? "utf-16le" : "utf-8").decode(bytes);
const load = (name) => vm.runInThisContext(text(fs.readFileSync(path.join(folder, name))), name);
const texts = JSON.parse(fs.readFileSync(given, "utf8"));
load("tokenizer.js");
async function vectors() {
  ["encoder.js", "model.js"].forEach(load);
  for (let part = 0; part < vm.runInThisContext("MODEL.parts"); part++) load(`model-${part}.js`);
  const encoder = await vm.runInThisContext("unpackedEncoder()");
  return texts.map((text) => [...encoder.encode(text)]);
}
async function ids() {
  const [vocabulary, ...rest] = texts;
  globalThis.vocabulary = vocabulary;
  const tokenizer = vm.runInThisContext("new NGramTokenizer(vocabulary)");
  return rest.map((text) => tokenizer.ids(text));
}
({ vectors, ids })[call]().then((found) => fs.writeFileSync(answer, JSON.stringify(found)));
