"""Finding translations: Tatoeba's test set of 112 languages, NTREX, MKQA, and BUCC 2018.

Tatoeba: Artetxe and Schwenk (arXiv 1812.10464, section 4.3) publish the set with LASER and measure
the error in both directions, XTREME (arXiv 2003.11080) the accuracy with the English sentences as
queries, m-ST5 the mean of both directions.

BUCC: the protocol is LASER's (tasks/bucc and source/mine_bitexts.py), which XTREME and m-ST5
follow. MTEB's task of this name searches the gold sentences only: its numbers differ.
"""

from __future__ import annotations

import glob
import lzma
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.encode.similarity import unit_rows
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation.labelled_texts import numbered_lines, read_side_by_side, split_fields
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult
from use_st5.io.lines import decoded_lines
from use_st5.search import exact_search, mine_bitext

_CODES = {
    # XNLI's without English: m-ST5's Table 7, as in mSimCSE's eval/evaluation_retrieval.py.
    14: "ara bul cmn deu ell fra hin rus spa swh tha tur urd vie",
    # XTREME's: TASK2LANGS["tatoeba"] in its evaluate.py. m-ST5's Table 7 agrees.
    36: "afr ara ben bul cmn deu ell est eus fin fra heb hin hun ind ita jav jpn "
    "kat kaz kor mal mar nld pes por rus spa swh tam tel tgl tha tur urd vie",
    # All of LASER's: ISO 639-3, except ber, which is Berber in ISO 639-2.
    112: "afr amh ang ara arq arz ast awa aze bel ben ber bos bre bul cat cbk ceb ces cha cmn cor "
    "csb cym dan deu dsb dtp ell epo est eus fao fin fra fry gla gle glg gsw heb hin hrv hsb "
    "hun hye ido ile ina ind isl ita jav jpn kab kat kaz khm kor kur kzj lat lfn lit lvs mal "
    "mar max mhr mkd mon nds nld nno nob nov oci orv pam pes pms pol por ron rus slk slv spa "
    "sqi srp swe swg swh tam tat tel tgl tha tuk tur tzl uig ukr urd uzb vie war wuu xho yid "
    "yue zsm",
}
# Number of languages → their codes.
GROUPS = {size: tuple(codes.split()) for size, codes in _CODES.items()}
LANGUAGES = GROUPS[112]
TATOEBA = DataSource(
    "Tatoeba",
    ("data/tatoeba/v1", "tatoeba/v1"),
    "the folder data/tatoeba/v1 of https://github.com/facebookresearch/LASER",
    "CC BY 2.0 FR",
)

# The part on which BUCC's threshold is chosen, and the part on which it is then used, by the names
# of the organisers and of XTREME.
_DEVELOPMENT = ("dev", "sample", "training")
_TEST = ("test", "training")
# Number of neighbours in the margin.
_NEIGHBOURS = 4
_DIRECTIONS = ("to_english", "from_english")
# Pairs of a language that are read of a file of many languages.
_MOST_PAIRS = 1000
# Foreign sentences, and their English translations in the same order.
Pairs = tuple[list[str], list[str]]


def read_tatoeba(folder: Path, language: str) -> Pairs:
    """Reads `tatoeba.xxx-eng.xxx` and, line for line, `tatoeba.xxx-eng.eng` of LASER's folder."""
    paths = [folder / f"tatoeba.{language}-eng.{side}" for side in (language, "eng")]
    pairs = [(first.strip(), other.strip()) for _, first, other in read_side_by_side(*paths)]
    if not pairs or not all(map(all, pairs)):
        raise ValueError(f"{paths[0]}: expected a sentence in each line here and in {paths[1]}.")
    return [first for first, _ in pairs], [other for _, other in pairs]


