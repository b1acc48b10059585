"""Serves any protobuf backend whose schema and mapping settings.json declares."""

from collections.abc import Mapping
from copy import copy
from typing import ClassVar

import msgspec
from google.protobuf.message import EncodeError, Message

from adapters.proto.backend.answer_writer import AnswerFacts, AnswerWriter
from adapters.proto.backend.arguments_reader import ArgumentsReader
from adapters.proto.backend.call_rule import reads_ids
from adapters.proto.backend.carriers import find_carrier
from adapters.proto.backend.decoder import ProtoDecoder
from adapters.proto.backend.field_places import TracedTemplate
from adapters.proto.backend.mapping_error import mapping_error
from adapters.proto.backend.metadata import REQUEST_ID, check_metadata, write_metadata
from adapters.proto.backend.options import ProtoOptions
from adapters.proto.backend.read_rules import Rules
from adapters.proto.backend.request import find_request, state_name
from adapters.proto.backend.rpc_status import http_failure
from adapters.proto.backend.schema import Schema, message_class
from gateway.adapter import BackendRequest, Capabilities, FieldPlace
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import BackendError, InvalidRequest
from gateway.core.policy import Policy


class ProtoAdapter:
    """Implements a protobuf backend by declaration. The template decides whether the conversation is sent as one text
    or with its turns, and the capabilities follow from the template and the rules."""

    Options: ClassVar[type[msgspec.Struct]] = ProtoOptions
    capabilities: Capabilities

    def __init__(self, options: ProtoOptions, max_event: int) -> None:
        """Checks the whole mapping against the schema. Raises OptionError with the place of the first fault."""
        self.schema = options.schema
        method = Schema(options.schema).method(options.method)
        self._carrier = find_carrier(options.carrier, method)
        self._rules = Rules(options.read, method.response)
        self._request = find_request(options, method, self._rules, max_event)
        self._metadata = check_metadata(options.metadata)
        self._state = state_name(options, method)
        self._reads_ids = reads_ids(options.read)
        _check_end(options, self._rules.reads_end, self._carrier.reports_status)
        self.capabilities = self._request.capabilities
        if any(REQUEST_ID in value for value in self._metadata.values()):
            self.capabilities = msgspec.structs.replace(self.capabilities, request_id=True)
        self._path = _path(options, method.path)
        self._options = options
        self._response = message_class(method.response)
        self._unchecked = method.unchecked_texts
        self._one_message = not method.streams_responses and not self._carrier.one
        self._max_event = max_event

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        """Encodes the conversation as one message. Raises InvalidRequest, including Unsupported."""
        message, notices, sent_text = self._request.encode(conversation, policy)
        body = self._carrier.write(_serialized(message))
        return BackendRequest(
            self._path,
            {**self._carrier.headers, **write_metadata(self._metadata, conversation.model, conversation.request_id)},
            body,
            accepts=self._carrier.accepts,
            notices=notices,
            sent_text=sent_text,
            http2=self._carrier.http2,
            deadline=self._carrier.deadline,
        )

    def decoder(self, conversation: Conversation) -> ProtoDecoder:
        """Creates a decoder for the response to this conversation."""
        facts = AnswerFacts(
            len(conversation.turns),
            conversation.sampling.stop,
            conversation.dialect == self.capabilities.passthrough,
            self._reads_ids,
            *self._state,
        )
        writer = AnswerWriter(self._request.call_filter(conversation), facts)
        return ProtoDecoder(
            self._carrier,
            self._response,
            self._rules,
            writer,
            ArgumentsReader(conversation.tools),
            self._max_event,
            ends=self._options.ends,
            one_message=self._one_message,
            unchecked=self._unchecked,
        )

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        """Returns the error of a status other than 200: its `grpc-status` or Connect's JSON, where there is one."""
        return http_failure(status, headers, body, connect=self._options.carrier == "connect")

    def describe(self, body: bytes) -> Json:
        """Returns the message as JSON with its field names."""
        from google.protobuf.json_format import MessageToDict

        message = self._request.template.parse(self._carrier.read(body))
        described: dict[str, Json] = MessageToDict(message, preserving_proto_field_name=True)
        return described

    def field_places(self, conversation: Conversation, policy: Policy) -> tuple[FieldPlace, ...]:
        """Returns each field of the message for this conversation, with the place in `request` that made it."""
        request = copy(self._request)
        request.template = template = TracedTemplate(request.template)
        request.encode(conversation, policy)
        return template.places


def _serialized(message: Message) -> bytes:
    try:
        return message.SerializeToString(deterministic=True)
    except EncodeError as error:
        # The runtime names the fields behind a colon, such as "turns[0].role".
        fields = str(error).rpartition(": ")[2]
        raise InvalidRequest(f"The request has no value for {fields}, which the backend's message requires.") from error


def _path(options: ProtoOptions, of_method: str) -> str:
    if options.path is not None and options.path and not options.path.startswith("/"):
        raise mapping_error("path", f"the path {options.path!r} must begin with /")
    return of_method if options.path is None else options.path


def _check_end(options: ProtoOptions, reads_end: bool, reports_status: bool) -> None:
    if options.ends == "finish" and not reads_end:
        raise mapping_error("read", "no rule tells the end of the response; add a `finish`, or set `ends`")
    if (options.ends == "status") > reports_status:
        raise mapping_error("ends", f"the carrier {options.carrier!r} reports no status")
    if options.ends == "close" and reports_status:
        raise mapping_error("ends", f'the carrier {options.carrier!r} reports a status; use "status"')
