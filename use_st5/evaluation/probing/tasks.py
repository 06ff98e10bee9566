"""SentEval's ten probing tasks, in the order of the paper, with each of its two classifiers."""

from __future__ import annotations

from use_st5.evaluation.probing.probing_task import ProbingTask

_FILES = {
    "length": ("SentLen", "sentence_length.txt"),
    "word_content": ("WC", "word_content.txt"),
    "depth": ("TreeDepth", "tree_depth.txt"),
    "top_constituents": ("TopConst", "top_constituents.txt"),
    "bigram_shift": ("BShift", "bigram_shift.txt"),
    "tense": ("Tense", "past_present.txt"),
    "subject_number": ("SubjNum", "subj_number.txt"),
    "object_number": ("ObjNum", "obj_number.txt"),
    "odd_man_out": ("SOMO", "odd_man_out.txt"),
    "coordination_inversion": ("CoordInv", "coordination_inversion.txt"),
}

_LINEAR = tuple(
    ProbingTask(f"probing_{name}", "probing", title, file) for name, (title, file) in _FILES.items()
)
_MLP = tuple(
    ProbingTask(f"{task.name}_mlp", "probing_mlp", task.title, task.file, mlp=True)
    for task in _LINEAR
)

TASKS = _LINEAR + _MLP
