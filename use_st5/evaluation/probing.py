"""SentEval's ten probing tasks: which properties of a sentence its embedding shows.

Conneau et al., "What you can cram into a single $&!#* vector" (ACL 2018); the file format is that
of facebookresearch/SentEval, data/probing/README.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from use_st5.data.data_folder import DataSource
from use_st5.evaluation._text_files import numbered_lines, split_fields
from use_st5.evaluation.classifiers import Classification, Classifier, LabelledFeatures, split
from use_st5.evaluation.labelled_texts import LabelledTexts, labelled_texts
from use_st5.evaluation.senteval_classifier import SentEvalClassifier
from use_st5.evaluation.task import EvaluationTask, Progress, TaskContext, TaskResult
from use_st5.vector_store import Encode, as_cache

_CODES = {"tr": "train", "va": "dev", "te": "test"}
# Its thousand classes are left to logistic regression, as in SentEval.
_LINEAR_ONLY = "word_content.txt"


def read_probing(path: str | Path) -> dict[str, LabelledTexts]:
    """Reads a file of `data/probing/`: part (tr, va or te), class, …, sentence, between tabs.

    Fields between the second and the last one are ignored, as the format allows more of them. The
    classes of the training part are numbered in alphabetical order.

    Returns:
        The parts "train", "dev" and "test".

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line has fewer than three fields, an unknown part, or a class that the
            training part has not; a part is empty; there is one class alone.
    """
    path = Path(path)
    found: dict[str, list[tuple[int, str, str]]] = {code: [] for code in _CODES}
    for number, line in numbered_lines(path):
        code, label, *_, sentence = split_fields(path, number, line, at_least=3)
        if code not in found:
            raise ValueError(f"{path}:{number}: expected tr, va or te first, received {code!r}.")
        found[code].append((number, label, sentence.strip()))
    if empty := [code for code, rows in found.items() if not rows]:
        raise ValueError(f"{path}: expected lines of tr, va and te, found none of {empty}.")
    classes = sorted({label for _, label, _ in found["tr"]})
    if len(classes) < 2:
        raise ValueError(f"{path}: expected two classes or more to train on, found {classes}.")
    numbers = {label: number for number, label in enumerate(classes)}
    for number, label, _ in (*found["va"], *found["te"]):
        if label not in numbers:
            raise ValueError(
                f"{path}:{number}: expected a class of the training part (tr), received {label!r}."
            )
    return {
        part: labelled_texts(path, [(numbers[label], [text]) for _, label, text in found[code]])
        for code, part in _CODES.items()
    }


def mlp_grid(classifier: SentEvalClassifier) -> list[SentEvalClassifier]:
    """The classifiers that the dev part chooses among in the paper.

    One hidden layer with sigmoid, 50, 100 or 200 units, dropout 0, 0.1 or 0.2 (Conneau et al.
    2018, section 4; SentEval's README).
    """
    return [
        dataclasses.replace(classifier, hidden_dim=units, dropout=rate)
        for units in (50, 100, 200)
        for rate in (0.0, 0.1, 0.2)
    ]


def probe(
    encode: Encode,
    data: dict[str, LabelledTexts],
    *,
    classifiers: Iterable[Classifier] = (SentEvalClassifier(),),
    progress: Progress | None = None,
) -> tuple[Classifier, Classification]:
    """Trains classifiers on embeddings; that with the best dev accuracy counts.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`.
        data: "train", "dev" and "test". The dev part chooses the regularisation of each classifier.
        classifiers: Among what the dev part chooses; the first of equals.
        progress: Shows how far each training is.

    Returns:
        The chosen classifier and what it reached.

    Raises:
        ValueError: No classifiers, or the encoder gives something unusable.
    """
    embed = as_cache(encode)
    parts = {
        part: LabelledFeatures(texts.embedded(embed)[0], texts.labels)
        for part, texts in data.items()
    }
    found = [(each, split(each, **parts, progress=progress)) for each in classifiers]
    if not found:
        raise ValueError("classifiers: expected at least one, received none.")
    return max(found, key=lambda pair: pair[1].dev_accuracy)


def probing_task(name: str, title: str, file: str, *, mlp: bool = False) -> EvaluationTask:
    """A probing task.

    Args:
        name: "probing_…".
        title: The paper's name of it.
        file: The file in SentEval's `data/probing/`.
        mlp: The paper's grid of classifiers with a hidden layer in place of logistic regression.
    """
    grid = mlp and file != _LINEAR_ONLY
    kind = (
        "a hidden layer (50, 100 or 200 units, dropout 0, 0.1 or 0.2, chosen on the dev part)"
        if grid
        else "logistic regression"
    )
    source = DataSource(
        f"SentEval probing {file}",
        (f"probing/{file}", file),
        f"https://github.com/facebookresearch/SentEval, data/probing/{file}",
    )

    def score(context: TaskContext, data: dict[str, LabelledTexts]) -> TaskResult:
        plain = SentEvalClassifier(seed=context.seed)
        chosen, found = probe(
            context.embed,
            data,
            classifiers=mlp_grid(plain) if grid else [plain],
            progress=context.progress,
        )
        return TaskResult(
            "accuracy",
            {"accuracy": found.test_accuracy, "dev_accuracy": found.dev_accuracy},
            {"classes": int(data["train"].labels.max()) + 1}
            | {part: len(texts) for part, texts in data.items()},
            {"l2": found.regularization[0], "classifier": chosen.options()},
        )

    return EvaluationTask(
        f"{name}_mlp" if mlp else name,
        "probing_mlp" if mlp else "probing",
        title,
        f"test accuracy of SentEval's classifier, {kind}, on frozen embeddings; the dev part "
        "chooses the L2 factor and when to stop (senteval/probing.py; Conneau et al. 2018)",
        score=score,
        reader=lambda data: read_probing(data.find(source)),
        sources=(source,),
        options={"mlp_grid": grid, **SentEvalClassifier().settings()},
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

TASKS = tuple(probing_task(*file, mlp=mlp) for mlp in (False, True) for file in _FILES)
