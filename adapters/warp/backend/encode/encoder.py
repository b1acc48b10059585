"""Encodes a prepared conversation as one Warp request, in the encoding that the options select.

A conversation that is sent as one text has its images beside the text, and their numbers in it.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.encode.indexed_turn import IndexedTurn, index_turns
from adapters.warp.backend.encode.request import open_request, write_query
from adapters.warp.backend.encode.structured import write_structured
from adapters.warp.backend.options import WarpOptions
from gateway.adapter import BackendRequest, SentText
from gateway.core.conversation import Block, Conversation, Image, Text, ToolResult, Turn, has_parts
from gateway.core.data_url import read_image
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.history.transcript.render import flatten

MEDIA_TYPE: Final = "application/x-protobuf"
EVENTS: Final = "text/event-stream"


def encode_request(conversation: Conversation, policy: Policy, options: WarpOptions) -> BackendRequest:
    """Encodes the request; the same conversation gives the same bytes. Raises InvalidRequest for content that protobuf
    cannot represent and Unsupported for content that this wire cannot."""
    try:
        body, sent_text, notices = _serialize(conversation, policy, options)
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            "The request contains half of a surrogate pair, which is not a character; protobuf text is UTF-8."
        ) from error
    return BackendRequest(
        options.path, _headers(options), body, accepts=(EVENTS,), notices=tuple(notices), sent_text=sent_text
    )


def _serialize(
    conversation: Conversation, policy: Policy, options: WarpOptions
) -> tuple[bytes, SentText | None, list[Notice]]:
    request, notices = open_request(conversation, policy, options)
    sent_text = None
    if options.encoding == "flatten":
        sent_text, written = _write_flat(request, conversation, policy)
    else:
        written = write_structured(request, conversation)
    return request.SerializeToString(deterministic=True), sent_text, [*notices, *written]


def _write_flat(request: pb.Request, conversation: Conversation, policy: Policy) -> tuple[SentText, list[Notice]]:
    """Fills the input with one query, which holds the whole history as text: for a backend without support for client
    tool calls. Raises InvalidRequest for an invalid image."""
    conversation, notices = _attach_images(request.input, conversation)
    flattened = flatten(conversation, policy)
    write_query(request.input.user_inputs.inputs.add().user_query, flattened.text)
    return SentText(flattened.text, flattened.system_text), [*notices, *flattened.notices]


def _headers(options: WarpOptions) -> Mapping[str, str]:
    named = {
        "content-type": MEDIA_TYPE,
        "accept": EVENTS,
        "accept-encoding": "identity",
        "x-warp-client-id": options.client_id,
        "x-warp-client-version": options.client_version,
        "x-warp-os-category": options.os_category,
        "x-warp-os-name": options.os_name,
        "x-warp-os-version": options.os_version,
    }
    return {name: value for name, value in named.items() if value}


def _attach_images(target: pb.Input, conversation: Conversation) -> tuple[Conversation, list[Notice]]:
    """Moves every image into the input's context and leaves its number in its place, for a conversation sent as text.

    Raises InvalidRequest for a `data:` URL that holds no image.
    """
    if not any(map(has_parts, conversation.turns)):
        return conversation, []
    attached = _Attached(target)
    turns = tuple(attached.turn(indexed) for indexed in index_turns(conversation))
    return msgspec.structs.replace(conversation, turns=turns), attached.notices


class _Attached:
    """The input, and the notices about the images that were attached to it."""

    def __init__(self, target: pb.Input) -> None:
        self.notices: list[Notice] = []
        self._images = target.context.images

    def turn(self, indexed: IndexedTurn) -> Turn:
        if not has_parts(indexed.turn):
            return indexed.turn
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
