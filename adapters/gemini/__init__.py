"""Google's generateContent: its clients, its backends, and what both sides of this API share."""

from typing import TYPE_CHECKING, Final

from gateway.moved import moved_name

# The tag of its sources.
DIALECT: Final = "gemini"
# The provider whose opaque state its clients hold.
PROVIDER: Final = "google"
# The field of a source that has the contents of a turn, where they are several.
CONTENTS: Final = "contents"

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return moved_name(__name__, name)
