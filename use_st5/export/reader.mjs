// Sentences to vectors with the files beside this one: `use-st5 export --onnx` or `--litert`.
//
//   import * as runtime from "onnxruntime-node"; // or "onnxruntime-web"
//   import { loadEncoder } from "./my_model/reader.mjs";
//
//   const encoder = await loadEncoder(runtime);
//   const [vector] = await encoder.encode(["How old are you?"]); // Float32Array [dimension]
//
// A folder for LiteRT runs in browsers alone: give the module @litertjs/core, after its loadLiteRt.

import { NGramTokenizer } from "./tokenizer.mjs";

// Module of the runtime, bytes of the network → ids to a vector.
const NETWORKS = {
  async onnx(ort, bytes) {
    const session = await ort.InferenceSession.create(bytes);
    return async (ids) => {
      const given = new ort.Tensor("int32", ids, [1, ids.length]);
      return (await session.run({ ids: given })).embeddings.data;
    };
  },
  async litert(litert, bytes) {
    const model = await litert.loadAndCompile(bytes, { accelerator: "wasm" });
    return async (ids) => {
      const given = new litert.Tensor(ids, [1, ids.length]);
      const [found] = await model.run(given);
      const vector = await found.data();
      [given, found].forEach((tensor) => tensor.delete());
      return vector;
    };
  },
};

/** The bytes of a file beside this one. */
async function content(name) {
  const url = new URL(name, import.meta.url);
  if (url.protocol === "file:") return (await import("node:fs/promises")).readFile(url);
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: expected a file, received the status ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** @param {object} runtime The module onnxruntime-node, onnxruntime-web or @litertjs/core. */
export async function loadEncoder(runtime) {
  const text = async (name) => new TextDecoder().decode(await content(name));
  const facts = JSON.parse(await text("model.json"));
  const network = await NETWORKS[facts.runtime](runtime, await content(facts.network));
  // Without pairs in the vocabulary these are the ids of a USE Transformer, too.
  return new Encoder(facts, new NGramTokenizer(await text("vocabulary.txt")), network);
}

class Encoder {
  constructor(facts, tokenizer, network) {
    Object.assign(this, { facts, tokenizer, network });
  }

  /** The ids of a text, cut to what the network reads; a fixed length also pads them. */
  ids(text) {
    const ids = this.tokenizer.ids(this.facts.prompt + text);
    const { length, max_length: most } = this.facts;
    if (length) return Array.from({ length }, (_, place) => ids[place] ?? 0);
    return ids.slice(0, most ?? ids.length);
  }

  /** The unit vectors of texts, a Float32Array [dimension] for each. */
  async encode(texts) {
    const vectors = [];
    for (const text of texts) vectors.push(await this.network(Int32Array.from(this.ids(text))));
    return vectors;
  }
}
