"""Parts of messages exchanged for others, before a conversation is written: attached images, allowed placeholders."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.images import decode_image, is_data_url
from adapters.warp.placed import Placed, place
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.types import Block, Conversation, File, Image, Text, ToolResult, Turn

Part: TypeAlias = Text | Image | File
# A part, its path and its message's index -> the part that takes its place.
Exchange: TypeAlias = Callable[[Image | File, Placed, int], Part]


def attach_images(target: pb.Input, conversation: Conversation, policy: Policy) -> tuple[Conversation, list[Notice]]:
    """Move every image into the input's context and leave its number where it was, for a conversation sent as text.

    Raises Unsupported for an image that would have to be fetched unless the policy allows placeholders.
    """
    notices: list[Notice] = []

    def attach(part: Image | File, placed: Placed, position: int) -> Part:
        if isinstance(part, File) or (policy.images == "placeholder" and not is_data_url(part)):
            return part
        data, media_type = decode_image(part, placed.param(position))
        target.context.images.add(data=data, mime_type=media_type)
        marker = f"[image {len(target.context.images)}]"
        detail = f"an image is attached and the text says {marker}"
        notices.append(Notice("encode", "moved", "IMAGE_ATTACHED", detail, placed.index, level="debug"))
        return Text(marker)

    return _exchange(conversation, attach), notices


def allow_placeholders(conversation: Conversation, policy: Policy) -> tuple[Conversation, list[Notice]]:
    """Exchange the parts that the wire cannot hold for `[kind]`, if the policy allows it."""
    if policy.images != "placeholder":
        return conversation, []
    notices: list[Notice] = []

    def replace(part: Image | File, placed: Placed, position: int) -> Part:
        if isinstance(part, Image) and is_data_url(part) and placed.turn.role in ("user", "tool"):
            return part
        kind = "image" if isinstance(part, Image) else part.kind
        detail = f"a part of kind {kind} was replaced by the placeholder [{kind}]"
        notices.append(Notice("encode", "changed", "PART_NOT_SENT", detail, placed.index, level="warning"))
        return Text(f"[{kind}]")

    return _exchange(conversation, replace), notices


def _exchange(conversation: Conversation, exchange: Exchange) -> Conversation:
    turns = tuple(_turn(placed, exchange) for placed in place(conversation.turns))
    return msgspec.structs.replace(conversation, turns=turns)


def _turn(placed: Placed, exchange: Exchange) -> Turn:
    if not any(isinstance(block, Image | File | ToolResult) for block in placed.turn.blocks):
        return placed.turn
    blocks = tuple(_block(block, placed, position, exchange) for position, block in enumerate(placed.turn.blocks))
    return placed.turn if blocks == placed.turn.blocks else placed.turn.changed(*blocks)


def _block(block: Block, placed: Placed, position: int, exchange: Exchange) -> Block:
    if isinstance(block, Image | File):
        return exchange(block, placed, position)
    if isinstance(block, ToolResult):
        return msgspec.structs.replace(block, content=_content(block.content, placed, exchange))
    return block


def _content(content: Sequence[Part], placed: Placed, exchange: Exchange) -> tuple[Part, ...]:
    return tuple(
        part if isinstance(part, Text) else exchange(part, placed, position) for position, part in enumerate(content)
    )