def read_parallel(path: Path, *, most: int) -> dict[str, Pairs]:
    """Reads lines of a language, an English text and its translation, between tabs.

    Of each language the first `most` pairs are read. Pairs with a text that an earlier pair of the
    language has are left out: a regional version has the same English text, for example.
    """
    pairs: dict[str, Pairs] = {}
    known: set[tuple[str, str]] = set()
    try:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rb") as file:
            lines = [*decoded_lines(file, where=str(path))]
    except lzma.LZMAError as error:
        raise ValueError(f"{path}: expected a complete .xz file ({error}).") from error
    for number, line in lines:
        language, *texts = split_fields(path, number, line, 3, exactly=True)
        english, foreign = map(str.strip, texts)
        sides = pairs.setdefault(language, ([], []))
        new = {(language, english), (language, foreign)}
        if len(sides[0]) < most and english and foreign and not new & known:
            known |= new
            sides[0].append(foreign)
            sides[1].append(english)
    if not pairs:
        raise ValueError(f"{path}: expected lines of language, English text and translation.")
    return pairs


def _score_pairs(context: TaskContext, data: Mapping[str, Pairs]) -> TaskResult:
    """The accuracies of all languages, and their means over Tatoeba's groups, or over all of them.

    Only the sentence at the same place counts as right, as in LASER's code, even if it occurs at
    several places. Of equally near sentences, the first is taken. "to_english": the foreign
    sentences are the queries.
    """
    accuracies: dict[str, dict[str, float]] = {}
    for code, (foreign, english) in data.items():
        sides = unit_rows(context.embed(foreign)), unit_rows(context.embed(english))
        accuracies[code] = {"pairs": len(foreign)}
        for way, (queries, others) in zip(_DIRECTIONS, (sides, sides[::-1]), strict=True):
            rows = exact_search(queries, others, k=1)[1][:, 0]
            accuracies[code][way] = float(np.mean(rows == np.arange(len(rows))))
    groups = {size: codes for size, codes in GROUPS.items() if {*codes} <= data.keys()}
    groups = groups or {len(data): tuple(data)}
    scores = {}
    for size, codes in groups.items():
        ways = np.array([[accuracies[code][way] for way in _DIRECTIONS] for code in codes])
        scores[f"accuracy_{size}"] = float(np.mean(ways.sum(axis=1) / 2))
        for way, values in zip(_DIRECTIONS, ways.T, strict=True):
            scores[f"accuracy_{size}_{way}"] = float(np.mean(values.copy()))
    main = "accuracy_36" if 36 in groups else f"accuracy_{len(data)}"
    pairs = sum(len(foreign) for foreign, _ in data.values())
    return TaskResult(main, scores, {"pairs": pairs}, {"languages": accuracies})


# One part of a BUCC language pair: id → sentence in the language that is not English, id → English
# sentence, and the ids of the translations, foreign and English.
BUCCSet = tuple[dict[str, str], dict[str, str], set[tuple[str, str]]]


def read_bucc(folder: Path, language: str, part: str) -> BUCCSet:
    """Reads a part of a language pair: both texts and the gold pairs.

    `xx-en.PART.xx` and `xx-en.PART.en` hold an id, a tab and a sentence per line, and
    `xx-en.PART.gold` the ids of a foreign sentence and of its translation.
    The parts are "sample" and "training" as the organisers named them, or "dev" and "test" as
    XTREME renamed these two.
    """
    paths = [folder / f"{language}-en.{part}.{side}" for side in (language, "en", "gold")]
    rows = [
        [
            (one.strip(), other.strip())
            for number, line in numbered_lines(path)
            for one, other in [split_fields(path, number, line, 2, exactly=True)]
        ]
        for path in paths
    ]
    foreign, english, gold = dict(rows[0]), dict(rows[1]), set(rows[2])
    if [len(foreign), len(english)] != [len(rows[0]), len(rows[1])] or not gold:
        raise ValueError(f"{paths[2]}: expected pairs of ids, and texts with one id each.")
    if unknown := [pair for pair in gold if pair[0] not in foreign or pair[1] not in english]:
        expected = f"expected ids of {paths[0].name} and {paths[1].name}"
        raise ValueError(f"{paths[2]}: {expected}, received {unknown[0]}.")
    return foreign, english, gold


