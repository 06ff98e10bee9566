"""Semantic textual similarity in and across other languages: the sets in their own formats.

They are pairs as those of `use_st5.evaluation.sts`, and scored by its protocol.
"""

from use_st5.evaluation.multilingual_sts.readers import (
    read_cnsd,
    read_jsts,
    read_korsts,
    read_sts2017,
    read_stsb_multi_mt,
)

__all__ = ["read_cnsd", "read_jsts", "read_korsts", "read_sts2017", "read_stsb_multi_mt"]
