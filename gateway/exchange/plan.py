"""Plans a request: what of the client's conversation is sent, in which form, and what the answer is held to."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gateway.adapter import Adapter, BackendRequest, Capabilities
from gateway.capabilities.context_window import with_room
from gateway.capabilities.held_tools import HeldTools, hold_tools
from gateway.capabilities.offered_tools import fit_tools
from gateway.capabilities.prompt_caches import (
    FIELD_NAMES,
    KEY,
    MARK_NAMES,
    cache_rules,
    has_cache,
    translate_marks,
    with_cache_key,
)
from gateway.capabilities.prompted_demands import Demands, find_demands, with_words
from gateway.capabilities.request_fields import (
    ONE_CALL,
    check_capabilities,
    check_rules,
    check_sequences,
    watched_sequences,
)
from gateway.capabilities.unsupported_content import (
    FurtherFields,
    dropped_fields,
    further_fields,
    keep_to,
    replace_shown,
)
from gateway.core.conversation import Conversation, NamedTool, ToolChoice
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.exchange.hidden_rounds import FIRST_ROUND, Rounds
from gateway.history.apply_profile import ProfileResult, apply_profile
from gateway.history.bound_state import BoundState, Passes, with_bound_state
from gateway.history.directives import InForce, in_force, with_fields, with_messages, with_unsent
from gateway.history.own_state import with_own_state
from gateway.history.prepare import Prepared, Substitution, prepare
from gateway.history.repair import in_client_order
from gateway.history.system_reminders import behind_others, keep_in_place
from gateway.providers.messages_rules import MessagesRules
from gateway.providers.tool_rules import NO_RULES

_NONE: Final[Sequence[Notice]] = ()


class RequestPlan(msgspec.Struct, frozen=True):
    """What is sent, what was changed for it, and what the answer is held to.

    `prepared` is the history with every fault repaired and within its limits, `profiled` the same in the form of its
    provider, `conversation` what `request` encodes. `passes`: the backend has the client's own API, so that every field
    passes in both directions.

    The answer is searched for the stop sequences in `watched`. `demands` stand in the prompt, `required` is the choice
    of a call that a field of the backend asks for: the answer is checked for both; None: there are none. `one_call`:
    of several calls, the client gets the first one. `removed`: the functions that the client's messages have removed,
    with the index of each message; the client gets no call of one. `held` are the functions that are not offered yet;
    None: all are. `bound`: the model takes signed thinking back only behind what it was made behind.
    """

    prepared: Prepared
    profiled: ProfileResult
    conversation: Conversation
    request: BackendRequest
    notices: list[Notice]
    passes: bool
    watched: Sequence[str]
    demands: Demands | None
    required: ToolChoice | None
    one_call: bool
    removed: Mapping[str, int]
    held: HeldTools | None = None
    bound: bool = False


def plan_request(
    adapter: Adapter,
    conversation: Conversation,
    policy: Policy,
    summary: Substitution | None,
    label: str | None,
    window: int | None,
    rounds: Rounds = FIRST_ROUND,
) -> RequestPlan:
    """Returns the plan of a request; the arguments are those of `Exchange`.

    Raises InvalidRequest (or Unsupported) for a conversation that cannot be sent.
    """
    capabilities, profile = adapter.capabilities, policy.profile
    passes = conversation.dialect == capabilities.passthrough
    messages = None if capabilities.messages is None else profile.messages or capabilities.messages
    asked = conversation
    state: InForce | None = None
    noticed: list[Notice] = []
    if conversation.directives:
        conversation, state = _with_fields_in_force(conversation, policy, messages, noticed, passes=passes)
    noticed += check_capabilities(conversation, capabilities)
    watched: Sequence[str] = ()
    refuses_one = False
    if conversation.sampling.stop or (capabilities.request_rules and profile.request_rules is not None):
        watched, refuses_one = _checked(conversation, capabilities, policy, passes=passes)
    prepared = prepare(conversation, policy, summary)
    sent, repaired = _as_sent(prepared, asked, state, capabilities, policy, messages, label, passes=passes)
    sent = _behind_rounds(sent, rounds) if rounds.turns else sent
    waits = conversation.tools and (conversation.deferred is not None or policy.tool_loading != "all")
    sent, held, holding = (
        hold_tools(sent, conversation.turns, policy, capabilities, rounds.found, rounds.last)
        if waits
        else (sent, None, _NONE)
    )
    noticed += holding
    demands = None
    if capabilities.prompts and not passes and (demands := find_demands(sent, capabilities.prompts)):
        sent, worded = with_words(sent, demands)
        noticed += worded
    kept: list[Notice] = []
    if not passes:
        sent, kept = replace_shown(sent, prepared.repaired.turns, capabilities, policy)
    in_place: list[Notice] = []
    # A text has a label for system text at any place.
    if capabilities.system == "first" or (profile.system == "first" and not capabilities.text_only):
        sent, in_place = _system_in_place(sent, policy, messages, passes=passes)
    tool_rules = profile.tool_rules or capabilities.tool_rules
    if tool_rules != NO_RULES and (sent.tools or sent.params.get("tools")):
        sent, fitted = fit_tools(sent, tool_rules)
        noticed += fitted
    profiled = apply_profile(
        sent,
        profile,
        result_media=capabilities.result_media,
        call_id=capabilities.call_id,
        messages=capabilities.messages is not None,
    )
    encoded = profiled.conversation
    # A backend that receives every field receives every part.
    further, carried = None, ""
    if not passes:
        encoded, replaced = keep_to(encoded, capabilities, policy)
        kept += replaced
        encoded, further, carried, marked = _with_caches(encoded, capabilities, policy)
        kept += marked
    if window is not None:
        encoded, lowered = with_room(encoded, window)
        kept += lowered
    if watched and "stop" in capabilities.supported_params:
        encoded = _without_stops(encoded, watched)
    request = adapter.encode(encoded, policy)
    notices = [
        # A backend of the client's dialect receives the fields as the client wrote them.
        *(conversation.notices and [one for one in conversation.notices if not passes or one.action == "moved"]),
        *noticed,
        *repaired,
        *in_place,
        *profiled.notices,
        *kept,
        *request.notices,
    ]
    if not passes:
        notices += dropped_fields(encoded, capabilities, further, carried)
    required = None
    if conversation.tool_choice not in ("auto", "none") and (passes or "tool_choice" not in capabilities.prompts):
        required = _required_choice(prepared.conversation)
    asks_one = passes or ONE_CALL in capabilities.supported_params
    one_call = bool(conversation.tools) and (refuses_one or not (conversation.parallel_tool_calls or asks_one))
    removed = {} if state is None else state.removed
    hides = held is not None or bool(removed)
    bound = hides and messages is not None and messages.thinking_of(policy.base_model or encoded.model) == "bound"
    return RequestPlan(
        prepared,
        profiled,
        encoded,
        request,
        notices,
        passes,
        watched,
        demands,
        required,
        one_call,
        removed,
        held,
        bound,
    )


def _behind_rounds(conversation: Conversation, rounds: Rounds) -> Conversation:
    """Returns the conversation with what the rounds before this one have added to it."""
    turns = (*conversation.turns, *rounds.turns)
    return msgspec.structs.replace(conversation, turns=turns, ends_with_result=True)


def _with_caches(
    conversation: Conversation, capabilities: Capabilities, policy: Policy
) -> tuple[Conversation, FurtherFields, str, list[Notice]]:
    """Returns the conversation with what its backend reads of caches, its further fields, the name of the field among
    them that is the backend's mark (empty: none), and the notices."""
    further, carried = further_fields(conversation), ""
    notices: list[Notice] = []
    if has_cache(capabilities):
        names = (*further.messages, *further.tools, *conversation.params)
        if not (MARK_NAMES.isdisjoint(names) and FIELD_NAMES.isdisjoint(names)):
            rules = cache_rules(capabilities, policy, conversation.model)
            conversation, notices = translate_marks(conversation, rules)
            if rules is not None:
                further, carried = further_fields(conversation), rules.mark
    if policy.prompt_cache.key and KEY in capabilities.supported_params:
        conversation, added = with_cache_key(conversation)
        notices = [*notices, *added]
    return conversation, further, carried, notices


