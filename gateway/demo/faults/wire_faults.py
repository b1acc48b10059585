"""Builds the faults of one wire from its events."""

from collections.abc import Callable
from typing import Final, Generic

import msgspec

from gateway.core.conversation import Json
from gateway.demo.faults.editing import Options, around, begun, number
from gateway.demo.faults.fault import Answer, Fault, after
from gateway.demo.player.playback import Part, Response


def instead(about: str, kind: str, response: Response) -> Fault[object]:
    """Returns a fault that sends this response in place of any answer."""
    return Fault(about, kind, plays=lambda *_: response)


def status_fault(body: Callable[[int, str, Options], Json], **options: str) -> Fault[object]:
    """Returns a fault that sends an error status with the body for its code and its words."""

    def plays(_: object, options: Options) -> Response:
        code = int(options["code"])
        text = msgspec.json.encode(body(code, f"The demo backend was asked to answer {code}.", options))
        retry = {"retry-after": options["retry_after"]} if options["retry_after"] else {}
        return Response((text,), code, {"content-type": "application/json", **retry})

    return Fault("an error status", "500", options={"code": "500", "retry_after": "", **options}, plays=plays)


class WireFaults(Generic[Answer]):
    """Faults in the middle of an answer. `regular` builds the stream of an answer, and `text` an event of it."""

    def __init__(self, wire: str, regular: Callable[[Answer], Response], text: Callable[[Answer, str], bytes]) -> None:
        self._after = {"after": after(wire)}
        self._regular = regular
        self._text = text

    def inserted(self, about: str, kind: str, part: Callable[[Answer, Options], Part], **options: str) -> Fault[Answer]:
        """Returns a fault that sends a part between the events of the answer."""

        def plays(answer: Answer, options: Options) -> Response:
            return around(self._regular(answer), options, part(answer, options))

        return Fault(about, kind, options={**self._after, **options}, plays=plays)

    def ended(self, about: str, kind: str, part: Callable[[Answer, Options], Part], **options: str) -> Fault[Answer]:
        """Returns a fault that sends a part in place of the rest of the answer."""

        def plays(answer: Answer, options: Options) -> Response:
            return begun(self._regular(answer), options, part(answer, options))

        return Fault(about, kind, options={**self._after, **options}, plays=plays)

    def bad_utf8(self) -> Fault[Answer]:
        """Returns the fault of a byte in a text that is no UTF-8."""
        return self.inserted(
            "an event with a broken UTF-8 byte",
            "utf8",
            lambda answer, _: self._text(answer, "(?)").replace(b"(?)", b"(\xff)"),
        )

    def huge(self, kind: str) -> Fault[Answer]:
        """Returns the fault of an event that is larger than any limit."""
        return self.inserted(
            "one very large event", kind, lambda answer, options: self._text(answer, "x" * megabytes(options)), mb="8"
        )


_MOST_MB: Final = 1024


def megabytes(options: Options) -> int:
    """Returns the number of bytes that the option `mb` asks for. Raises ValueError for more than `_MOST_MB`."""
    return int(number(options, "mb", _MOST_MB) * 2**20)
