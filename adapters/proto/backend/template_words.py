"""Defines the words of a request template that are no fields of a message."""

from typing import Final

MARK: Final = "$"
WITH: Final = "$with"
EACH: Final = "$each"
BY: Final = "by"
AS: Final = "as"
TOGETHER: Final = "together"
CASE: Final = "$case"
JSON: Final = "$json"
# Those that begin with the mark, and stand where a field could stand.
KEYS: Final = (WITH, EACH, CASE, JSON)
