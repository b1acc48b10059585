"""Separates the model's thought from its text, piece by piece.

Reasoning models write their thoughts before the response, between tags. Later tags belong to the text itself, because
a response may discuss them.
"""

import re
from typing import Final

TAGS: Final = {"<think>": "</think>", "<thinking>": "</thinking>", "[THINK]": "[/THINK]"}

# After more blanks or thoughts than these, a response begins without another thought.
_BLANKS: Final = 64
_THOUGHTS: Final = 16


class Thought:
    """Parses the beginning of one response. `over` becomes true with the first character of the text.

    `expected`: the prompt has opened the thought, so that only its end may arrive. Blanks around the tags belong to the
    tags. The parser holds back only what may become a tag, and the blanks before one.
    """

    def __init__(self, expected: bool) -> None:
        self.expected = expected
        self.over = False
        self._held = ""
        self._closers: tuple[str, ...] = ()
        self._begins = False
        self._thoughts = 0

    @property
    def inside(self) -> bool:
        """Whether a thought has begun and not ended."""
        return bool(self._closers)

    def feed(self, text: str) -> tuple[str, str]:
        """Returns the additions of the next piece to the thought and to the text."""
        text, self._held = self._held + text, ""
        thoughts: list[str] = []
        while text and not self.over:
            if self._closers:
                thought, text = self._think(text)
                thoughts.append(thought)
            else:
                text = self._open(text)
        return "".join(thoughts), text

    def close(self) -> tuple[str, str]:
        """Returns the same for the part that was held when the text ended."""
        held, self._held = self._held, ""
        return (held, "") if self._closers else ("", held)

    def _open(self, text: str) -> str:
        """Returns the text behind the tag that opens a thought. Without a tag, the text begins, or the expected
        thought."""
        stripped = text.lstrip()
        if len(text) - len(stripped) <= _BLANKS and self._thoughts < _THOUGHTS:
            for opener, closer in TAGS.items():
                if stripped.startswith(opener):
                    self._begin((closer,))
                    return stripped.removeprefix(opener)
            if any(opener.startswith(stripped) for opener in TAGS):
                self._held = stripped if self._thoughts else text
                return ""
        if self.expected:
            self._begin(tuple(TAGS.values()))
        else:
            self.over = True
        return stripped if self.inside or self._thoughts else text

    def _begin(self, closers: tuple[str, ...]) -> None:
        self._closers, self._begins, self.expected = closers, True, False

    def _think(self, text: str) -> tuple[str, str]:
        """Returns the thought in the text, and what follows its end."""
        if self._begins:
            text = text.lstrip()
            self._begins = not text
        found = re.search("|".join(map(re.escape, self._closers)), text)
        if found is None:
            certain = _certain(text, self._closers)
            self._held = text[certain:]
            return text[:certain], ""
        self._closers, self._thoughts = (), self._thoughts + 1
        return text[: found.start()], text[found.end() :]


def _certain(text: str, closers: tuple[str, ...]) -> int:
    """Returns the index from which the text may continue as one of these tags, or the length of the text."""
    longest = max(map(len, closers))
    for begin in range(max(0, len(text) - longest + 1), len(text)):
        if any(closer.startswith(text[begin:]) for closer in closers):
            return begin
    return len(text)
