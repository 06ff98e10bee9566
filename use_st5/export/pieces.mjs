// Sentences to the ids of tokens and of the pieces of unknown ones, for a USE Transformer, as
// use_st5.tokenizers.PieceTokenizer gives them.

import { EMPTY_ID, NGramTokenizer, characterClass, tokens } from "./tokenizer.mjs";

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

export class PieceTokenizer extends NGramTokenizer {
  /** The ids of a text: one or more of each token. */
  ids(text) {
    const ids = tokens(text).flatMap((token) => this.ofToken(token));
    return ids.length ? ids : [EMPTY_ID];
  }

  /** The id of a known token, or those of its parts between punctuation. */
  ofToken(token) {
    if (this.terms.has(token)) return [this.terms.get(token)];
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
}
