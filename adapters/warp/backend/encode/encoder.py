"""Encodes a prepared conversation as one Warp request, in the encoding that the options select."""

from collections.abc import Mapping
from typing import Final

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.encode.images import attach_images
from adapters.warp.backend.encode.request import open_request, write_query
from adapters.warp.backend.encode.structured import write_structured
from adapters.warp.backend.options import WarpOptions
from gateway.adapter import BackendRequest, SentText
from gateway.core.conversation import Conversation
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.history.transcript.render import flatten

MEDIA_TYPE: Final = "application/x-protobuf"
EVENTS: Final = "text/event-stream"


def encode_request(conversation: Conversation, policy: Policy, options: WarpOptions) -> BackendRequest:
    """Encode the request; the same conversation gives the same bytes. Raises InvalidRequest for content that protobuf
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
    """Fill the input with one query, which holds the whole history as text: for a backend without support for client
    tool calls. Raises InvalidRequest for an invalid image."""
    conversation, notices = attach_images(request.input, conversation)
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
