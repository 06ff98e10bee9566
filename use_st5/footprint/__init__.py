"""What a text of a given length costs: compute time and memory (USE paper, Figure 2)."""

from use_st5.footprint.measure import measure_footprint
from use_st5.footprint.record import FootprintRecord

__all__ = ["FootprintRecord", "measure_footprint"]
