"""How embeddings lie on the unit sphere: alignment and uniformity."""

from use_st5.evaluation.geometry.geometry_score import GeometryScore
from use_st5.evaluation.geometry.protocol import alignment, evaluate_geometry, uniformity

__all__ = ["GeometryScore", "alignment", "evaluate_geometry", "uniformity"]
