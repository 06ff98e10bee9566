"""The tasks of the group "multilingual_sts"."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation.multilingual_sts.readers import (
    read_cnsd,
    read_jsts,
    read_korsts,
    read_sts2017,
    read_stsb_multi_mt,
)
from use_st5.evaluation.report.published_rows import MULTILINGUAL
from use_st5.evaluation.report.score_table import ScoreGroup
from use_st5.evaluation.report.sections import GroupSection
from use_st5.evaluation.sts import STSPair, evaluate_sts
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult


@dataclass(frozen=True)
class MultilingualSTSTask(EvaluationTask):
    """Correlations over all pairs of a set.

    Attributes:
        name: What `--tasks` takes.
        title: For people.
        languages: Codes (ISO 639-1) of the languages of the first and of the second sentences.
        read_files: The files of `sources`, in their order → pairs.
        sources: One file each.
    """

    name: str
    title: str
    languages: tuple[str, str]
    read_files: Callable[..., list[STSPair]]
    sources: tuple[DataSource, ...]

    group = "multilingual_sts"
    protocol = (
        "Correlation of the embeddings' cosine similarity with the gold scores over all pairs, "
        "nothing trained (m-ST5, sections 4.1 and 4.2)"
    )

    def read(self, data: DataFolder) -> list[STSPair]:
        """The pairs."""
        return self.read_files(*(data.find(source) for source in self.sources))

    def run(self, context: TaskContext) -> TaskResult:
        """Scores the encoder."""
        pairs = self.read(context.data)
        (score,) = evaluate_sts(context.embed, pairs)
        return TaskResult(
            main="spearman_all",
            scores={"spearman_all": score.spearman["all"], "pearson_all": score.pearson["all"]},
            counts={"pairs": score.pairs},
            details={"languages": list(self.languages)},
        )


_BY_SA = "CC BY-SA 4.0"
_STS2017 = "SemEval-2017 task 1, https://alt.qcri.org/semeval2017/task1/index.php?id=data-and-tools"
_JSTS = DataSource(
    "JSTS valid",
    ("jsts-v1.3/valid-v1.3.json",),
    "JGLUE 1.3, https://github.com/yahoojapan/JGLUE",
    _BY_SA,
)
_KORSTS = DataSource(
    "KorSTS test",
    ("KorSTS/sts-test.tsv",),
    "https://github.com/kakaobrain/KorNLUDatasets",
    _BY_SA,
)
_CNSD = DataSource(
    "Chinese STS-B test",
    ("cnsd-sts-test.txt",),
    "https://github.com/pluto-junzeng/CNSD",
)
_STSB_LANGUAGES = {
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "ja": "Japanese",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "zh": "Chinese",
}


def _xsts(
    track: str, pair: str, languages: tuple[str, str], *, wmt: bool = False
) -> MultilingualSTSTask:
    """A track; `languages` are those of its columns, whatever its name says."""
    name = f"track{track}.{pair}.txt"
    places = (f"STS2017.eval.v1.1/STS.input.{name}", f"STS2017.gs/STS.gs.{name}")
    return MultilingualSTSTask(
        name=f"xsts_{pair}{'-wmt' if wmt else ''}",
        title=f"XSTS {pair}{' WMT' if wmt else ''}",
        languages=languages,
        # Of track 6 the first half alone was scored.
        read_files=functools.partial(read_sts2017, scored=250) if track == "6" else read_sts2017,
        sources=tuple(DataSource(place, (place,), _STS2017, _BY_SA) for place in places),
    )


def _stsb(language: str, name: str) -> MultilingualSTSTask:
    source = DataSource(
        f"STSb Multi MT {language} test",
        (f"data/stsb-{language}-test.csv",),
        "https://github.com/PhilipMay/stsb-multi-mt (the STS Benchmark translated by DeepL)",
        "that of the STS Benchmark",
    )
    return MultilingualSTSTask(
        f"stsb_{language}", f"STS-B {name}", (language, language), read_stsb_multi_mt, (source,)
    )


TASKS = (
    _xsts("1", "ar-ar", ("ar", "ar")),
    _xsts("2", "ar-en", ("en", "ar")),
    _xsts("3", "es-es", ("es", "es")),
    _xsts("4a", "es-en", ("es", "en")),
    _xsts("4b", "es-en", ("en", "es"), wmt=True),
    _xsts("5", "en-en", ("en", "en")),
    _xsts("6", "tr-en", ("en", "tr")),
    MultilingualSTSTask("jsts", "JSTS", ("ja", "ja"), read_jsts, (_JSTS,)),
    MultilingualSTSTask("korsts", "KorSTS", ("ko", "ko"), read_korsts, (_KORSTS,)),
    MultilingualSTSTask("sts_zh", "Chinese STS-B (CNSD)", ("zh", "zh"), read_cnsd, (_CNSD,)),
    *(_stsb(language, name) for language, name in _STSB_LANGUAGES.items()),
)


# The tracks of the paper that averages them, and the others.
_XSTS = ("xsts_ar-ar", "xsts_ar-en", "xsts_es-es", "xsts_es-en", "xsts_tr-en")
_TRACKS = (*_XSTS, "xsts_es-en-wmt", "xsts_en-en")
_MONOLINGUAL = ("jsts", "korsts", "sts_zh")

SECTIONS = (
    GroupSection(
        "multilingual_sts",
        "Similarity in other languages",
        "Semantic textual similarity within and across languages.",
        scores=(
            ScoreGroup(
                "multilingual_sts",
                order=_TRACKS,
                average=_XSTS,
                only=True,
                title="Across languages (XSTS)",
                benchmarks=("xsts",),
                featured=MULTILINGUAL,
                overview="XSTS",
            ),
            ScoreGroup(
                "multilingual_sts",
                order=_MONOLINGUAL,
                only=True,
                title="Within one language",
                benchmarks=("monolingual_sts",),
                featured=MULTILINGUAL,
            ),
            ScoreGroup(
                "multilingual_sts",
                apart=(*_TRACKS, *_MONOLINGUAL),
                title="The translated STS Benchmark",
            ),
        ),
    ),
)
