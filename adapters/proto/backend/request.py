"""Encodes conversations with a compiled template, of one of three kinds: one text, turns, or OpenAI's JSON."""

from collections.abc import Collection
from typing import Any, Final, Protocol

from google.protobuf.message import Message
from msgspec.structs import replace

from adapters.proto.backend.call_turns import one_call_a_turn
from adapters.proto.backend.conversation_values import (
    TemplateUse,
    changes,
    conversation_values,
    lost_reasoning,
    requested_format,
)
from adapters.proto.backend.mapping_error import mapping_error
from adapters.proto.backend.openai_json import CAPABILITIES, request_json
from adapters.proto.backend.options import ProtoOptions
from adapters.proto.backend.read_rules import Rules
from adapters.proto.backend.request_template import OPAQUE, RequestTemplate
from adapters.proto.backend.schema import MessageType, Method
from adapters.proto.backend.template_keys import CALL
from adapters.proto.backend.template_names import EVERY, FIELD, OPENAI, STRUCTURED, TEXT
from adapters.proto.backend.trial_request import (
    TRIAL_TEXT,
    check_calls,
    check_images,
    check_schema,
    check_texts,
    check_tools,
    filled,
    shaped,
    trial_conversation,
    with_arguments,
    with_empty_result,
    with_unknown_result,
)
from adapters.text.backend import TextAdapter, TextOptions
from adapters.text.backend.call_filter import CallFilter
from adapters.text.backend.encode import sent_text
from adapters.text.backend.request_template import names_in
from adapters.text.backend.wire import VALUES
from gateway.adapter import Capabilities, SentText
from gateway.core.conversation import NO_REQUEST, Conversation, NamedTool
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.provider_state import STATE_FIELD
from gateway.core.state_rule import StateRule
from gateway.history.transcript.render import in_call_order

