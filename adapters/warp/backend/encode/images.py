"""Moves images from their positions in a conversation into the input beside it."""

import msgspec

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.encode.indexed_turn import IndexedTurn, index_turns
from gateway.core.conversation import Block, Conversation, Image, Text, ToolResult, Turn
from gateway.core.data_url import read_image
from gateway.core.notices import Notice


def attach_images(target: pb.Input, conversation: Conversation) -> tuple[Conversation, list[Notice]]:
    """Move every image into the input's context and leave its number in its place, for a conversation sent as text.

    Raises InvalidRequest for a `data:` URL that holds no image.
    """
    attached = _Attached(target)
    turns = tuple(attached.turn(indexed) for indexed in index_turns(conversation))
    return msgspec.structs.replace(conversation, turns=turns), attached.notices


class _Attached:
    """The input, and the notices about the images that were attached to it."""

    def __init__(self, target: pb.Input) -> None:
        self.notices: list[Notice] = []
        self._images = target.context.images

    def turn(self, indexed: IndexedTurn) -> Turn:
        blocks = tuple(self._block(block, indexed, position) for position, block in enumerate(indexed.turn.blocks))
        return indexed.turn if blocks == indexed.turn.blocks else indexed.turn.changed(*blocks)

    def _block(self, block: Block, indexed: IndexedTurn, position: int) -> Block:
        if isinstance(block, Image):
            return self._attach(block, indexed, indexed.part(position, block))
        if isinstance(block, ToolResult):
            content = tuple(
                self._attach(part, indexed, indexed.result_part(position, block, inner))
                if isinstance(part, Image)
                else part
                for inner, part in enumerate(block.content)
            )
            return msgspec.structs.replace(block, content=content)
        return block

    def _attach(self, image: Image, indexed: IndexedTurn, param: str) -> Text:
        held = read_image(image.url, param)
        self._images.add(data=held.data.encode(), mime_type=held.media_type)
        marker = f"[image {len(self._images)}]"
        detail = f"an image is attached and the text says {marker}"
        self.notices.append(Notice("encode", "moved", "IMAGE_ATTACHED", detail, index=indexed.index, level="debug"))
        return Text(marker)
