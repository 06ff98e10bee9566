"use strict";
// Sentences to the ids of unigrams and bi-grams, as use_st5.tokenizers.NGramTokenizer gives them.

// Letters and marks of Unicode 14 and later, which TensorFlow does not lower. A capital sigma takes
// them for the end of a word. Ranges of code points, hexadecimal.
const NOT_LOWERED =
  "888 890-891 897-89F 8C9-8D2 C3C ECE 180F 1AC1-1ADD 1AE0-1AEB 1C89-1C8A 1DFA 2C2F 2C5F " +
  "A7C0-A7C1 A7CB-A7DC A7F1-A7F4 FBC2 10570-1057A 1057C-1058A 1058C-10592 10594-10595 " +
  "10597-105A1 105A3-105B1 105B3-105B9 105BB-105BC 10780-10785 10787-107B0 107B2-107BA 10D4E " +
  "10D50-10D65 10D69-10D6D 10D6F-10D85 10EC5 10EFA-10EFF 10F82-10F85 11070 11073-11074 110C2 " +
  "11241 113BB-113C0 113CE 113D0 113D2 113E1-113E2 11B60 11B62-11B64 11B66 11DD9 " +
  "11F00-11F01 11F36-11F3A 11F40 11F42 11F5A 13439-13440 13447-13455 1611E-16129 1612D-1612F " +
  "16D40-16D42 16D6B-16D6C 16EA0-16EB8 16EBB-16ED3 16FF2-16FF3 1AFF0-1AFF3 1AFF5-1AFFB " +
  "1AFFD-1AFFE 1CF00-1CF2D 1CF30-1CF46 1DF00-1DF09 1DF0B-1DF1E 1DF25-1DF2A 1E030-1E06D 1E08F " +
  "1E2AE 1E4EB-1E4EF 1E5EE-1E5EF 1E6E3 1E6E6 1E6EE-1E6EF 1E6F5 1E6FF";
// Decimal digits of Unicode 16 and later, which TensorFlow takes for other characters.
const NOT_DIGITS =
  "10D40-10D49 116D0-116E3 11BF0-11BF9 11DE0-11DE9 16130-16139 16D70-16D79 1CCF0-1CCF9 " +
  "1E5F1-1E5FA";

const EMPTY_ID = 1;
const FIRST_TERM_ID = 2;

function characterClass(ranges) {
  return ranges
    .trim()
    .split(/\s+/)
    .map((range) => range.split("-").map((point) => `\\u{${point}}`).join("-"))
    .join("");
}

// What a keyboard has no key for, then every white space and control character.
const CHARACTERS = [
  [/[\u2018\u2019\u201b\u02bc\x91\x92]/gu, "'"],
  [/[\u201c-\u201f\x93\x94]/gu, '"'],
  [/[\u2012-\u2015\x96\x97]/gu, "--"],
  [/\u2026/gu, "..."],
  [/[\x00-\x1f\x7f-\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]/gu, " "],
  [/\u0130/gu, "i\u0307"],
];

