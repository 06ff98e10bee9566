"""Where the English STS sets come from."""

from __future__ import annotations

from use_st5.evaluation.data_source import DataSource

_LICENCE = "scores CC BY-SA 4.0; each source of sentences has its own, see the set's readme"
_STSB_LICENCE = "scores CC BY-SA 4.0; each source of sentences has its own, see its LICENSE.txt"
# Year → the task, and the folder in its archive, which SentEval renames to STS{year}-en-test.
_SEMEVAL = {
    "12": ("SemEval-2012 task 6", "test-gold"),
    "13": ("the *SEM 2013 shared task", "test-gs"),
    "14": ("SemEval-2014 task 10", "sts-en-test-gs-2014"),
    "15": ("SemEval-2015 task 2", "test_evaluation_task2a"),
    "16": ("SemEval-2016 task 1", "sts2016-english-with-gs-v1.0"),
}


def _semeval(year: str) -> DataSource:
    task, archived = _SEMEVAL[year]
    folders = (f"STS{year}-en-test", f"STS{year}", archived)
    return DataSource(
        f"STS{year}",
        tuple(f"{folder}/STS*.txt" for folder in folders),
        f"{task}: its test data with gold scores, http://ixa2.si.ehu.eus/stswiki, or "
        "SentEval's data/downstream/get_transfer_data.bash",
        _LICENCE,
    )


def _stsb(part: str) -> DataSource:
    return DataSource(
        f"STS-B {part}",
        (f"stsbenchmark/sts-{part}.csv", f"STSBenchmark/sts-{part}.csv"),
        "the STS Benchmark of SemEval-2017 task 1, http://ixa2.si.ehu.eus/stswiki (the original, "
        "with seven tab-separated columns; GLUE's copy has others)",
        _STSB_LICENCE,
    )


STS12, STS13, STS14, STS15, STS16 = map(_semeval, _SEMEVAL)
STSB_TRAIN, STSB_DEV, STSB_TEST = map(_stsb, ("train", "dev", "test"))
SICK_TEST = DataSource(
    "SICK-R test",
    ("sick2014/SICK_test_annotated.txt", "SICK/SICK_test_annotated.txt"),
    "SemEval-2014 task 1, http://marcobaroni.org/composes/sick.html",
    "CC BY-NC-SA 3.0",
)
