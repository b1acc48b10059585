"""A prepared conversation out as one Warp request, in the encoding that the options ask for."""

from collections.abc import Mapping
from typing import Final

from adapters.warp.flat import write_flat
from adapters.warp.options import WarpOptions
from adapters.warp.request import open_request
from adapters.warp.structured import write_structured
from adapters.warp.unsent import unsent_fields
from gateway.adapter import BackendRequest
from gateway.errors import InvalidRequest
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.types import Conversation

MEDIA_TYPE: Final = "application/x-protobuf"
EVENTS: Final = "text/event-stream"


def encode_request(conversation: Conversation, policy: Policy, options: WarpOptions) -> BackendRequest:
    """The same bytes for the same conversation. Raises InvalidRequest for what protobuf cannot say and Unsupported
    for what this wire cannot."""
    try:
        body, notices = _serialize(conversation, policy, options)
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            "The request holds half a surrogate pair, which is no character; protobuf text is UTF-8."
        ) from error
    return BackendRequest(options.path, _headers(options), body, (EVENTS,), tuple(notices))


def _serialize(conversation: Conversation, policy: Policy, options: WarpOptions) -> tuple[bytes, list[Notice]]:
    request, notices = open_request(conversation, policy, options)
    if options.encoding == "flatten":
        notices += write_flat(request, conversation, policy)
    else:
        notices += write_structured(request, conversation, policy)
    return request.SerializeToString(deterministic=True), [*notices, *unsent_fields(conversation)]


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
