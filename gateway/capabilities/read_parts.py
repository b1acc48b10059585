"""Finds the images and PDFs that are read for a model which takes none itself, and puts text in their place.

What another model or a program says of a part stands between marks, so that nobody takes it for the user's words, and
no text in it can end them. The same bytes give the same text at every place and in every request that knows it.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from gateway.adapter import Capabilities
from gateway.capabilities.unsupported_content import lack_of
from gateway.core.conversation import Conversation, File, Image, Role, Text, ToolResult, Turn
from gateway.core.data_url import DataUrl, held_data, is_data_url
from gateway.core.model_facts import ModelFacts
from gateway.core.notices import Notice
from gateway.core.policy import Policy

PDF: Final = "application/pdf"
IMAGE_MARK: Final = "image_description"
DOCUMENT_MARK: Final = "document_text"
# The brackets that a model may read as those of a mark, whatever blanks and invisible characters follow. None of these
# is looked at twice: the text of a PDF may be nothing but blanks.
_BLANKS: Final = "[\\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*+"
_BRACKET: Final = re.compile(
    f"[<\uff1c\ufe64](?={_BLANKS}[/\uff0f]?{_BLANKS}(?:{IMAGE_MARK}|{DOCUMENT_MARK}))", re.IGNORECASE
)
_UNFIT: Final = re.compile(r"""[^\w .()+,\-]""")
_LONGEST_NAME: Final = 80

PartKind: TypeAlias = Literal["image", "document"]


class Place(NamedTuple):
    """Where a part stands: the positions of its turn, of its block there, and in a result (-1: it is the block)."""

    turn: int
    block: int
    inner: int = -1


class ReadPart(msgspec.Struct, frozen=True):
    """A part to be read. `data` is what its `data:` URL holds (None: it cannot be decoded), `index` the message's
    position in the client's request, and `name` that of the file."""

    kind: PartKind
    place: Place
    data: DataUrl | None
    index: int | None
    name: str = ""


def parts_to_read(
    conversation: Conversation, capabilities: Capabilities, policy: Policy, facts: ModelFacts
) -> list[ReadPart]:
    """Returns the parts that the policy has read because their backend or model does not take them, in order. A URL
    other than `data:` is never read."""
    passes = conversation.dialect == capabilities.passthrough
    found: list[ReadPart] = []
    for at, turn in enumerate(conversation.turns):
        for block_at, block in enumerate(turn.blocks):
            held = enumerate(block.content) if isinstance(block, ToolResult) else ((-1, block),)
            for inner, part in held:
                if not isinstance(part, Image | File) or not is_data_url(part.url):
                    continue
                kind = _kind(part, policy)
                if kind is None or _takes(part, turn.role, capabilities, policy, facts, passes=passes):
                    continue
                name = part.name if isinstance(part, File) else ""
                found.append(ReadPart(kind, Place(at, block_at, inner), held_data(part.url), turn.index, name))
    return found


def _kind(part: Image | File, policy: Policy) -> PartKind | None:
    if isinstance(part, Image):
        return "image" if policy.images == "describe" else None
    if policy.documents != "text":
        return None
    head = part.url[: len("data:") + len(PDF)]
    return "document" if head.lower() == f"data:{PDF}" else None


def _takes(
    part: Image | File, role: Role, capabilities: Capabilities, policy: Policy, facts: ModelFacts, *, passes: bool
) -> bool:
    """Returns whether the part reaches a model that reads it. A backend that receives every field receives every
    part, whatever its model makes of it."""
    if (facts.images if isinstance(part, Image) else facts.files) is False:
        return False
    if passes:
        return True
    profile = policy.profile
    if role == "tool" and profile.tool_turns == "text":
        role = "user"
    elif role == "tool" and not capabilities.result_media and profile.result_media != "keep":
        if profile.result_media == "placeholder":
            return False
        role = "user"
    return lack_of(part, role, capabilities, profile) is None


def with_texts(conversation: Conversation, texts: Mapping[Place, str]) -> Conversation:
    """Returns the conversation with texts in the place of these parts."""
    turns = list(conversation.turns)
    for at in {place.turn for place in texts}:
        turns[at] = _with_texts(turns[at], at, texts)
    return msgspec.structs.replace(conversation, turns=tuple(turns))


def _with_texts(turn: Turn, at: int, texts: Mapping[Place, str]) -> Turn:
    blocks = list(turn.blocks)
    for block_at, block in enumerate(blocks):
        if isinstance(block, ToolResult):
            content = [
                Text(texts[place]) if (place := Place(at, block_at, inner)) in texts else part
                for inner, part in enumerate(block.content)
            ]
            blocks[block_at] = msgspec.structs.replace(block, content=tuple(content))
        elif (place := Place(at, block_at)) in texts:
            blocks[block_at] = Text(texts[place])
    return turn.changed(*blocks)


def described(text: str) -> str:
    """Returns a description of an image as it stands in its place."""
    return f"<{IMAGE_MARK}>\n{_escaped(text)}\n</{IMAGE_MARK}>"


def document_text(text: str, pages: int, name: str = "") -> str:
    """Returns the text of a document as it stands in its place."""
    shown = _UNFIT.sub("_", name)[:_LONGEST_NAME]
    named = f' name="{shown}"' if shown else ""
    return f'<{DOCUMENT_MARK}{named} pages="{pages}">\n{_escaped(text)}\n</{DOCUMENT_MARK}>'


def would_read(part: ReadPart, model: str | None) -> Notice:
    """Returns the notice of a part that a request would have read: of an image by this model."""
    if part.kind == "image":
        asked = "no model (vision.model is not set)" if model is None else repr(model)
        detail = f"{asked} would be asked to describe an image; until then the placeholder [image] stands for it"
        return Notice("encode", "seen", "IMAGE_DESCRIBED", detail, index=part.index)
    detail = "the text of a PDF would be read; until then the placeholder [document] stands for it"
    return Notice("encode", "seen", "DOCUMENT_READ", detail, index=part.index)


def _escaped(text: str) -> str:
    return _BRACKET.sub("&lt;", text)
