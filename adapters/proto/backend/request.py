"""Encodes conversations with a compiled template, of one of three kinds: one text, turns, or OpenAI's JSON."""

from typing import Any, Final, Protocol

import msgspec
from google.protobuf.message import Message

from adapters.proto.backend.call_turns import one_call_a_turn
from adapters.proto.backend.conversation_values import TemplateUse, changes, conversation_values
from adapters.proto.backend.mapping_error import mapping_error
from adapters.proto.backend.openai_json import CAPABILITIES, request_json
from adapters.proto.backend.options import ProtoOptions
from adapters.proto.backend.read_rules import Rules
from adapters.proto.backend.request_template import OPAQUE, RequestTemplate
from adapters.proto.backend.schema import MessageType, Method
from adapters.proto.backend.template_keys import CALL
from adapters.proto.backend.template_names import EVERY, FIELD, OPENAI, STRUCTURED, TEXT
from adapters.text.backend import TextAdapter, TextOptions
from adapters.text.backend.call_filter import CallFilter
from adapters.text.backend.encode import sent_text
from adapters.text.backend.request_template import names_in
from adapters.text.backend.wire import VALUES
from gateway.adapter import Capabilities, SentText
from gateway.core.conversation import (
    Conversation,
    Image,
    NamedTool,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import Unsupported
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.provider_state import STATE_FIELD, with_provider_state
from gateway.history.transcript.render import in_call_order

_TEXT_NAMES: Final = frozenset({"$prompt", "$transcript"})
# The choices that force a call, with what a backend that has only this one can be forced to.
_ONLY: Final = {"required": ", only to call any tool", "named": ", only to call a named one"}
_FORCED: Final = frozenset(_ONLY)


class RequestEncoder(Protocol):
    """Encodes the requests of one backend."""

    template: RequestTemplate

    capabilities: Capabilities

    def encode(self, conversation: Conversation, policy: Policy) -> tuple[Message, tuple[Notice, ...], SentText | None]:
        """Returns the message, the notices, and the text in it. Raises InvalidRequest."""
        ...

    def call_filter(self, conversation: Conversation) -> CallFilter | None:
        """Returns the filter that finds calls in the text of the response; None: calls have fields of their own."""
        ...


def find_request(options: ProtoOptions, method: Method, rules: Rules, max_event: int) -> RequestEncoder:
    """Returns the encoder of a template: `$prompt` or `$transcript` make it one text, `$turns` makes it structured, and
    `$openai` OpenAI's JSON. Raises OptionError, also for rules that do not fit."""
    template = dict(options.request)
    used = set(names_in(template))
    if used & _TEXT_NAMES:
        if not used & {"$prompt", "$system"}:
            raise mapping_error("request", "the template has $transcript, but no $system for the text before it")
        return _TextRequest(options, method.request, rules, max_event)
    if "$turns" in used:
        return _StructuredRequest(options, method, rules)
    if "$openai" in used:
        return _OpenAIRequest(options, method, rules)
    # A misspelt name is reported as such.
    RequestTemplate(template, method.request, EVERY)
    raise mapping_error("request", "the template must contain $prompt, $transcript, $turns or $openai")


class _TextRequest:
    def __init__(self, options: ProtoOptions, kind: MessageType, rules: Rules, max_event: int) -> None:
        if rules.reads_calls:
            raise mapping_error("read", "the calls of a template with $prompt are in its text; drop the rule `call`")
        self.template = RequestTemplate(dict(options.request), kind, TEXT)
        wire = {"path": "", "request": dict(options.request), "framing": "text", "ends": "close"}
        wire |= {"stopped_by": "stopped_by"} if rules.reads_stop else {}
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
        self.capabilities = self._text.capabilities
        _check_texts(self.template.try_out(self._text.request_values(_TRIAL_TEXT, Policy())[1]), _TRIAL_TEXT)

    def encode(self, conversation: Conversation, policy: Policy) -> tuple[Message, tuple[Notice, ...], SentText | None]:
        prompt, values = self._text.request_values(conversation, policy)
        notices: list[Notice] = []
        message = self.template.render(values, notices)
        return message, (*prompt.notices, *notices), sent_text(prompt, self._wire)

    def call_filter(self, conversation: Conversation) -> CallFilter | None:
        return self._text.call_filter(conversation)


class _StructuredRequest:
    def __init__(self, options: ProtoOptions, method: Method, rules: Rules) -> None:
        self.template = RequestTemplate(dict(options.request), method.request, STRUCTURED)
        names, variants = self.template.names, self.template.variants
        parts = variants.get("$parts", frozenset())
        self._choices = variants.get("$choice", frozenset()) & _FORCED
        provider, field = state_name(options, method)
        self._use = TemplateUse(
            names,
            options.max_tokens,
            options.max_stops,
            provider,
            field,
            system_apart="$system" in names,
            results_in_parts="result" in parts,
            reasoning="reasoning" in parts or "$reasoning" in names,
            image_bytes=bool({"$bytes", "$media_type"} & names),
        )
        self._check_turns(variants.get("$turns", frozenset()))
        self._check_calls(rules)
        self._try_out(_trial(provider, field, tools="$tools" in names))
        self.capabilities = self._derived()

    def _check_turns(self, turns: frozenset[str]) -> None:
        for place, apart, role in (
            ("$system", self._use.system_apart, "system"),
            ("the part 'result'", self._use.results_in_parts, "tool"),
        ):
            if apart and role in turns:
                raise mapping_error("request", f"{place} and the variant {role!r} of $turns exclude each other")
        if "system" not in turns and not self._use.system_apart:
            raise mapping_error("request", "$turns needs the variant 'system', or the template $system")

    def _check_calls(self, rules: Rules) -> None:
        names, variants = self.template.names, self.template.variants
        pairs = (("$tools", "call", rules.reads_calls), (OPAQUE, "opaque", rules.reads_state))
        for name, rule, reads in pairs:
            if (name in names) is not reads:
                has, lacks = (name, f"no rule reads `{rule}`") if name in names else (f"a rule `{rule}`", f"no {name}")
                place = "read" if name in names else "request"
                raise mapping_error(place, f"the mapping has {has}, but {lacks}")
        if "$tools" not in names:
            return
        if not self._use.results_in_parts and "tool" not in variants.get("$turns", ()):
            raise mapping_error("request", "the mapping has $tools, but $turns lacks the variant 'tool'")
        if "$calls" not in names and "call" not in variants.get("$parts", ()):
            raise mapping_error("request", "the mapping has $tools, but no place for the calls of a turn")

    def _try_out(self, trial: Conversation) -> None:
        """Raises OptionError where a trial request cannot be written, or lacks a part of the conversation."""
        for choice in ("auto", "none", "required", trial.tool_choice):
            chosen = msgspec.structs.replace(trial, tool_choice=choice)
            _check_texts(self._tried(chosen), chosen)
        if "$tools" in self._use.names:
            calling = msgspec.structs.replace(trial, turns=tuple(turn for turn in trial.turns if not turn.results))
            _check_names(self._tried(calling), calling)

    def _tried(self, trial: Conversation) -> bytes:
        return self.template.try_out(self._values(self._arranged(trial)[0]))

    def _derived(self) -> Capabilities:
        names, use = self.template.names, self._use
        known = {field for name in names & VALUES.keys() for field in VALUES[name]}
        known |= {name.removeprefix(FIELD) for name in use.fields}
        known |= {"stop"} if "$stop" in names and use.max_stops is None else set()
        known |= {"tool_choice"} if self._choices else set()
        known |= {"reasoning_effort"} if "$effort" in names else set()
        state = {STATE_FIELD, f"{STATE_FIELD}.{use.provider}"} if OPAQUE in names else set()
        return Capabilities(
            supported_params=frozenset(known),
            carries=frozenset(state),
            tools="$tools" in names,
            images="image" in self.template.variants.get("$parts", ()),
            image_roles=frozenset({"user"}),
            remote_images=not use.image_bytes,
            system="first" if use.system_apart else "anywhere",
        )

    def encode(self, conversation: Conversation, policy: Policy) -> tuple[Message, tuple[Notice, ...], SentText | None]:
        self._check_choice(conversation)
        arranged, moved = self._arranged(conversation)
        notices = [*changes(conversation, self._use), *moved]
        message = self.template.render(self._values(arranged), notices)
        return message, tuple(notices), None

    def _check_choice(self, conversation: Conversation) -> None:
        """Raises Unsupported for a choice whose word the template lacks."""
        choice = conversation.tool_choice
        word = "named" if isinstance(choice, NamedTool) else choice
        if word in _FORCED - self._choices:
            param = conversation.paths.param("tool_choice")
            forced = f"call {choice.name[:64]!r}" if isinstance(choice, NamedTool) else "call any tool"
            other = "".join(_ONLY[word] for word in sorted(self._choices))
            raise Unsupported(
                f"{param} is not supported: this model's backend cannot be forced to {forced} ({word!r}){other}.",
                param=param,
            )

    def _arranged(self, conversation: Conversation) -> tuple[Conversation, list[Notice]]:
        """Returns the conversation with its calls and results where the wire has them."""
        by_place = "$id" not in self._use.names
        if CALL in self._use.names:
            turns, moved = one_call_a_turn(conversation.turns, paired_by_place=by_place)
        elif by_place:
            turns, moved = in_call_order(conversation.turns)
        else:
            return conversation, []
        return msgspec.structs.replace(conversation, turns=turns), moved

    def call_filter(self, conversation: Conversation) -> CallFilter | None:
        return None

    def _values(self, conversation: Conversation) -> dict[str, Any]:
        return conversation_values(conversation, self._use)


class _OpenAIRequest:
    """Sends what the adapter for OpenAI's chat completions sends. It requests a stream if the method streams."""

    def __init__(self, options: ProtoOptions, method: Method, rules: Rules) -> None:
        if not rules.reads_openai:
            raise mapping_error("read", "the mapping has $openai, but no rule has `openai`")
        self.template = RequestTemplate(dict(options.request), method.request, OPENAI)
        self.capabilities = CAPABILITIES
        self._streams = method.streams_responses
        self.template.try_out({"$openai": {"messages": []}, "$model": "model"})

    def encode(self, conversation: Conversation, policy: Policy) -> tuple[Message, tuple[Notice, ...], SentText | None]:
        document, notices = request_json(conversation, policy, streams=self._streams)
        values = {"$openai": document, "$model": conversation.model or None}
        return self.template.render(values, []), notices, None

    def call_filter(self, conversation: Conversation) -> CallFilter | None:
        return None


def state_name(options: ProtoOptions, method: Method) -> tuple[str, str]:
    """Returns the name of the provider in `extra_content` and of the field below it that hold opaque state."""
    service = method.path[1:].partition("/")[0]
    return (options.state.provider, options.state.field) if options.state is not None else (service, "opaque")


def _check_texts(request: bytes, trial: Conversation) -> None:
    """Refuses a template that drops all text of a role. What is in the trial request is what counts."""
    for turn in trial.turns:
        texts = [block.text for block in turn.blocks if isinstance(block, Text | ToolResult)]
        if not all(text.encode() in request for text in texts):
            beside = " beside calls" if turn.calls else ""
            raise mapping_error("request", f"no field gets the text of the role {turn.role!r}{beside}")


def _check_names(request: bytes, trial: Conversation) -> None:
    """Refuses a template that drops calls. `trial` has no results, which may have the names of their calls."""
    for turn in trial.turns:
        if not all(call.name.encode() in request for call in turn.calls):
            beside = "beside" if turn.text else "without"
            raise mapping_error("request", f"no field gets the calls of a turn {beside} text")


def _trial(provider: str, field: str, *, tools: bool) -> Conversation:
    """Returns a request with every kind of turn and part, each with a text of its own; without `tools` there are no
    calls of several at once, and no results."""
    state = with_provider_state(provider, {field: "c3RhdGU="})
    turns: tuple[Turn, ...] = (
        Turn("system", (Text("a rule of the system"),)),
        Turn("user", (Text("a question of the user"), Image("data:image/png;base64,aW1hZ2U="))),
        Turn(
            "assistant",
            (
                Reasoning("reason", extra=state),
                Text("a plan of the assistant"),
                ToolCall("call_1", "first_tool", "{}", state),
            ),
        ),
    )
    if tools:
        turns += (
            Turn("tool", (ToolResult("call_1", (Text("a first result"),)),)),
            Turn("assistant", (ToolCall("call_2", "second_tool", "{}"), ToolCall("call_3", "third_tool", "{}"))),
            Turn("tool", (ToolResult("call_2", (Text("a second result"),)),)),
            Turn("tool", (ToolResult("call_3", (Text("a third result"),)),)),
        )
    turns += (
        Turn("assistant", (Text("an answer of the assistant"),)),
        Turn("user", (Text("another question of the user"),)),
    )
    offered = ToolSpec("offered_tool", "description", {"type": "object"})
    return Conversation(turns, (offered,), NamedTool("offered_tool"), model="model")


_TRIAL_TEXT: Final = Conversation(
    (Turn("system", (Text("a rule of the system"),)), Turn("user", (Text("a question of the user"),))), model="model"
)
