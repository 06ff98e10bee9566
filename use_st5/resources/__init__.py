"""What a text of a given length costs: compute time and memory (USE paper, Figure 2)."""

from use_st5.resources.measure import measure_resources
from use_st5.resources.resource_record import ResourceRecord

__all__ = ["ResourceRecord", "measure_resources"]
