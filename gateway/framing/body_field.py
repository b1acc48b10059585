"""Defines how one field of a body is found while the body passes by, piece by piece."""

from typing import Protocol


class FieldFault(ValueError):
    """The body is not of its media type, or says two things about the field. The text names no content of it."""


class BodyField(Protocol):
    """Finds one field of a body that is fed to it. `value` is its text, None until it is found; `span` the place of the
    bytes that state it, counted from the beginning of the body."""

    value: str | None
    span: tuple[int, int]

    def feed(self, data: bytes) -> None:
        """Takes the next bytes, cut anywhere. Raises FieldFault."""
        ...

    def close(self) -> None:
        """Takes the end of the body. Raises FieldFault for a body that is not complete."""
        ...

    def encode(self, value: str) -> bytes:
        """Returns the bytes that state another value in place of those at `span`. Raises FieldFault for one that cannot
        stand there."""
        ...