_TEXT_NAMES: Final = frozenset({"$prompt", "$transcript"})
# The fields of messages and tools that reach the backend by these names.
_CARRIED: Final = {"$strict": "strict", "$is_error": "is_error", "$detail": "detail"}
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
    if used & _TEXT_NAMES and "$turns" not in used:
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
        unsent = _client_fields(self.template.asked) - _client_fields(self.template.names)
        known = self._text.capabilities.supported_params - unsent
        self.capabilities = replace(self._text.capabilities, supported_params=known)
        check_texts(self.template.try_out(self._text.request_values(TRIAL_TEXT, Policy())[1], []), TRIAL_TEXT)

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
        parts, roles = variants.get("$parts", frozenset()), STRUCTURED.items["$turns"].scopes
        self._choices = variants.get("$choice", frozenset()) & _FORCED
        provider, field = state_name(options, method)
        self._use = TemplateUse(
            names,
            options.max_tokens,
            options.max_stops,
            provider,
            field,
            frozenset(role for role, scope in roles.items() if self.template.used.uses("$speaker", scope)),
            variants.get("$detail"),
            "$format" in variants,
            system_apart="$system" in names,
            results_in_parts="result" in parts,
            reasoning="reasoning" in parts or "$reasoning" in names,
            one_state="reasoning" not in parts and self.template.used.uses_beside(OPAQUE, "$reasoning"),
            call_ids=self.template.used.uses_beside("$id", "$arguments"),
            result_ids=self.template.used.uses_beside("$id", "$is_error"),
            image_bytes=bool({"$bytes", "$media_type"} & names),
            image_urls="$url" in names,
            asked=self.template.asked,
        )
        self._check_turns(variants.get("$turns", frozenset()))
        if "$chosen" in names and "named" not in self._choices:
            raise mapping_error(
                "request", "$chosen has a value only with the word 'named' of $choice, which is missing"
            )
        self._check_calls(rules)
        self._check_state(rules)
        self._formats = self._known_formats()
        images = "image" in parts
        trial = trial_conversation(provider, field, tools="$tools" in names, images=images)
        for one in (trial, filled(trial)):
            self._try_out(one, images=images)
        self.capabilities = self._derived(rules)

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
        pairs = (("$tools", "call", rules.reads_calls), (OPAQUE, "opaque", bool(rules.state_of)))
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

    def _check_state(self, rules: Rules) -> None:
        """Raises OptionError where state that a rule reads has no place in the request."""
        for owner in sorted(rules.state_of):
            if not self.template.used.has_state_of(owner):
                has = f"the mapping has a rule `opaque` on the {owner}"
                raise mapping_error("request", f"{has}, but no $opaque at a {owner}")

    def _known_formats(self) -> frozenset[str]:
        """Returns the shapes of the response that the template has a place for; none: it has no name for a shape.
        Raises OptionError."""
        names, words = self.template.names, self.template.variants.get("$format")
        if words is not None:
            return words | ({"json_schema"} if "$schema" in names else set())
        if "$schema" in names:
            return frozenset(("json_object", "json_schema"))
        if "$format" in self.template.asked:
            raise mapping_error("request", '$format is only in conditions; its words need {"$case": "$format"}')
        return frozenset()

    def _try_out(self, trial: Conversation, *, images: bool) -> None:
        """Raises OptionError where a trial request cannot be written, or lacks a part of the conversation."""
        for choice in ("auto", "none", "required", trial.tool_choice):
            chosen = replace(trial, tool_choice=choice)
            check_texts(self._tried(chosen), chosen)
        for kind in self._formats:
            asked = shaped(trial, kind)
            check_texts(request := self._tried(asked), asked)
            if kind == "json_schema":
                check_schema(request)
        if images:
            check_images(self._tried(trial), trial)
        if "$tools" in self._use.names:
            calling = replace(trial, turns=tuple(turn for turn in trial.turns if not turn.results), tool_choice="auto")
            check_calls(request := self._tried(calling), calling)
            check_tools(request, calling)
            self._check_arguments(with_arguments(calling))
            self._tried(with_unknown_result(trial))
        self._check_turns_sent(with_empty_result(trial) if "$tools" in self._use.names else trial)

    def _check_arguments(self, trial: Conversation) -> None:
        try:
            request = self.template.render(self._values(self._arranged(trial)[0]), [])
        except InvalidRequest:
            return  # They fill a message, whose fields are arguments that only the service knows.
        check_calls(request.SerializeToString(), trial)

    def _check_turns_sent(self, trial: Conversation) -> None:
        notices: list[Notice] = []
        self._tried(trial, notices)
        if lost := [notice.detail for notice in notices if notice.rule == "TURN_NOT_SENT"]:
            raise mapping_error("request", f"a trial request loses a turn: {lost[0]}")

    def _tried(self, trial: Conversation, notices: list[Notice] | None = None) -> bytes:
        return self.template.try_out(self._values(self._arranged(trial)[0]), [] if notices is None else notices)

    def _derived(self, rules: Rules) -> Capabilities:
        names, use = self.template.names, self._use
        known = _client_fields(names)
        known |= {"stop"} if "$stop" in names and use.max_stops is None else set()
        known |= {"tool_choice"} if "$choice" in names else set()
        known |= {"reasoning_effort"} if "$effort" in names else set()
        known |= {"response_format"} if self._formats else set()
        carried = {field for name, field in _CARRIED.items() if name in names}
        carried |= {STATE_FIELD, f"{STATE_FIELD}.{use.provider}"} if OPAQUE in names else set()
        return Capabilities(
            supported_params=frozenset(known),
            carries=frozenset(carried),
            request_id="$request_id" in names,
            tools="$tools" in names,
            images="image" in self.template.variants.get("$parts", ()),
            image_roles=frozenset({"user"}),
            remote_images=use.image_urls or not use.image_bytes,
            system="first" if use.system_apart else "anywhere",
            state=_state_rule(use.provider, rules.state_of),
        )

    def encode(self, conversation: Conversation, policy: Policy) -> tuple[Message, tuple[Notice, ...], SentText | None]:
        self._check_choice(conversation)
        self._check_format(conversation)
        arranged, moved = self._arranged(conversation)
        notices = [*changes(conversation, self._use), *moved, *lost_reasoning(arranged, self._use)]
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

    def _check_format(self, conversation: Conversation) -> None:
        """Raises Unsupported for a shape of the response whose word the template lacks."""
        kind = requested_format(conversation)
        if kind is not None and self._formats and kind not in self._formats:
            param = conversation.paths.param("response_format")
            words = " and ".join(map(repr, sorted(self._formats)))
            raise Unsupported(
                f"{param} {kind[:40]!r} is not supported: this model's backend has only {words}.", param=param
            )

    def _arranged(self, conversation: Conversation) -> tuple[Conversation, list[Notice]]:
        """Returns the conversation with its calls and results where the wire has them."""
        by_place = self._use.paired_by_place
        if CALL in self._use.names:
            turns, moved = one_call_a_turn(conversation.turns, paired_by_place=by_place)
        elif by_place:
            turns, moved = in_call_order(conversation.turns)
        else:
            return conversation, []
        return replace(conversation, turns=turns), moved

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
        self.capabilities = replace(CAPABILITIES, request_id="$request_id" in self.template.names)
        self._fields = [name for name in self.template.names if name.startswith(FIELD)]
        self._streams = method.streams_responses
        self.template.try_out({"$openai": {"messages": []}, "$model": "model", "$request_id": NO_REQUEST}, [])

    def encode(self, conversation: Conversation, policy: Policy) -> tuple[Message, tuple[Notice, ...], SentText | None]:
        document, notices = request_json(conversation, policy, streams=self._streams)
        values = {
            "$openai": document,
            "$model": conversation.model or None,
            "$request_id": conversation.request_id,
            **{name: conversation.params.get(name.removeprefix(FIELD)) for name in self._fields},
        }
        return self.template.render(values, []), notices, None

    def call_filter(self, conversation: Conversation) -> CallFilter | None:
        return None


def _client_fields(names: Collection[str]) -> set[str]:
    """Returns the fields of the client that names stand for."""
    known = {field for name in names if name in VALUES for field in VALUES[name]}
    return known | {name.removeprefix(FIELD) for name in names if name.startswith(FIELD)}


def state_name(options: ProtoOptions, method: Method) -> tuple[str, str]:
    """Returns the name of the provider in `extra_content` and of the field below it that hold opaque state."""
    service = method.path[1:].partition("/")[0]
    return (options.state.provider, options.state.field) if options.state is not None else (service, "opaque")


def _state_rule(provider: str, state_of: Collection[str]) -> StateRule | None:
    """Returns what the backend wants back of its answers: the state of calls, or if they have none, of the reasoning in
    every turn."""
    if "call" in state_of:
        return StateRule(provider=provider, calls=True)
    return StateRule(provider=provider, reasoning="signed", turns="all") if state_of else None