def _mining_scores(
    embed: VectorCache, data: BUCCSet, *, threshold: float | None = None, k: int = _NEIGHBOURS
) -> dict[str, float]:
    """Mines pairs with a margin of at least a threshold and compares them with the gold pairs.

    Sentences that are repeated are mined once; a pair with such a sentence is dropped, since it is
    not known which id is meant. The gold pairs remain as they are. If no threshold is given, the
    one with the largest F1 on these gold pairs is used; the scores are then optimistic.
    """
    *sides, gold = data
    ids: list[dict[str, str | None]] = [{}, {}]  # sentence → its id; None if it has several
    for by_text, side in zip(ids, sides, strict=True):
        for name, sentence in side.items():
            by_text[sentence] = None if sentence in by_text else name
    rows, margins = mine_bitext(*(embed([*by_text]) for by_text in ids), k=k)
    foreign, english = ([*by_text.values()] for by_text in ids)
    pairs = [(foreign[one], english[other]) for one, other in rows.tolist()]
    known = np.array([None not in pair for pair in pairs], dtype=bool)
    margins, right = margins[known], np.array([pair in gold for pair in pairs], dtype=bool)[known]
    if threshold is None:
        threshold = best_threshold(margins, right, len(gold))
    extracted = right[margins >= threshold]
    true_positives = int(extracted.sum())
    return {
        "threshold": threshold,
        "precision": true_positives / len(extracted) if true_positives else 0.0,
        "recall": true_positives / len(gold),
        "f1": 2 * true_positives / (len(extracted) + len(gold)),
    }


def best_threshold(margins: np.ndarray, right: np.ndarray, gold: int) -> float:
    """The threshold with the largest F1: midway between the last extracted margin and the next.

    This is LASER's BuccOptimize, but pairs of equal margins are extracted together or not at all,
    and if all pairs are extracted, the threshold is the least margin. If no pair is right, it is 0.
    `margins` `[pairs]` are in descending order; `gold` is the number of gold pairs.
    """
    if not right.any():
        return 0.0
    f1 = 2 * np.cumsum(right) / (np.arange(1, len(right) + 1) + gold)
    next_margins = np.append(margins[1:], margins[-1])
    f1[:-1][margins[:-1] == margins[1:]] = -1.0
    last = int(f1.argmax())
    return float((margins[last] + next_margins[last]) / 2)


def _bucc_parts(folder: Path, language: str) -> tuple[str, ...]:
    """The part for development, and then another one with gold pairs; () if there is none."""

    def complete(part: str) -> bool:
        sides = (language, "en", "gold")
        return all((folder / f"{language}-en.{part}.{side}").is_file() for side in sides)

    development = next(filter(complete, _DEVELOPMENT), None)
    if development is None:
        return ()
    test_parts = [part for part in _TEST if part != development and complete(part)]
    return (development, *test_parts[:1])


def _score_bucc(context: TaskContext, parts: dict[str, BUCCSet]) -> TaskResult:
    """Chooses the threshold on one part; uses it on another part with gold, if there is one."""
    development, test = [*parts, None][:2]
    scores: dict[str, float] = {}
    counts: dict[str, int] = {}
    threshold: float | None = None
    for data, suffix in zip(parts.values(), ("_dev", ""), strict=False):
        part_scores = _mining_scores(context.embed, data, threshold=threshold)
        threshold = scores["threshold"] = part_scores["threshold"]
        for name in ("f1", "precision", "recall"):
            scores[name + suffix] = part_scores[name]
        for name, part in zip(("foreign", "english", "gold"), data, strict=True):
            counts[name + suffix] = len(part)
    details = {"development": development, "test": test}
    return TaskResult("f1" if test else "f1_dev", scores, counts, details)


