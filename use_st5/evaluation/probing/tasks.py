"""SentEval's ten probing tasks, in the order of the paper."""

from __future__ import annotations

from use_st5.evaluation.probing.probing_task import ProbingTask

TASKS = (
    ProbingTask("probing_length", "SentLen", "sentence_length.txt"),
    ProbingTask("probing_word_content", "WC", "word_content.txt"),
    ProbingTask("probing_depth", "TreeDepth", "tree_depth.txt"),
    ProbingTask("probing_top_constituents", "TopConst", "top_constituents.txt"),
    ProbingTask("probing_bigram_shift", "BShift", "bigram_shift.txt"),
    ProbingTask("probing_tense", "Tense", "past_present.txt"),
    ProbingTask("probing_subject_number", "SubjNum", "subj_number.txt"),
    ProbingTask("probing_object_number", "ObjNum", "obj_number.txt"),
    ProbingTask("probing_odd_man_out", "SOMO", "odd_man_out.txt"),
    ProbingTask("probing_coordination_inversion", "CoordInv", "coordination_inversion.txt"),
)
