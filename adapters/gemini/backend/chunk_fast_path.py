# fast path: "CPU/chunk, us", decodes a chunk with one piece of text into its types in one step
# budget: "gemini chunk"
# law: tests/adapters/gemini/backend/test_chunk_fast_path.py
#      test_a_chunk_means_what_it_means_when_read_in_full
"""Decodes the chunks that carry one piece of text and the token counts so far, and nothing else.

Nearly every chunk of a stream is one of them. The types list the fields that it may have, those of the counts too, so
that nothing is skipped unread; a chunk with any other field is read in full. A client of the same dialect gets each of
the fields as it was written, and none that was not.
"""

from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from gateway.core.conversation import Json


class _Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    text: Annotated[str, msgspec.Meta(min_length=1)]


class _Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    parts: tuple[_Text]
    role: Literal["model"] = "model"


class _Candidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    content: _Content
    index: Literal[0] = 0


class _ModalityCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    modality: str
    token_count: int


class PlainUsage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel", gc=False):
    """The counts that the API sends in every chunk."""

    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    total_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None
    prompt_tokens_details: tuple[_ModalityCount, ...] | msgspec.UnsetType = msgspec.UNSET


class PlainChunk(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """A chunk with one candidate of one text, which is not empty."""

    candidates: tuple[_Candidate]
    usage_metadata: PlainUsage | None = None
    model_version: str = ""
    response_id: str = ""

    @property
    def text(self) -> str:
        return self.candidates[0].content.parts[0].text


_decode: Final = msgspec.json.Decoder(PlainChunk).decode


class _OwnContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    parts: tuple[_Text]
    role: str | msgspec.UnsetType = msgspec.UNSET


class _OwnCandidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    content: _OwnContent
    index: Literal[0] | msgspec.UnsetType = msgspec.UNSET


class _OwnUsage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    prompt_token_count: int | msgspec.UnsetType = msgspec.UNSET
    candidates_token_count: int | msgspec.UnsetType = msgspec.UNSET
    total_token_count: int | msgspec.UnsetType = msgspec.UNSET
    thoughts_token_count: int | msgspec.UnsetType = msgspec.UNSET
    cached_content_token_count: int | msgspec.UnsetType = msgspec.UNSET
    prompt_tokens_details: list[_ModalityCount] | msgspec.UnsetType = msgspec.UNSET
    candidates_tokens_details: list[_ModalityCount] | msgspec.UnsetType = msgspec.UNSET
    traffic_type: str | msgspec.UnsetType = msgspec.UNSET
    service_tier: str | msgspec.UnsetType = msgspec.UNSET


class _OwnChunk(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    candidates: tuple[_OwnCandidate]
    usage_metadata: _OwnUsage | msgspec.UnsetType = msgspec.UNSET
    model_version: str | msgspec.UnsetType = msgspec.UNSET
    response_id: str | msgspec.UnsetType = msgspec.UNSET
    create_time: str | msgspec.UnsetType = msgspec.UNSET


_decode_own: Final = msgspec.json.Decoder(_OwnChunk).decode


class OwnChunk(NamedTuple):
    """The fields of a chunk without its part, and the text of the part."""

    fields: dict[str, Json]
    text: str


def read_own(data: bytes) -> OwnChunk | None:
    """Returns the chunk for a client of the same dialect. None as in `read_plain`."""
    try:
        chunk = _decode_own(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    fields = msgspec.to_builtins(chunk)
    (candidate,) = fields["candidates"]
    candidate["content"]["parts"] = []
    fields["candidates"] = [candidate]
    return OwnChunk(fields, chunk.candidates[0].content.parts[0].text)


def read_plain(data: bytes) -> PlainChunk | None:
    """Returns the chunk. None: the bytes are another chunk or are not valid, and must be read in full."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
