from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import tensorflow as tf

from use_st5.tokenizers.ptb_tokenizer import PTBTokenizer

# Text and the tokens that NLTK 3.9's TreebankWordTokenizer gives, lowercased.
TREEBANK = {
    # Contractions and possessives.
    "They'll save and invest more.": "they 'll save and invest more .",
    "DON'T! I'M HERE; YOU'RE THERE.": "do n't ! i 'm here ; you 're there .",
    "I think she'd've, we're sure he's it.": "i think she'd 've , we 're sure he 's it .",
    "The dogs' bowls and James's cat.": "the dogs ' bowls and james 's cat .",
    "its'": "its '",
    "it's": "it 's",
    # The fixed pairs, and words that only look like them.
    "You cannot wanna be gonna, gotta, lemme, gimme.": (
        "you can not wan na be gon na , got ta , lem me , gim me ."
    ),
    "'Tis true, 'twas more'n enough, d'ye see?": "'t is true , 't was more 'n enough , d 'ye see ?",
    "Canta canna DNA gonnabe uncannot.": "canta canna dna gonnabe uncannot .",
    # Quotes.
    'He said, "It works." Then: ("no").': "he said , `` it works. '' then : ( `` no '' ) .",
    '"Quoted" at the start': "`` quoted '' at the start",
    "``Already Penn'' and ''this''": "`` already penn '' and `` this ''",
    "'single quotes' they're fine'": "'single quotes ' they 're fine '",
    '"': "``",
    "'": "'",
    # Full stops and ellipses.
    "e.g. U.S. and Mr. Smith's Ph.D.": "e.g. u.s. and mr. smith 's ph.d .",
    "A final stop.)": "a final stop . )",
    'A final stop."': "a final stop . ''",
    "A final stop.  ": "a final stop .",
    "Wait... what.... no.": "wait ... what ... . no .",
    "The end...": "the end ...",
    ".": ".",
    # Numbers, commas, colons, currencies.
    "It cost 1,234.56 or 3,36 at 10:30, or 1, 2:3.": (
        "it cost 1,234.56 or 3,36 at 10:30 , or 1 , 2:3 ."
    ),
    "$3.88, £5, €6.50, 50% & #1 @home; US$2": ("$ 3.88 , £5 , €6.50 , 50 % & # 1 @ home ; us $ 2"),
    "a,,b ,,,c: :d ::": "a , ,b , , , c : : d : :",
    ",": ",",
    # Other punctuation, dashes, brackets, addresses.
    "what?! Really!?": "what ? ! really ! ?",
    "dash -- dash---dash-word well-known": "dash -- dash -- -dash-word well-known",
    "(a)[b]{c}<d>": "( a ) [ b ] { c } < d >",
    "a/b and/or C++ 3rd 24/7": "a/b and/or c++ 3rd 24/7",
    "http://example.com/a,b?c=1&d=2#e": "http : //example.com/a , b ? c=1 & d=2 # e",
    "mail me@example.org, ok?": "mail me @ example.org , ok ?",
    # Other scripts, emoji.
    "I 😀 you 👩\u200d👩\u200d👧 ok!": "i 😀 you 👩\u200d👩\u200d👧 ok !",
    "你好，世界。 今天": "你好，世界。 今天",
    "Ünïcödé ÉCOLE ΣΑΣ İstanbul": "ünïcödé école σας i\u0307stanbul",
    "цена: ٣,٤٥": "цена : ٣,٤٥",
    # White space and nothing.
    "a\tb\nc\r\n": "a b c",
    "\u3000a\u00a0b\u2009c\u2028d\x1ce\u0085f": "a b c d e f",
    "": "",
    " \n ": "",
}

# Texts whose tokens differ from NLTK's on purpose.
OURS = {
    "I don’t know, it’s ‘fine’": "i do n't know , it 's 'fine '",
    "“Curly” and „low”": "`` curly '' and `` low ''",
    "one—two – three…": "one -- two -- three ...",
    "I didn\x92t \x93know\x94 \x96 really\x97": "i did n't `` know '' -- really --",
    "\ufeffmark zero\u200bwidth": "mark zero width",
    "bell\x07nul\x00esc\x1b[1m del\x7f.": "bell nul esc [ 1m del .",
    "it's\tmine, it's\u00a0yours": "it 's mine , it 's yours",
}