def _checked(
    conversation: Conversation, capabilities: Capabilities, policy: Policy, *, passes: bool
) -> tuple[Sequence[str], bool]:
    """Returns the stop sequences for which the answer is searched, and whether the provider refuses the wish for one
    call at a time. Raises InvalidRequest for a request that the provider would refuse."""
    rules = policy.profile.request_rules if capabilities.request_rules else None
    stops = conversation.sampling.stop
    of_stops, refuses_one = None, False
    if rules is not None:
        model = policy.base_model or conversation.model
        check_rules(conversation, rules, model)
        of_stops = rules.stops_of(model) if stops else None
        refuses_one = not conversation.parallel_tool_calls and rules.refuse(ONE_CALL, model)
    if not stops or (of_stops is None and passes):
        return (), refuses_one
    watched = watched_sequences(stops, capabilities, of_stops)
    if watched:
        check_sequences(watched, conversation.paths)
    return watched, refuses_one


def _as_sent(
    prepared: Prepared,
    asked: Conversation,
    state: InForce | None,
    capabilities: Capabilities,
    policy: Policy,
    messages: MessagesRules | None,
    label: str | None,
    *,
    passes: bool,
) -> tuple[Conversation, Sequence[Notice]]:
    """Returns the prepared conversation with the opaque state that the backend may read and with its directives
    applied, and the notices so far. `asked` is the client's; `state` is what its directives leave in force, None where
    the backend takes them itself."""
    conversation, notices = prepared.conversation, prepared.notices
    if passes and capabilities.results == "anywhere":
        conversation, notices = in_client_order(conversation, notices)
    if label is not None:
        conversation, left_out = with_own_state(conversation, label, passes=passes)
        notices = (*notices, *left_out)
    if messages is not None:
        conversation, changed = _with_bound_state(conversation, prepared.passes, policy, messages)
        notices = (*notices, *changed)
    if asked.directives:
        conversation, applied = (
            with_unsent(conversation, asked) if state is None else with_messages(conversation, asked, state)
        )
        notices = (*notices, *applied)
    return conversation, notices