// The rules of the Penn Treebank, as in use_st5/tokenizers/ptb_tokenizer.py and in its order.
const RULES = [
  [/^"|``|([ (\[{<])(?:"|'')/gu, "$1 `` "],
  [/([^.])\.([\])}>"']*) *$/gu, "$1 .$2 "],
  [new RegExp(`([:,])(\\P{Nd}|[${characterClass(NOT_DIGITS)}]|$)`, "gu"), " $1 $2"],
  [/\.\.\.|--|[;@#$%&?!()\[\]{}<>]/gu, " $& "],
  [/''|"/gu, " '' "],
  [/([^' ])('(?:[smd]|ll|re|ve)?|n't)('?)(?: |$)/gu, "$1 $2 $3 "],
  [/\b(?:(can)(not)|(gim|lem)(me)|(gon)(na)|(got)(ta))\b/gu, " $1$3$5$7 $2$4$6$8 "],
  [
    /\b(d)('ye)\b|\b(more)('n)\b|\b(wan)(na(?: |$))|(?:^| )('t)(is|was)\b/gu,
    " $1$3$5$7 $2$4$6$8 ",
  ],
];

const UNKNOWN_LETTERS = new RegExp(`([${characterClass(NOT_LOWERED)}])`, "u");

// To TensorFlow's tables the first two are marks that a capital sigma looks beyond, in later ones of
// Unicode they are none; the other two still are.
const WERE_MARKS = ["\u1734", "\u{1171e}"];
const MARKS = ["\u{e01ee}", "\u{e01ef}"];

function exchanged(text, from, to) {
  return from.reduce((changed, each, place) => changed.replaceAll(each, to[place]), text);
}

/** Lower case by Unicode's tables of version 13. */
function lower(text) {
  if (WERE_MARKS.some((was) => text.includes(was)) && !MARKS.some((mark) => text.includes(mark)))
    return exchanged(lower(exchanged(text, WERE_MARKS, MARKS)), MARKS, WERE_MARKS);
  // U+0295 was a lower-case letter before Unicode 17, which decides on a capital sigma beside it.
  return text
    .replace(/\u03a3(?=\p{Case_Ignorable}*\u0295)/gu, "\u03c3")
    .replace(/(\u0295\p{Case_Ignorable}*)\u03a3(?!\p{Case_Ignorable}*\p{Cased})/gu, "$1\u03c2")
    .split(UNKNOWN_LETTERS)
    .map((part, place) => (place % 2 ? part : part.toLowerCase()))
    .join("");
}

/** The tokens of a text in lower case; a lone surrogate counts as U+FFFD. */
function tokens(text) {
  text = text.replace(/\p{Surrogate}/gu, "\ufffd");
  for (const [pattern, rewrite] of CHARACTERS) text = text.replace(pattern, rewrite);
  text = lower(text);
  for (const [pattern, rewrite] of RULES) text = text.replace(pattern, rewrite);
  return text.split(" ").filter((token) => token);
}

const PIECE_MARK = "##";
// Letters of the longest piece, and pieces of a word that count.
const PIECE_LETTERS = 16;
const MOST_PIECES = 8;

// Letters, marks and numbers of Unicode 15.1 and later, which TensorFlow takes for punctuation.
// Ranges of code points, hexadecimal.
const NOT_LETTERS =
  "88F 897 C5C CDC 1ACF-1ADD 1AE0-1AEB 1C89-1C8A A7CB-A7CF A7D2 A7D4 A7DA-A7DC A7F1 105C0-105F3 " +
  "10940-10959 10D40-10D65 10D69-10D6D 10D6F-10D85 10EC2-10EC7 10EFA-10EFC 11380-11389 1138B " +
  "1138E 11390-113B5 113B7-113C0 113C2 113C5 113C7-113CA 113CC-113D3 113E1-113E2 116D0-116E3 " +
  "11B60-11B67 11BC0-11BE0 11BF0-11BF9 11DB0-11DDB 11DE0-11DE9 11F5A 13460-143FA 16100-16139 " +
  "16D40-16D6C 16D70-16D79 16EA0-16EB8 16EBB-16ED3 16FF2-16FF6 187F8-187FF 18CFF 18D09-18D1E " +
  "18D80-18DF2 1CCF0-1CCF9 1E5D0-1E5FA 1E6C0-1E6DE 1E6E0-1E6F5 1E6FE-1E6FF 2B73A-2B73F " +
  "2CEA2-2CEAD 2EBF0-2EE5D 323B0-33479";

const PUNCTUATION = new RegExp(`([^\\p{L}\\p{M}\\p{N}]|[${characterClass(NOT_LETTERS)}])`, "u");

class NGramTokenizer {
  /** @param {string} vocabulary The content of the model's vocabulary.txt. */
  constructor(vocabulary) {
    const [header, ...lines] = vocabulary.split("\n");
    const numbers = header.match(/=\d+/g).map((number) => Number(number.slice(1)));
    const [unigrams, bigrams, unigramBuckets, bigramBuckets] = numbers;
    const terms = lines.slice(1, 1 + unigrams + bigrams);
    this.hasPieces = terms.some((term) => term.length > 2 && term.startsWith(PIECE_MARK));
    // A pair has a space, and a single token has none.
    this.terms = new Map(terms.map((term, place) => [term, FIRST_TERM_ID + place]));
    this.unigramBuckets = { first: FIRST_TERM_ID + terms.length, count: unigramBuckets };
    this.bigramBuckets = {
      first: this.unigramBuckets.first + unigramBuckets,
      count: bigramBuckets,
    };
  }

  /** The ids of a text: of each token, behind that of the pair that it ends. */
  ids(text) {
    const ids = [];
    let before = null;
    for (const token of tokens(text)) {
      if (before !== null) {
        const pair = this.id(`${before} ${token}`, this.bigramBuckets);
        if (pair !== null) ids.push(pair);
      }
      ids.push(...this.ofToken(token));
      before = token;
    }
    return ids.length ? ids : [EMPTY_ID];
  }

  /** The id of a token; of an unknown one those of its parts, if the vocabulary has pieces. */
  ofToken(token) {
    if (this.terms.has(token) || !this.hasPieces) return [this.id(token, this.unigramBuckets)];
    const parts = token.split(PUNCTUATION).filter((part) => part);
    return parts.flatMap((part) => this.ofPart(part));
  }

  /** The id of a known part, or those of its longest pieces from left to right. */
  ofPart(part) {
    if (this.terms.has(part)) return [this.terms.get(part)];
    const letters = [...part];
    const ids = [];
    for (let start = 0; start < letters.length && ids.length < MOST_PIECES; ) {
      const mark = start ? PIECE_MARK : "";
      const piece = (end) => mark + letters.slice(start, end).join("");
      let end = Math.min(start + PIECE_LETTERS, letters.length);
      while (end > start && !this.terms.has(piece(end))) end--;
      if (end === start) {
        const rest = letters.slice(start).join("");
        return [...ids, this.bucket(rest, this.unigramBuckets)];
      }
      ids.push(this.terms.get(piece(end)));
      start = end;
    }
    return ids;
  }

  id(term, buckets) {
    const known = this.terms.get(term);
    if (known !== undefined) return known;
    return buckets.count ? this.bucket(term, buckets) : null;
  }

  /** The id of the bucket that a term's hash names. */
  bucket(term, { first, count }) {
    return first + Number(fingerprint64(term) % BigInt(count));
  }
}

// FarmHash's 64-bit fingerprint (google/farmhash, Fingerprint64), by which TensorFlow finds the bucket
// of an unknown term.
const K0 = 0xc3a5c85c97cb3127n;
const K1 = 0xb492b66fbe98f273n;
const K2 = 0x9ae16a3b2f90404fn;

const u64 = (value) => BigInt.asUintN(64, value);
const folded = (value) => value ^ (value >> 47n);

function turned(value, bits) {
  value = u64(value);
  return u64((value >> BigInt(bits)) | (value << BigInt(64 - bits)));
}

function mixed(u, v, mul) {
  const a = folded(u64((u64(u) ^ u64(v)) * mul));
  return u64(folded(u64((u64(v) ^ a) * mul)) * mul);
}

/** The fingerprint of a text's UTF-8, a BigInt. */
function fingerprint64(text) {
  const bytes = new TextEncoder().encode(text);
  const view = new DataView(bytes.buffer);
  const size = bytes.length;
  const word = (at) => view.getBigUint64(at, true);
  const mul = u64(K2 + 2n * BigInt(size));
  if (size > 64) return ofLong(word, size);
  if (size > 32) {
    const a = word(0) * K2;
    const b = word(8);
    const c = word(size - 8) * mul;
    const y = turned(a + b, 43) + turned(c, 30) + word(size - 16) * K2;
    const z = mixed(y, a + turned(b + K2, 18) + c, mul);
    const e = word(16) * mul;
    const f = word(24);
    const g = (y + word(size - 32)) * mul;
    const h = (z + word(size - 24)) * mul;
    return mixed(turned(e + f, 43) + turned(g, 30) + h, e + turned(f + a, 18) + g, mul);
  }
  if (size > 16) {
    const a = word(0) * K1;
    const b = word(8);
    const c = word(size - 8) * mul;
    const d = word(size - 16) * K2;
    return mixed(turned(a + b, 43) + turned(c, 30) + d, a + turned(b + K2, 18) + c, mul);
  }
  if (size >= 8) {
    const a = word(0) + K2;
    const b = word(size - 8);
    return mixed(turned(b, 37) * mul + a, (turned(a, 25) + b) * mul, mul);
  }
  if (size >= 4) {
    const first = BigInt(view.getUint32(0, true));
    const last = BigInt(view.getUint32(size - 4, true));
    return mixed(BigInt(size) + (first << 3n), last, mul);
  }
  if (!size) return K2;
  const y = BigInt(bytes[0] + (bytes[size >> 1] << 8));
  const z = BigInt(size + (bytes[size - 1] << 2));
  return u64(folded(u64((y * K2) ^ (z * K0))) * K2);
}

/** Of more than 64 bytes: in blocks of 64, the last of which may overlap. */
function ofLong(word, size) {
  let x = 81n * K2 + word(0);
  let y = u64(81n * K1 + 113n);
  let z = u64(folded(u64(y * K2 + 113n)) * K2);
  let v = [0n, 0n];
  let w = [0n, 0n];

  function weak(at, a, b) {
    a = u64(a + word(at));
    b = turned(b + a + word(at + 24), 21);
    const moved = u64(a + word(at + 8) + word(at + 16));
    return [u64(moved + word(at + 24)), u64(b + turned(moved, 44) + a)];
  }

  function step(at, mul, weight) {
    x = u64(turned(x + y + v[0] + word(at + 8), 37) * mul) ^ u64(w[1] * weight);
    y = u64(turned(y + v[1] + word(at + 48), 42) * mul + v[0] * weight + word(at + 40));
    z = u64(turned(z + w[0], 33) * mul);
    v = weak(at, v[1] * mul, x + w[0]);
    w = weak(at + 32, z + w[1], y + word(at + 16));
    [x, z] = [z, x];
  }

  for (let at = 0; at + 64 < size; at += 64) step(at, K1, 1n);
  const mul = u64(K1 + ((z & 0xffn) << 1n));
  w[0] = u64(w[0] + BigInt((size - 1) & 63));
  v[0] = u64(v[0] + w[0]);
  w[0] = u64(w[0] + v[0]);
  step(size - 64, mul, 9n);
  return mixed(mixed(v[0], w[0], mul) + folded(y) * K0 + z, mixed(v[1], w[1], mul) + x, mul);
}
