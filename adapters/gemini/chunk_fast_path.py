"""Reads a chunk that has nothing but one piece of text, as nearly every chunk of a response, without its full form."""

from typing import Final, Literal

import msgspec


class _Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    text: str


class _Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    parts: tuple[_Text]
    role: Literal["model"] = "model"


class _Candidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    content: _Content
    index: Literal[0] = 0


class PlainChunk(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A chunk with one candidate of one text. `usage_metadata` is still JSON."""

    candidates: tuple[_Candidate]
    usage_metadata: msgspec.Raw = msgspec.Raw()
    model_version: str = ""
    response_id: str = ""

    @property
    def text(self) -> str:
        """The text, which may be empty."""
        return self.candidates[0].content.parts[0].text


_decode: Final = msgspec.json.Decoder(PlainChunk).decode


def read_plain(data: bytes) -> PlainChunk | None:
    """Return the chunk. None: it has another form or is not valid, and must be read in full."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
