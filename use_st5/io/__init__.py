"""Local and remote files, records and progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from use_st5._public import public_names

if TYPE_CHECKING:
    from use_st5.io.files import atomic_path as atomic_path
    from use_st5.io.files import sole_writer as sole_writer

__getattr__, __dir__, __all__ = public_names(__name__)
