"""Encodes conversations with a compiled template, of one of two kinds: one text, or turns."""

from typing import Any, Final, Protocol

from google.protobuf.message import Message

from adapters.proto.conversation_values import conversation_values, not_sent
from adapters.proto.mapping_error import mapping_error
from adapters.proto.options import ProtoOptions
from adapters.proto.request_template import EACH, RequestTemplate
from adapters.proto.schema import MessageType
from adapters.proto.template_names import FIELD, STRUCTURED, TEXT
from adapters.text import TextAdapter, TextOptions
from adapters.text.call_filter import CallFilter
from adapters.text.encode import sent_text
from adapters.text.request_template import names_in
from adapters.text.wire import VALUES
from gateway.adapter import Capabilities, SentText
from gateway.core.conversation import Conversation, Json, NamedTool, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.notices import Notice
from gateway.core.policy import Policy

_TEXT_NAMES: Final = frozenset({"$prompt", "$transcript"})
_CHOICES: Final = ("required", "named")


class RequestEncoder(Protocol):
    """Encodes the requests of one backend."""

    template: RequestTemplate

    def capabilities(self, reads_calls: bool) -> Capabilities:
        """Return what the template and the rules support. Raises OptionError for rules that do not fit."""
        ...

    def encode(self, conversation: Conversation, policy: Policy) -> tuple[Message, tuple[Notice, ...], SentText | None]:
        """Return the message, the notices, and the text in it. Raises InvalidRequest."""
        ...

    def call_filter(self, conversation: Conversation) -> CallFilter | None:
        """Return the filter that finds calls in the text of the response; None: calls have fields of their own."""
        ...


def find_request(options: ProtoOptions, kind: MessageType, max_event: int) -> RequestEncoder:
    """Return the encoder of a template: `$prompt` or `$transcript` make it one text, `$turns` makes it structured.
    Raises OptionError."""
    template = dict(options.request)
    used = set(names_in(template))
    if used & _TEXT_NAMES:
        return _TextRequest(options, kind, max_event)
    if "$turns" in used:
        return _StructuredRequest(options, kind)
    # A misspelt name is reported as such.
    RequestTemplate(template, kind, STRUCTURED if _has_lists(template) else TEXT)
    raise mapping_error("request", "the template must contain $prompt, $transcript or $turns")


def _has_lists(template: Json) -> bool:
    if isinstance(template, dict):
        return EACH in template or any(map(_has_lists, template.values()))
    return isinstance(template, list) and any(map(_has_lists, template))


class _TextRequest:
    def __init__(self, options: ProtoOptions, kind: MessageType, max_event: int) -> None:
        self.template = RequestTemplate(dict(options.request), kind, TEXT)
        wire = {"path": "", "request": dict(options.request), "framing": "text", "ends": "close"}
        limits = {"max_stops": options.max_stops, "max_tokens": options.max_tokens}
        try:
            text_options = TextOptions(
                {**wire, **limits},
                tool_format=options.tool_format,
                force_tools=options.force_tools,
                turn_stops=options.turn_stops,
                turn_guard=options.turn_guard,
                prose_calls=options.prose_calls,
                thinking=options.thinking,
            )
        except ValueError as error:
            raise mapping_error("tool_format", str(error)) from error
        self._wire = text_options.chosen_wire
        self._text = TextAdapter(text_options, max_event)
        self.template.try_out(self._text.request_values(_TRIAL_TEXT, Policy())[1])

    def capabilities(self, reads_calls: bool) -> Capabilities:
        if reads_calls:
            raise mapping_error("read", "the calls of a template with $prompt are in its text; drop the rule `call`")
        return self._text.capabilities

    def encode(self, conversation: Conversation, policy: Policy) -> tuple[Message, tuple[Notice, ...], SentText | None]:
        prompt, values = self._text.request_values(conversation, policy)
        notices: list[Notice] = []
        message = self.template.render(values, notices)
        return message, (*prompt.notices, *notices), sent_text(prompt, self._wire)

    def call_filter(self, conversation: Conversation) -> CallFilter | None:
        return self._text.call_filter(conversation)


class _StructuredRequest:
    def __init__(self, options: ProtoOptions, kind: MessageType) -> None:
        self.template = RequestTemplate(dict(options.request), kind, STRUCTURED)
        self._max_tokens = options.max_tokens
        self._max_stops = options.max_stops
        choices = self.template.variants.get("$choice", frozenset(_CHOICES))
        if missing := [word for word in _CHOICES if word not in choices]:
            raise mapping_error("request", f"the cases of $choice need {missing[0]!r}")
        self.template.try_out(self._values(_TRIAL))

    def capabilities(self, reads_calls: bool) -> Capabilities:
        names = self.template.names
        offers = "$tools" in names
        if offers is not reads_calls:
            has, lacks = ("$tools", "no rule reads a `call`") if offers else ("a rule `call`", "it has no $tools")
            raise mapping_error("request" if not offers else "read", f"the mapping has {has}, but {lacks}")
        if offers and "tool" not in self.template.variants.get("$turns", ()):
            raise mapping_error("request", "the mapping has $tools, but $turns lacks the variant 'tool'")
        if offers and "$calls" not in names and "call" not in self.template.variants.get("$parts", ()):
            raise mapping_error("request", "the mapping has $tools, but no place for the calls of a turn")
        known = {field for name in names & VALUES.keys() for field in VALUES[name]}
        known |= {name.removeprefix(FIELD) for name in names if name.startswith(FIELD)}
        known |= {"stop"} if "$stop" in names and self._max_stops is None else set()
        known |= {"tool_choice"} if "$choice" in names else set()
        return Capabilities(tools=offers, supported_params=frozenset(known))

    def encode(self, conversation: Conversation, policy: Policy) -> tuple[Message, tuple[Notice, ...], SentText | None]:
        notices = not_sent(conversation)
        message = self.template.render(self._values(conversation), notices)
        return message, tuple(notices), None

    def call_filter(self, conversation: Conversation) -> CallFilter | None:
        return None

    def _values(self, conversation: Conversation) -> dict[str, Any]:
        return conversation_values(conversation, self.template.names, self._max_tokens, self._max_stops)


# A trial request holds every kind of turn.
_TRIAL: Final = Conversation(
    (
        Turn("system", (Text("system"),)),
        Turn("user", (Text("question"),)),
        Turn("assistant", (Text("thought"), ToolCall("call_1", "tool", '{"key": 1}'))),
        Turn("tool", (ToolResult("call_1", (Text("result"),)),)),
        Turn("user", (Text("question"),)),
    ),
    (ToolSpec("tool", "description", {"type": "object"}),),
    NamedTool("tool"),
    model="model",
)
_TRIAL_TEXT: Final = Conversation((Turn("system", (Text("system"),)), Turn("user", (Text("question"),))), model="model")
