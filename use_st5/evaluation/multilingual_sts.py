"""Semantic textual similarity in and across other languages (m-ST5, sections 4.1 and 4.2).

The pairs are those of `use_st5.evaluation.sts`, and so is the protocol.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.data.tables import records
from use_st5.evaluation.labelled_texts import (
    numbered_lines,
    parse_score,
    read_columns,
    read_side_by_side,
)
from use_st5.evaluation.sts import STSPair, checked_pair, evaluate_sts, scored_pairs
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult


def read_sts2017(inputs: Path, scores: Path, *, scored: int | None = None) -> list[STSPair]:
    """Reads a track of SemEval-2017 task 1: two sentences per line, and a score per line.

    The name of the file does not tell which language is first: tracks 2, 4b and 6 have English
    first. The organisers scored only the first `scored` lines, if it is given.
    """
    return [
        checked_pair(inputs, number, line.split("\t"), parse_score(scores, number, score))
        for number, line, score in read_side_by_side(inputs, scores, first=scored)
    ]


def read_jsts(path: Path) -> list[STSPair]:
    """Reads JSTS of JGLUE (Kurihara et al. 2022): an object per line, scores from 0 to 5."""
    rows = []
    for number, line in numbered_lines(path):
        try:
            row = msgspec.json.decode(line, type=dict[str, str | float | None])
            rows.append((number, [str(row[f"sentence{n}"]) for n in (1, 2)], str(row["label"])))
        except (ValueError, KeyError, RecursionError) as error:
            expected = "expected an object with sentence1, sentence2 and label"
            raise ValueError(f"{path}:{number}: {expected}, received {line[:80]!r}.") from error
    return scored_pairs(path, rows)


def read_korsts(path: Path) -> list[STSPair]:
    """Reads KorSTS (Ham et al. 2020): tab-separated with a header, no quoting."""
    rows, _ = read_columns(path, ("score", "sentence1", "sentence2"))
    return scored_pairs(path, ((number, sentences, score) for number, (score, *sentences) in rows))


def read_cnsd(path: Path) -> list[STSPair]:
    """Reads Chinese STS-B of CNSD: year and number, two sentences and a score, between `||`.

    Its scores are those of the STS Benchmark cut to whole numbers. The first field is not an id:
    pairs of different sources have the same numbers.
    """
    rows = ((number, line.split("||")) for number, line in numbered_lines(path))
    return scored_pairs(path, ((number, fields[1:-1], fields[-1]) for number, fields in rows))


def read_stsb_multi_mt(path: Path) -> list[STSPair]:
    """Reads stsb-multi-mt: two sentences and a score, comma-separated, quoted, no header."""
    rows = []
    for number, fields in records(path, file_format="csv"):
        if not isinstance(fields, list) or len(fields) != 3:
            expected = "expected 3 comma-separated fields"
            raise ValueError(f"{path}:{number}: {expected}, received {fields}.")
        rows.append((number, fields[:2], fields[2]))
    return scored_pairs(path, rows)


_BY_SA = "CC BY-SA 4.0"
_STS2017 = "SemEval-2017 task 1, https://alt.qcri.org/semeval2017/task1/index.php?id=data-and-tools"
_TRANSLATED = (
    "de German, en English, es Spanish, fr French, it Italian, ja Japanese, nl Dutch, pl Polish, "
    "pt Portuguese, ru Russian, zh Chinese"
)


def _task(
    name: str,
    title: str,
    languages: str,
    read_files: Callable[..., list[STSPair]],
    *sources: DataSource,
    group: str = "multilingual_sts",
) -> EvaluationTask:
    """Correlations over all pairs of a set.

    `languages` are the codes (ISO 639-1) of the first and of the second sentences; their order may
    differ from that in the name. `read_files` gets the path of each source.
    """

    def read(data: DataFolder) -> list[STSPair]:
        return read_files(*(data.find(source) for source in sources))

    def score(context: TaskContext, pairs: list[STSPair]) -> TaskResult:
        (found,) = evaluate_sts(context.embed, pairs)
        scores = {"spearman_all": found.spearman["all"], "pearson_all": found.pearson["all"]}
        counts, details = {"pairs": len(pairs)}, {"languages": languages.split()}
        return TaskResult("spearman_all", scores, counts, details)

    protocol = (
        "Correlation of the embeddings' cosine similarity with the gold scores over all pairs, "
        "nothing trained (m-ST5, sections 4.1 and 4.2)"
    )
    return EvaluationTask(name, group, title, protocol, score, read, sources)


def _track(name: str) -> Iterator[DataSource]:
    for place in (f"STS2017.eval.v1.1/STS.input.{name}.txt", f"STS2017.gs/STS.gs.{name}.txt"):
        yield DataSource(place, (place,), _STS2017, _BY_SA)


_YAHOO = "https://github.com/yahoojapan/JGLUE"
_KAKAO = "https://github.com/kakaobrain/KorNLUDatasets"
_STSB_MULTI_MT = "https://github.com/PhilipMay/stsb-multi-mt"
_JSTS = DataSource("JSTS valid", ("jsts-v1.3/valid-v1.3.json",), f"JGLUE 1.3, {_YAHOO}", _BY_SA)
_KORSTS = DataSource("KorSTS test", ("KorSTS/sts-test.tsv",), _KAKAO, _BY_SA)
_CNSD = DataSource(
    "Chinese STS-B test", ("cnsd-sts-test.txt",), "https://github.com/pluto-junzeng/CNSD"
)
# The organisers scored only the first half of track 6.
_read_track_6 = functools.partial(read_sts2017, scored=250)

TASKS = (
    _task("xsts_ar-ar", "XSTS ar-ar", "ar ar", read_sts2017, *_track("track1.ar-ar")),
    _task("xsts_ar-en", "XSTS ar-en", "en ar", read_sts2017, *_track("track2.ar-en")),
    _task("xsts_es-es", "XSTS es-es", "es es", read_sts2017, *_track("track3.es-es")),
    _task("xsts_es-en", "XSTS es-en", "es en", read_sts2017, *_track("track4a.es-en")),
    _task("xsts_es-en-wmt", "XSTS es-en WMT", "en es", read_sts2017, *_track("track4b.es-en")),
    _task("xsts_en-en", "XSTS en-en", "en en", read_sts2017, *_track("track5.en-en")),
    _task("xsts_tr-en", "XSTS tr-en", "en tr", _read_track_6, *_track("track6.tr-en")),
    _task("jsts", "JSTS", "ja ja", read_jsts, _JSTS),
    _task("korsts", "KorSTS", "ko ko", read_korsts, _KORSTS),
    _task("sts_zh", "Chinese STS-B (CNSD)", "zh zh", read_cnsd, _CNSD),
    *(
        _task(
            f"stsb_{code}{'' if part == 'test' else '_dev'}",
            f"STS-B {name}{'' if part == 'test' else ' dev'}",
            f"{code} {code}",
            read_stsb_multi_mt,
            DataSource(
                f"STSb Multi MT {code} {part}",
                (f"data/stsb-{code}-{part}.csv",),
                f"{_STSB_MULTI_MT} (the STS Benchmark translated by DeepL)",
                "that of the STS Benchmark",
            ),
            group="multilingual_sts" if part == "test" else "multilingual_sts_dev",
        )
        for part in ("test", "dev")
        for code, name in map(str.split, _TRANSLATED.split(", "))
    ),
)
