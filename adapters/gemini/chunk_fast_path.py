# fast path: "CPU/chunk, us", decodes a chunk with one piece of text into its types in one step
# budget: "gemini chunk"
# law: tests/adapters/gemini/test_chunk_fast_path.py::test_a_chunk_means_what_it_means_when_read_in_full
"""Decodes the chunks that carry one piece of text and the token counts so far, and nothing else.

Nearly every chunk of a stream is one of them. The types list the fields that it may have, those of the counts too, so
that nothing is skipped unread; a chunk with any other field is read in full. So is each chunk for a client of the same
dialect, who gets it as it was written.
"""

from typing import Annotated, Final, Literal

import msgspec


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


def read_plain(data: bytes) -> PlainChunk | None:
    """Return the chunk. None: the bytes are another chunk or are not valid, and must be read in full."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
