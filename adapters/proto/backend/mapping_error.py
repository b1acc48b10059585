"""Describes a fault of a mapping: the place in the backend's entry, the fault, and the nearest name."""

import difflib
from collections.abc import Iterable

from gateway.core.errors import Correction, OptionError


def mapping_error(place: str, reason: str) -> OptionError:
    """Creates the error for one place of the entry, such as `read[0].text`."""
    error = OptionError(f"{place}: {reason}")
    error.place = place
    return error


def unknown_name(place: str, reason: str, name: str, known: Iterable[str]) -> OptionError:
    """Creates the error for a name that does not exist, with the most similar one, or all if none is similar."""
    names = list(known)
    similar = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if similar:
        error = mapping_error(place, f"{reason}; did you mean {similar[0]!r}?")
        error.correction = Correction(name, similar[0])
        return error
    return mapping_error(place, f"{reason}; there are {', '.join(map(repr, names))}" if names else reason)