@pytest.mark.parametrize(("text", "tokens"), {**TREEBANK, **OURS}.items())
def test_literal_tokens(text: str, tokens: str) -> None:
    (found,) = _tokens([text])
    assert found == tokens.split(" ") if tokens else found == []


def test_the_literal_tokens_are_nltks() -> None:
    nltk = pytest.importorskip("nltk.tokenize")
    tokenizer = nltk.TreebankWordTokenizer()
    for text, tokens in TREEBANK.items():
        assert " ".join(tokenizer.tokenize(text)).lower() == tokens


def test_random_text_agrees_with_nltk() -> None:
    nltk = pytest.importorskip("nltk.tokenize")
    tokenizer = nltk.TreebankWordTokenizer()
    pieces = ["a", "bc", "Don't", "we'll", "dog's", "cannot", "gonna", "wanna", "X", "12", "3"]
    pieces += [*" .,;:'?!()[]{}<>-$%&#@", "...", "--", ". ", ", ", " (", ' "', '" ', " ", " "]
    generator = random.Random(5)
    texts = ["".join(generator.choices(pieces, k=generator.randint(1, 12))) for _ in range(5000)]
    pairs = zip(texts, _tokens(texts, typography=False), strict=True)
    different = [
        (text, found)
        for text, found in pairs
        if found != [token.lower() for token in tokenizer.tokenize(text)]
    ]
    # These are texts with clitics in a row (don't's) or a doubled quote at the start.
    assert len(different) <= 25, different[:10]


def test_real_lines_agree_with_nltk(data_dir: Path) -> None:
    nltk = pytest.importorskip("nltk.tokenize")
    tokenizer = nltk.TreebankWordTokenizer()
    path = data_dir / "sick2014" / "SICK_train.txt"
    lines = [line.split("\t")[1] for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    expected = [[token.lower() for token in tokenizer.tokenize(line)] for line in lines]
    assert _tokens(lines) == expected


def test_without_typography_curly_quotes_stay() -> None:
    assert _tokens(["I don’t “know”"], typography=False) == [["i", "don’t", "“know”"]]


def test_long_and_hostile_texts_take_linear_time() -> None:
    words = "the cat's hat, isn't it? "
    start = time.perf_counter()
    (tokens,) = _tokens([words * 2000])  # 10,000 words
    assert len(tokens) == 2000 * 9
    hostile = [character * 100_000 for character in "\"'. ,`("]
    PTBTokenizer().spaced(tf.constant([*hostile, "a.)" * 50_000, "n't" * 50_000, "\xff" * 100_000]))
    assert time.perf_counter() - start < 20


def test_core_ops_alone() -> None:
    graph = tf.function(PTBTokenizer().spaced, input_signature=[tf.TensorSpec([None], tf.string)])
    kinds = {operation.type for operation in graph.get_concrete_function().graph.get_operations()}
    assert kinds == {"Placeholder", "StringLower", "StaticRegexReplace", "Identity"}


@pytest.mark.process
def test_lower_case_does_not_depend_on_the_locale(
    fresh_python: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.setenv(name, "tr_TR.UTF-8")
    code = (
        "import tensorflow as tf\n"
        "from use_st5.tokenizers.ptb_tokenizer import PTBTokenizer\n"
        "print(ascii(PTBTokenizer()(tf.constant(['TITLE I \\u0130'])).to_list()))\n"
    )
    assert fresh_python("-c", code).strip() == ascii([[b"title", b"i", "i\u0307".encode()]])


def _tokens(texts: list[str], *, typography: bool = True) -> list[list[str]]:
    rows = PTBTokenizer(typography=typography)(tf.constant(texts, tf.string)).to_list()
    return [[token.decode() for token in row] for row in rows]
