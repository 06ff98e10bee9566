"use strict";
// A USE-DAN: the mean of a text's rows, then dense layers in residual blocks.

const ACTIVATIONS = { tanh: Math.tanh, relu: (x) => Math.max(x, 0), linear: (x) => x };

class Encoder {
  /**
   * @param {object} model What model.js says.
   * @param {ArrayBuffer} content scales (float32), kernels (float16), codes of the table, vocabulary.
   */
  constructor(model, content) {
    this.model = model;
    this.activation = ACTIVATIONS[model.activation];
    this.scales = new Float32Array(content, 0, model.rows);
    let at = this.scales.byteLength;
    const float16 = float16Table();
    this.blocks = model.blocks.map((shapes) =>
      shapes.map(([inputs, outputs]) => {
        const halves = new Uint16Array(content, at, inputs * outputs);
        at += halves.byteLength;
        const weights = new Float32Array((inputs + 3) * outputs); // `dense` reads four rows at once
        halves.forEach((bits, place) => (weights[place] = float16[bits]));
        return { inputs, outputs, weights };
      }),
    );
    this.codes = new Int8Array(content, at, model.rows * model.width);
    at += this.codes.byteLength;
    this.tokenizer = new NGramTokenizer(new TextDecoder().decode(new Uint8Array(content, at)));
  }

  /** The unit vector of a text, Float32Array [dimension]. */
  encode(text) {
    let x = this.mean(this.tokenizer.ids(this.model.prompt + text));
    for (const [first, second, projection] of this.blocks) {
      const y = dense(dense(x, first, this.activation), second, this.activation);
      const skipped = projection ? dense(x, projection, ACTIVATIONS.linear) : x;
      x = y.map((value, place) => value + skipped[place]);
    }
    const length = Math.sqrt(cosine(x, x) + 1e-12);
    return Float32Array.from(x, (value) => value / length);
  }

  /** The mean of the rows of ids, Float64Array [width]. */
  mean(ids) {
    const { width } = this.model;
    const sum = new Float64Array(width);
    for (const id of ids) {
      const scale = this.scales[id] / ids.length;
      const start = id * width;
      for (let place = 0; place < width; place++) sum[place] += scale * this.codes[start + place];
    }
    return sum;
  }
}

function dense(x, { inputs, outputs, weights }, activation) {
  const y = new Float64Array(outputs);
  for (let i = 0; i < inputs; i += 4) {
    const [a, b, c, d] = [x[i], x[i + 1] || 0, x[i + 2] || 0, x[i + 3] || 0];
    const first = i * outputs;
    const second = first + outputs;
    const third = second + outputs;
    const fourth = third + outputs;
    for (let j = 0; j < outputs; j++) {
      y[j] +=
        a * weights[first + j] +
        b * weights[second + j] +
        c * weights[third + j] +
        d * weights[fourth + j];
    }
  }
  return activation === ACTIVATIONS.linear ? y : y.map(activation);
}

/** The product of two vectors, which is the cosine of unit vectors. */
function cosine(a, b) {
  let sum = 0;
  for (let place = 0; place < a.length; place++) sum += a[place] * b[place];
  return sum;
}

/** The number that each pattern of 16 bits is. */
function float16Table() {
  return Float32Array.from({ length: 65536 }, (_, bits) => {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction;
    return bits & 0x8000 ? -size : size;
  });
}

const FIRST_CHARACTER = 0x3400;
const parts = [];

/** Takes the text of one of the files model-0.js, model-1.js …: 15 bits a character. */
function addPart(length, text) {
  const part = new Uint8Array(length);
  let bits = 0;
  let held = 0;
  let at = 0;
  for (let place = 0; at < length; place++) {
    bits = (bits << 15) | (text.charCodeAt(place) - FIRST_CHARACTER);
    for (held += 15; held >= 8 && at < length; held -= 8) part[at++] = bits >> (held - 8);
    bits &= (1 << held) - 1;
  }
  parts.push(part);
}

/** The encoder, when all parts have been added. */
async function unpackedEncoder() {
  const stream = new Blob(parts).stream().pipeThrough(new DecompressionStream("gzip"));
  parts.length = 0;
  return new Encoder(MODEL, await new Response(stream).arrayBuffer());
}
