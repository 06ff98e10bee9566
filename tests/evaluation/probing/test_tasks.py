from __future__ import annotations

from use_st5.evaluation.probing.tasks import TASKS

FILES = {
    "probing_length": "sentence_length.txt",
    "probing_word_content": "word_content.txt",
    "probing_depth": "tree_depth.txt",
    "probing_top_constituents": "top_constituents.txt",
    "probing_bigram_shift": "bigram_shift.txt",
    "probing_tense": "past_present.txt",
    "probing_subject_number": "subj_number.txt",
    "probing_object_number": "obj_number.txt",
    "probing_odd_man_out": "odd_man_out.txt",
    "probing_coordination_inversion": "coordination_inversion.txt",
}


def test_files_are_those_of_senteval() -> None:
    plain = {task.name: task.file for task in TASKS if task.group == "probing"}
    assert plain == FILES
    grid = {task.name: task.file for task in TASKS if task.group == "probing_mlp"}
    assert grid == {f"{name}_mlp": file for name, file in FILES.items()}


def test_the_grid_is_that_group_s_alone() -> None:
    for task in TASKS:
        wanted = task.group == "probing_mlp" and task.file != "word_content.txt"
        assert task.options()["mlp_grid"] == wanted
