"""The Gemini dialect: decodes generateContent requests, and encodes events as server-sent events or as JSON."""

from typing import Final

# The tag of its sources.
DIALECT: Final = "gemini"
# The provider whose opaque state its clients hold.
PROVIDER: Final = "google"
# The field of a source that has the contents of a turn, where they are several.
CONTENTS: Final = "contents"
