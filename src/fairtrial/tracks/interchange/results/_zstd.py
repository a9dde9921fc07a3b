"""Zstandard: part of Python from 3.14 on, an installed package before."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError, compress
else:
    from backports.zstd import ZstdDecompressor, ZstdError, compress

__all__ = ["ZstdDecompressor", "ZstdError", "compress"]
