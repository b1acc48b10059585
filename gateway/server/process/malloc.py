"""Tells the C library's allocator to keep the memory of one request for the next one.

By default glibc returns what is freed at the end of its heap to the system at once. A request of a megabyte then takes
hundreds of pages anew, each with a fault and cleared by the kernel: up to a fifth of its time. (mallopt(3),
M_TRIM_THRESHOLD and M_MMAP_THRESHOLD.)
"""

import os
import sys
from typing import Final

# <malloc.h> of glibc.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8

# So many freed bytes stay at the end of the heap, and a piece of at least so many is returned as soon as it is freed.
KEPT: Final = 16 << 20
_PIECE: Final = 4 << 20


def keep_freed_memory() -> None:
    """Keeps up to `KEPT` freed bytes in this process, on glibc alone, and unless its environment says otherwise
    (`MALLOC_...`, `GLIBC_TUNABLES`). One heap serves all threads, of which only one runs at a time."""
    if sys.platform != "linux" or any(name.startswith(("MALLOC_", "GLIBC_")) for name in os.environ):
        return
    # Loaded for nothing else.
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    # musl has none.
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
        mallopt(_TRIM_THRESHOLD, KEPT)
        mallopt(_MMAP_THRESHOLD, _PIECE)
