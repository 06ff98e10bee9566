"""SentEval's ten probing tasks: which properties of a sentence its embedding shows.

Conneau et al., "What you can cram into a single $&!#* vector" (ACL 2018); the file format is that
of facebookresearch/SentEval, data/probing/README.md.
"""

from use_st5.evaluation.probing.protocol import mlp_grid, probe
from use_st5.evaluation.probing.readers import ProbingSet, read_probing

__all__ = ["ProbingSet", "mlp_grid", "probe", "read_probing"]