def _with_bound_state(
    conversation: Conversation, passes: Passes | None, policy: Policy, rules: MessagesRules
) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation with thinking only behind what it was made behind, where the model binds it to that."""
    model = policy.base_model or conversation.model
    if passes is None or rules.thinking_of(model) != "bound":
        return conversation, []
    bound = BoundState(rules.provider, drops=rules.of_model(model) is not None)
    return with_bound_state(conversation, passes, policy, bound)


def _with_fields_in_force(
    conversation: Conversation, policy: Policy, messages: MessagesRules | None, noticed: list[Notice], *, passes: bool
) -> tuple[Conversation, InForce | None]:
    """Returns the conversation whose fields ask for what its directives leave in force, and what that is, and adds the
    notices. None: the backend takes the directives themselves."""
    if passes and _takes_directives(conversation, policy, messages):
        return conversation, None
    state = in_force(conversation)
    conversation, applied = with_fields(conversation, state)
    noticed += applied
    return conversation, state


def _takes_directives(conversation: Conversation, policy: Policy, rules: MessagesRules | None) -> bool:
    """Returns whether a backend of the client's own API takes directives in mid-conversation: any but one whose model
    is known to take no message of the system there.

    Source: Anthropic, "Mid-conversation system messages": changes of tools are for the same models.
    """
    if policy.profile.system == "first":
        return False
    model = None if rules is None else rules.of_model(policy.base_model or conversation.model)
    return model is None or model.system == "anywhere"


def _system_in_place(
    conversation: Conversation, policy: Policy, rules: MessagesRules | None, *, passes: bool
) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation with system text only where the backend takes it. A client of the backend's own API says
    itself where that is, unless the model is known to refuse it."""
    model = None if rules is None else rules.of_model(policy.base_model or conversation.model)
    if passes and policy.profile.system != "first":
        refused = model is not None and model.system == "first" and behind_others(conversation.turns)
        return keep_in_place(conversation) if refused else (conversation, [])
    return keep_in_place(conversation, native=model is not None and model.system == "anywhere")


def _without_stops(conversation: Conversation, watched: Sequence[str]) -> Conversation:
    """Returns the conversation with the stop sequences that the backend applies itself."""
    stop = tuple([one for one in dict.fromkeys(conversation.sampling.stop) if one not in watched])
    sampling = msgspec.structs.replace(conversation.sampling, stop=stop)
    params = {name: value for name, value in conversation.params.items() if name != "stop"}
    return msgspec.structs.replace(
        conversation, sampling=sampling, params={**params, "stop": [*stop]} if stop else params
    )


def _required_choice(conversation: Conversation) -> ToolChoice | None:
    """Returns the choice of a client that requires a call of a function; None if another tool would do as well."""
    choice = conversation.tool_choice
    if isinstance(choice, NamedTool):
        required = choice.name in [tool.name for tool in conversation.tools]
    else:
        required = choice == "required" and bool(conversation.tools) and not conversation.other_tools
    return choice if required else None
