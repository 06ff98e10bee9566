"""How often does PTBTokenizer give exactly NLTK's Treebank tokens, lowercased?

    python benchmarks/tokenizer_agreement.py FILE[:COLUMNS] [FILE[:COLUMNS] ...]

A file is UTF-8 text, one sentence a line. If columns are given (from 0, separated by commas), it is
tab-separated and each of these columns holds a sentence: `sts-test.csv:5,6`. If there are more than
`--limit` sentences, an evenly spaced sample is taken. NLTK must be installed (`pip install nltk`);
its Treebank tokenizer downloads nothing.

Two shares are printed: one with `typography=False`, which is meant to equal NLTK's tokenizer, and
one with the default, which reads curly quotes and long dashes as those of the keyboard.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from nltk.tokenize import TreebankWordTokenizer

from use_st5.tokenizers.ptb_tokenizer import PTBTokenizer

# A sentence belongs to the first kind whose pattern it matches; intended differences come first.
KINDS = {
    "curly quote, long dash or ellipsis, on purpose": r"[\x91-\x97‘’‛ʼ“”„‟‒–—―…]",
    "control character or other white space, on purpose": (
        r"[\x00-\x1f\x7f-\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]"
    ),
    "mixed-case clitic ('Ll), on purpose": r"'(?:Ll|lL|Re|rE|Ve|vE)\b|n'T|N't",
    "double quotes in a row": r"(?:\"|''|``){2}",
    "clitics in a row": r"'\w+'",
    "other": "",
}
BATCH = 4096


def main() -> None:
    """Reads the arguments, compares, prints the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", metavar="FILE[:COLUMNS]")
    parser.add_argument("--limit", type=int, default=100_000, help="sentences to compare")
    parser.add_argument("--examples", type=int, default=3, help="examples of each kind")
    arguments = parser.parse_args()
    sentences = [sentence for name in arguments.files for sentence in read(name) if sentence]
    if not sentences:
        parser.error("the files hold no sentences")
    selection = sample(sentences, arguments.limit)
    print(f"{len(selection):,} of {len(sentences):,} sentences")
    expected = treebank(selection)
    for typography in (False, True):
        tokens = tokenize(selection, typography=typography)
        report(selection, expected, tokens, title=f"typography={typography}", arguments=arguments)


def read(name: str) -> Iterator[str]:
    """Yields the sentences of a file, or of some columns of it."""
    path, _, columns = name.partition(":")
    with Path(path).open(encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            sentence = line.rstrip("\r\n")
            if not columns:
                yield sentence
                continue
            fields = sentence.split("\t")
            yield from (fields[int(k)] for k in columns.split(",") if int(k) < len(fields))


def sample(sentences: list[str], limit: int) -> list[str]:
    """Returns `limit` evenly spaced sentences, or all."""
    number = min(limit, len(sentences))
    return [sentences[k * len(sentences) // number] for k in range(number)]


def treebank(sentences: list[str]) -> list[list[str]]:
    """Returns NLTK's tokens, lowercased."""
    tokenizer = TreebankWordTokenizer()
    return [[token.lower() for token in tokenizer.tokenize(s)] for s in sentences]


def tokenize(sentences: list[str], *, typography: bool) -> list[list[str]]:
    """Returns our tokens."""
    signature = [tf.TensorSpec([None], tf.string)]
    graph = tf.function(PTBTokenizer(typography=typography), input_signature=signature)
    tokens: list[list[str]] = []
    for start in range(0, len(sentences), BATCH):
        batch = graph(tf.constant(sentences[start : start + BATCH])).to_list()
        tokens.extend([token.decode() for token in row] for row in batch)
    return tokens


def report(
    sentences: list[str],
    expected: list[list[str]],
    found: list[list[str]],
    *,
    title: str,
    arguments: argparse.Namespace,
) -> None:
    """Prints the share of identical token sequences and the kinds of difference."""
    kinds: defaultdict[str, list[tuple[list[str], list[str]]]] = defaultdict(list)
    for sentence, nltk_tokens, our_tokens in zip(sentences, expected, found, strict=True):
        if nltk_tokens != our_tokens:
            kind = next(name for name, pattern in KINDS.items() if re.search(pattern, sentence))
            kinds[kind].append((nltk_tokens, our_tokens))
    different = sum(map(len, kinds.values()))
    deliberate = sum(len(kinds[kind]) for kind in KINDS if kind.endswith("on purpose"))
    print(
        f"\n{title}: {1 - different / len(sentences):.3%} identical "
        f"({different} differ, {deliberate} of them on purpose)"
    )
    for kind in KINDS:
        if kinds[kind]:
            print(f"  {len(kinds[kind]):6} {kind}")
        for nltk_tokens, our_tokens in kinds[kind][: arguments.examples]:
            start = next(
                (k for k, (a, b) in enumerate(zip(nltk_tokens, our_tokens)) if a != b),  # noqa: B905
                min(len(nltk_tokens), len(our_tokens)),
            )
            span = slice(max(0, start - 1), start + 4)
            print(f"           NLTK {nltk_tokens[span]}  ours {our_tokens[span]}")


if __name__ == "__main__":
    main()