def bucc_task(language: str) -> EvaluationTask:
    """Mining translations between English and "de", "fr", "ru" or "zh"."""
    title = f"BUCC {language}-en"
    sources = tuple(
        DataSource(
            f"{title} {side}",
            (f"{language}-en.*.{side}",),
            "the BUCC 2018 shared task, https://comparable.limsi.fr/bucc2018/bucc2018-task.html "
            "(the sample and the training data have gold pairs)",
        )
        for side in (language, "en", "gold")
    )

    def read_files(data: DataFolder) -> tuple[DataSource, ...]:
        # All files are read from the folder of the gold pairs: others may have texts alone.
        folder = data.find(sources[2])
        inner = glob.escape(folder.relative_to(data.path).as_posix())
        return tuple(
            replace(source, places=(f"{inner}/{language}-en.{part}.{side}",))
            for part in _bucc_parts(folder, language)
            for side, source in zip((language, "en", "gold"), sources, strict=True)
        )

    def read(data: DataFolder) -> dict[str, BUCCSet]:
        folder = data.find(sources[2])
        if not (parts := _bucc_parts(folder, language)):
            names = f"{language}-en.X.{language}, .en and .gold with X one of "
            names += ", ".join(_DEVELOPMENT)
            raise FileNotFoundError(f"{folder}: expected {names}, found none complete.")
        return {part: read_bucc(folder, language, part) for part in parts}

    return EvaluationTask(
        f"bucc_{language}-en",
        "bucc",
        title,
        "F1 of pairs mined by the ratio margin of cosines, one to one (LASER); the least margin is "
        "the best on the development gold; f1: on test gold (the organisers' training part, as in "
        "XTREME), f1_dev: on the development gold itself, which is optimistic (mSimCSE)",
        score=_score_bucc,
        reader=read,
        sources=sources,
        read_files=read_files,
        options={"k": _NEIGHBOURS},
    )


def _parallel_task(name: str, origin: str, licence: str) -> EvaluationTask:
    """Finding translations in a file of many languages. It serves to choose models."""
    title = name.upper()
    lines = "lines of language, English and translation between tabs"
    places = (f"parallel/{name}.tsv", f"parallel/{name}.tsv.xz")
    source = DataSource(title, places, f"{origin}, as {lines}", licence)
    return EvaluationTask(
        name,
        name,
        title,
        f"As Tatoeba, among the first {_MOST_PAIRS:,} pairs of a language; mean over languages",
        score=_score_pairs,
        reader=lambda data: read_parallel(data.find(source), most=_MOST_PAIRS),
        sources=(source,),
        options={"most_pairs": _MOST_PAIRS},
    )


TASKS = (
    EvaluationTask(
        "tatoeba",
        "tatoeba",
        "Tatoeba",
        "Accuracy of the nearest sentence by cosine among at most 1,000 of its language (LASER's "
        "test set), unweighted mean over languages: 36 are XTREME's, 14 those of them in XNLI, "
        "112 LASER's; from_english: the queries are English (XTREME), to_english: they are "
        "foreign, neither: the mean of both (m-ST5)",
        score=_score_pairs,
        reader=lambda data: {code: read_tatoeba(data.find(TATOEBA), code) for code in LANGUAGES},
        sources=(TATOEBA,),
    ),
    _parallel_task(
        "ntrex",
        "NTREX-128, news: https://github.com/MicrosoftTranslator/NTREX (arXiv 2211.05409)",
        "CC BY-SA 4.0",
    ),
    _parallel_task(
        "mkqa",
        "MKQA, questions: https://github.com/apple/ml-mkqa (arXiv 2007.15207)",
        "CC BY-SA 3.0",
    ),
    *map(bucc_task, ("de", "fr", "ru", "zh")),
)
