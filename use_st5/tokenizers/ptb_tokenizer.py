"""Penn-Treebank-style tokens by a few RE2 rewrites inside the TensorFlow graph."""

from __future__ import annotations

import tensorflow as tf

# Besides I, the character whose lower case in the Turkish locale differs from all other locales.
_DOTTED_CAPITAL_I = ("İ", "i\u0307")

# The characters that word processors and telephones write instead of those of a keyboard. The
# control characters among them are Windows-1252 that was read as Latin-1; browsers understand them
# in the same way.
_TYPOGRAPHY = (
    (r"[\x{2018}\x{2019}\x{201b}\x{02bc}\x{91}\x{92}]", "'"),
    (r"[\x{201c}-\x{201f}\x{93}\x{94}]", '"'),
    (r"[\x{2012}-\x{2015}\x{96}\x{97}]", "--"),
    (r"\x{2026}", "..."),
)

# Control characters, every Unicode white space, the zero-width space and the byte-order mark.
_WHITE_SPACE = (
    r"[\x00-\x1f\x7f-\xa0\x{1680}\x{2000}-\x{200b}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]",
    " ",
)

# The Treebank's rules in an order that lets independent ones share a rewrite. A rewrite that
# matches nothing costs a third of a microsecond a sentence.
_RULES = (
    # Opening double quotes: at the start of the text, after a space or an opening bracket.
    (r"""^"|``|([ (\[{<])(?:"|'')""", r"\1 `` "),
    # The full stop that ends the text, before brackets and quotes that close with it.
    (r"""([^.])\.([\])}>"']*) *$""", r"\1 .\2 "),
    # Colons and commas, unless a digit follows. The next character is consumed, as NLTK does.
    (r"([:,])(\P{Nd}|$)", r" \1 \2"),
    (r"\.\.\.|--|[;@#$%&?!()\[\]{}<>]", r" \0 "),
    # Any remaining double quote is a closing one.
    (r"''|\"", " '' "),
    # Clitics and a closing single quote, alone or after a clitic.
    (r"([^' ])('(?:[smd]|ll|re|ve)?|n't)('?)(?: |$)", r"\1 \2 \3 "),
    # Fixed pairs. RE2 has no look-ahead: the match of `wanna` includes the space after it.
    (
        r"\b(?:(can)(not)|(gim|lem)(me)|(gon)(na)|(got)(ta))\b",
        r" \1\3\5\7 \2\4\6\8 ",
    ),
    (
        r"\b(d)('ye)\b|\b(more)('n)\b|\b(wan)(na(?: |$))|(?:^| )('t)(is|was)\b",
        r" \1\3\5\7 \2\4\6\8 ",
    ),
)


class PTBTokenizer:
    """Splits sentences into lowercased Penn-Treebank-style tokens, with core TensorFlow ops only.

    The rules are those of NLTK's `TreebankWordTokenizer` (itself Robert MacIntyre's
    `tokenizer.sed` of the Penn Treebank), applied to one sentence per string: double quotes
    become `` `` `` and `''`, `don't` becomes `do n't`, `cannot` becomes `can not`, and the final
    full stop stands alone. `benchmarks/tokenizer_agreement.py` measures how often the tokens are
    exactly NLTK's.

    Intended differences from NLTK: invalid UTF-8 is read as U+FFFD; control characters, and every
    Unicode white space (the no-break and the ideographic space, the zero-width space, the
    byte-order mark), separate tokens like a space; lower case is Unicode's and does not depend
    on the machine's locale (except for capital I with grave, acute or tilde in a Lithuanian one).

    Args:
        typography: whether curly quotes, long dashes and the one-character ellipsis are read as
            the keyboard's `'`, `"`, `--` and `...`. NLTK leaves them inside words.

    Call arguments:
        text: string tensor `[batch]`, UTF-8.

    Returns:
        A `tf.RaggedTensor` of strings, `[batch, (tokens)]`.

    Examples:
        >>> PTBTokenizer()(tf.constant(["They'll save."])).to_list()
        [[b'they', b"'ll", b'save', b'.']]
    """

    def __init__(self, *, typography: bool = True) -> None:
        self.typography = typography

    def __call__(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Returns the tokens of each text, `[batch, (tokens)]`."""
        return tf.strings.split(self.spaced(text))

    def spaced(self, text: tf.Tensor) -> tf.Tensor:
        """Returns the tokens of each text with white space between them, a string `[batch]`."""
        typography = _TYPOGRAPHY if self.typography else ()
        for pattern, rewrite in (*typography, _WHITE_SPACE, _DOTTED_CAPITAL_I):
            text = tf.strings.regex_replace(text, pattern, rewrite)
        # The Unicode lower case depends on the locale (Turkish: I to dotless i), the ASCII one does
        # not and comes first. The Unicode one would cut the text at a NUL, which is a space by now,
        # and replaces invalid UTF-8 by U+FFFD.
        text = tf.strings.lower(tf.strings.lower(text), encoding="utf-8")
        for pattern, rewrite in _RULES:
            text = tf.strings.regex_replace(text, pattern, rewrite)
        return text
