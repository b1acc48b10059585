"""Makes the streamed input of a call an object, which is all that clients can read."""

import msgspec

from gateway.core.call_arguments import as_object


class InputPieces:
    """Holds back the beginning of a call's arguments until they are known to be an object.

    While `is_object`, every further piece may be sent as it is. Arguments that are something else are sent at their end
    as an object that holds their text. An object that is not complete JSON stays as the model wrote it.
    """

    def __init__(self) -> None:
        self.is_object = False
        self._held: list[str] = []
        self._is_other = False

    def add(self, piece: str) -> str:
        """Returns what may be sent now."""
        if self.is_object:
            return piece
        self._held.append(piece)
        first = "" if self._is_other else piece.lstrip(" \t\r\n")[:1]
        if first == "{":
            self.is_object = True
            return self._taken()
        self._is_other = self._is_other or first != ""
        return ""

    def close(self) -> str:
        """Returns what is still to be sent: nothing for a call without arguments."""
        text = self._taken()
        return msgspec.json.encode(as_object(text)).decode() if text.strip() else ""

    def _taken(self) -> str:
        text = "".join(self._held)
        self._held.clear()
        return text
