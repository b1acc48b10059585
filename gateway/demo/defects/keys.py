"""Lists the defects of a backend's check of its key."""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.demo.defects.defect import ALL_WIRES, Defect
from gateway.demo.player.key_check import key_checked


def _accepting(about: str, accepts: Callable[[str], bool]) -> Defect:
    return Defect(about, ALL_WIRES, serves=lambda handler, _: key_checked(handler, accepts))


KEYS: Final[Mapping[str, Defect]] = {
    "wrong_key_accepted": _accepting("it refuses a request without a key, and accepts any key", bool),
    "right_key_refused": _accepting("it refuses every key", lambda _: False),
}
