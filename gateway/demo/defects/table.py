"""Lists all defects by name."""

from collections.abc import Mapping
from typing import Final

from gateway.demo.defects.chunks import CHUNKS
from gateway.demo.defects.defect import Defect
from gateway.demo.defects.fields import IGNORED_FIELDS
from gateway.demo.defects.keys import KEYS
from gateway.demo.defects.models import MODELS
from gateway.demo.defects.refusals import REFUSALS
from gateway.demo.defects.replies import REPLIES
from gateway.demo.defects.responses import RESPONSES
from gateway.demo.defects.timing import TIMING

DEFECTS: Final[Mapping[str, Defect]] = {
    **KEYS,
    **MODELS,
    **RESPONSES,
    **CHUNKS,
    **TIMING,
    **REPLIES,
    **IGNORED_FIELDS,
    **REFUSALS,
}


def find_defect(name: str, wire: str) -> Defect:
    """Return the defect of this name. Raises ValueError if there is none, or if the wire does not have it."""
    known = [found for found, defect in DEFECTS.items() if wire in defect.wires]
    if name not in known:
        raise ValueError(f"the demo backend {wire!r} has no defect {name!r}; it has {', '.join(known)}")
    return DEFECTS[name]
