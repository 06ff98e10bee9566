"""SentEval's ten probing tasks: which properties of a sentence its embedding shows.

Conneau et al., "What you can cram into a single $&!#* vector" (ACL 2018); the file format is that
of facebookresearch/SentEval, data/probing/README.md.
"""

from __future__ import annotations

from pathlib import Path

from use_st5.data.data_folder import DataSource
from use_st5.evaluation._text_files import numbered_lines, split_fields
from use_st5.evaluation.classifiers import LabelledFeatures
from use_st5.evaluation.labelled_texts import LabelledTexts, labelled_texts
from use_st5.evaluation.senteval_classifier import SentEvalClassifier
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

_CODES = {"tr": "train", "va": "dev", "te": "test"}


def read_probing(path: str | Path) -> dict[str, LabelledTexts]:
    """Reads a file of `data/probing/`: part (tr, va or te), class, …, sentence, between tabs.

    Fields between the second and the last one are ignored, as the format allows more of them. The
    classes of the training part are numbered in alphabetical order. The parts of the result are
    "train", "dev" and "test".
    """
    path = Path(path)
    entries: dict[str, list[tuple[int, str, str]]] = {code: [] for code in _CODES}
    for number, line in numbered_lines(path):
        code, label, *_, sentence = split_fields(path, number, line, at_least=3)
        if code not in entries:
            raise ValueError(f"{path}:{number}: expected tr, va or te first, received {code!r}.")
        entries[code].append((number, label, sentence.strip()))
    if empty := [code for code, rows in entries.items() if not rows]:
        raise ValueError(f"{path}: expected lines of tr, va and te, found none of {empty}.")
    classes = sorted({label for _, label, _ in entries["tr"]})
    if len(classes) < 2:
        raise ValueError(f"{path}: expected two classes or more to train on, found {classes}.")
    numbers = {label: number for number, label in enumerate(classes)}
    for number, label, _ in (*entries["va"], *entries["te"]):
        if label not in numbers:
            raise ValueError(
                f"{path}:{number}: expected a class of the training part (tr), received {label!r}."
            )
    return {
        part: labelled_texts(path, [(numbers[label], [text]) for _, label, text in entries[code]])
        for code, part in _CODES.items()
    }


def _score(context: TaskContext, data: dict[str, LabelledTexts]) -> TaskResult:
    classifier = SentEvalClassifier(seed=context.seed)
    parts = {
        part: LabelledFeatures(texts.embedded(context.embed)[0], texts.labels)
        for part, texts in data.items()
    }
    result = classifier.split(**parts)
    return TaskResult(
        "accuracy",
        {"accuracy": result.test_accuracy, "dev_accuracy": result.dev_accuracy},
        {"classes": int(data["train"].labels.max()) + 1}
        | {part: len(texts) for part, texts in data.items()},
        {"l2": result.regularization[0], "classifier": classifier.options()},
    )


def probing_task(name: str, title: str, file: str) -> EvaluationTask:
    """A probing task with the paper's title, of a file in SentEval's `data/probing/`."""
    source = DataSource(
        f"SentEval probing {file}",
        (f"probing/{file}", file),
        f"https://github.com/facebookresearch/SentEval, data/probing/{file}",
    )
    return EvaluationTask(
        name,
        "probing",
        title,
        "test accuracy of SentEval's classifier, logistic regression, on frozen embeddings; the "
        "dev part chooses the L2 factor and when to stop (senteval/probing.py; Conneau et al. "
        "2018)",
        score=_score,
        reader=lambda data: read_probing(data.find(source)),
        sources=(source,),
        # There is no grid of hidden layers; all earlier records say so, too.
        options={"mlp_grid": False, **SentEvalClassifier().settings()},
    )


_FILES = (
    ("probing_length", "SentLen", "sentence_length.txt"),
    ("probing_word_content", "WC", "word_content.txt"),
    ("probing_depth", "TreeDepth", "tree_depth.txt"),
    ("probing_top_constituents", "TopConst", "top_constituents.txt"),
    ("probing_bigram_shift", "BShift", "bigram_shift.txt"),
    ("probing_tense", "Tense", "past_present.txt"),
    ("probing_subject_number", "SubjNum", "subj_number.txt"),
    ("probing_object_number", "ObjNum", "obj_number.txt"),
    ("probing_odd_man_out", "SOMO", "odd_man_out.txt"),
    ("probing_coordination_inversion", "CoordInv", "coordination_inversion.txt"),
)

TASKS = tuple(probing_task(*file) for file in _FILES)
