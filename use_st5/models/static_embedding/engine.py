"""StaticEmbedding without TensorFlow: a USE-DAN over pieces, which may have no dense layers."""

from use_st5.models.use_dan.engine import ENGINE

__all__ = ["ENGINE"]
