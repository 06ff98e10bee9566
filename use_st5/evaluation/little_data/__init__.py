"""Transfer learning from little data: accuracy against the number of training examples."""

from use_st5.evaluation.little_data.protocol import CurvePoint, learning_curve

__all__ = ["CurvePoint", "learning_curve"]
