"""Defines the words by which a client forbids losses (`x-dragoman-require`), and says which notice breaks which word.

In: the notices of a request or of its answer. Out: the broken words. The tables of docs/requirements.md are made from
these. Each rule is judged by its row in docs/notices.md: a word is broken where something of its kind that a client has
sent or asked for, or that the model has sent, does not arrive or is another one. Another form of the same meaning
breaks no word, and none is about whole messages: limits and summaries of a history are the operator's.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, get_args

from msgspec import UNSET

from gateway.core.notices import Action, Level, Notice, NoticeRule

Requirement: TypeAlias = Literal["tools", "effort", "images", "reasoning", "cache", "ids"]
# In the order in which losses weigh, the heaviest first.
REQUIREMENTS: Final[tuple[Requirement, ...]] = get_args(Requirement)

# The word that a rule breaks.
BREACHES: Final[Mapping[NoticeRule, Requirement]] = {
    # tools
    "ARGUMENTS_AS_TEXT": "tools",
    "ARGUMENTS_EXTENDED": "tools",
    "CALLS_TYPE": "tools",
    "CALL_FIELD_LATE": "tools",
    "CALL_FORMS_MIXED": "tools",
    "CALL_NAME": "tools",
    "CALL_TYPE": "tools",
    "ENVELOPE_FIELD_DROPPED": "tools",
    "ITEM_NOT_SENT": "tools",
    "LOOP_TOOLS_OFF": "tools",
    "NATIVE_CALL_DROPPED": "tools",
    "NUMBER_INEXACT": "tools",
    "SHOWN_CALL_REPLACED": "tools",
    "TOOL_CHOICE_IGNORED": "tools",
    "TOOL_ID_DUPLICATE": "tools",
    "TOOL_ID_UNKNOWN": "tools",
    "TOOL_NOT_SENT": "tools",
    "TOOL_NOT_STRICT": "tools",
    "TOOL_ORPHAN": "tools",
    "TOOL_REPEATED": "tools",
    "TOOL_RESULTS_ELIDED": "tools",
    "TOOL_RESULTS_FITTED": "tools",
    "TOOL_RESULTS_LIMITED": "tools",
    "TOOL_RESULT_SHORTENED": "tools",
    "TOOL_TURN_AS_TEXT": "tools",
    # effort
    "EFFORT_CHANGED": "effort",
    "EFFORT_NOT_SENT": "effort",
    # images
    "DOCUMENT_NOT_READ": "images",
    "DOCUMENT_READ": "images",
    "ERROR_PART_NOT_SENT": "images",
    "IMAGE_DESCRIBED": "images",
    "IMAGE_NOT_DESCRIBED": "images",
    "MEDIA_PRUNED": "images",
    "PART_NOT_SENT": "images",
    # reasoning
    "BLOCK_BINDING_ADDED": "reasoning",
    "REASONING_ADDED": "reasoning",
    "REASONING_DROPPED": "reasoning",
    "REASONING_NOT_SENT": "reasoning",
    "REASONING_NOT_SHOWN": "reasoning",
    "SIGNATURE_ADDED": "reasoning",
    "STATE_AMBIGUOUS": "reasoning",
    "STATE_FOREIGN": "reasoning",
    "STATE_MISSING": "reasoning",
    "STATE_NOT_SHOWN": "reasoning",
    "STATE_PREFIX_CHANGED": "reasoning",
    "STATE_UNCONFIRMED": "reasoning",
    "STATE_UNLABELLED": "reasoning",
    # cache
    "PREFIX_CHANGED": "cache",
    # ids
    "CALL_ID_ADDED": "ids",
    "CALL_ID_DUPLICATE": "ids",
    "CALL_ID_MISSING": "ids",
    "CALL_ID_RENAMED": "ids",
    "TOOL_ID_MISSING": "ids",
    "TOOL_NAME_DROPPED": "ids",
    "TOOL_NAME_RENAMED": "ids",
    "TURN_NAME_NOT_SENT": "ids",
    "USER_HASHED": "ids",
}

# Rules about any field: the field decides.
BY_FIELD: Final[frozenset[NoticeRule]] = frozenset(
    {
        "CACHE_MARKS_CHANGED",
        "DEMAND_IN_WORDS",
        "FIELD_NOT_SENT",
        "REQUEST_FIELD_CHANGED",
        "REQUEST_FIELD_DROPPED",
        "TURN_NOT_SENT",
    }
)
# By the names of chat completions, and by those of the fields of messages, tools and parts.
FIELDS: Final[Mapping[str, Requirement]] = {
    "description": "tools",
    "tool_call_id": "tools",
    "tool_calls": "tools",
    "tool_choice": "tools",
    "tools": "tools",
    "functions": "tools",
    "function_call": "tools",
    "strict": "tools",
    "input_examples": "tools",
    "output_schema": "tools",
    "response": "tools",
    "is_error": "tools",
    "reasoning_effort": "effort",
    "thinking": "effort",
    "image_url": "images",
    "extra_content": "reasoning",
    "reasoning": "reasoning",
    "reasoning_content": "reasoning",
    "reasoning_details": "reasoning",
    "thought_signature": "reasoning",
    "cache_control": "cache",
    "prompt_cache_breakpoint": "cache",
    "prompt_cache_key": "cache",
    "prompt_cache_options": "cache",
    "prompt_cache_retention": "cache",
    "call id": "ids",
    "name": "ids",
    "safety_identifier": "ids",
    "user": "ids",
}

# Actions that lose something; those of the rules in `OBSERVED` that were only seen report a loss, too.
_LOSES: Final[frozenset[Action]] = frozenset({"added", "changed", "dropped", "shortened"})
OBSERVED: Final[frozenset[NoticeRule]] = frozenset(
    {
        "DOCUMENT_READ",
        "IMAGE_DESCRIBED",
        "PREFIX_CHANGED",
        "SHOWN_CALL_REPLACED",
        "STATE_AMBIGUOUS",
        "STATE_MISSING",
        "STATE_UNCONFIRMED",
        "TOOL_CHOICE_IGNORED",
    }
)
# The levels of a loss, for rules that also report what is none.
LEVELS: Final[Mapping[NoticeRule, frozenset[Level]]] = {
    "CALL_ID_ADDED": frozenset({"warning"}),
    "NUMBER_INEXACT": frozenset({"info", "warning"}),
    # At the level debug, the client has declined it.
    "REASONING_NOT_SHOWN": frozenset({"info"}),
    "TOOL_REPEATED": frozenset({"warning"}),
}

# Rules that break no word.
HARMLESS: Final[frozenset[NoticeRule]] = frozenset(
    {
        "ACTION_IGNORED",
        "ACTION_SKIPPED",
        "ANSWER_LABEL_DROPPED",
        "ANSWER_STEERED",
        "ANSWER_UNFENCED",
        "ARGUMENTS_AS_OBJECT",
        "ARGUMENTS_BROKEN",
        "BACKEND_CREDENTIAL",
        "BLANK_TEXT_NOT_SENT",
        "BRIDGE_ADDED",
        "CACHE_KEY_ADDED",
        "CACHE_MARKS_PLACED",
        "CACHE_MARKS_REFUSED",
        "CALLS_EMPTY",
        "CALLS_UNANSWERED",
        "CALL_ARGS_TYPE",
        "CALL_EMPTY",
        "CALL_ID_SHAPE",
        "CALL_MARK_ESCAPED",
        "CHOICE_FIELDS_DROPPED",
        "COMPACTION_MADE",
        "COMPACTION_OPENED",
        "COMPACTION_SUPERSEDED",
        "COMPACTION_UNREADABLE",
        "COMPACTION_UNWRITTEN",
        "COMPRESSION_FUTILE",
        "CONTENT_BESIDE_CALLS",
        "CONTENT_EMPTY_ARRAY",
        "CONTENT_JOINED",
        "CONTENT_MISSING",
        "CONTENT_TYPE",
        "CONTEXT_OVERFLOW",
        "CONTEXT_WINDOW",
        "CONTINUATION_ADDED",
        "CONVERSATION_SUMMARIZED",
        "COUNT_ESTIMATED",
        "DEPRECATED_FORM_CHANGED",
        "DIRECTIVE_APPLIED",
        "EFFORT_REFUSED",
        "EMPTY_ANSWER",
        "EMPTY_TEXT_FILLED",
        "EMPTY_TURN_NOT_SENT",
        "ENVELOPE_BROKEN",
        "ENVELOPE_OPENED",
        "FIELD_NOT_SHOWN",
        "FINISH_REASON_MISSING",
        "FINISH_REASON_PASSED",
        "FINISH_REASON_UNKNOWN",
        "FIRST_TURN_ROLE",
        "FOREIGN_FORM",
        "FORMAT_REFUSED",
        "HISTORY_LIMITED",
        "HISTORY_REFUSED",
        "HISTORY_SUMMARIZED",
        "IMAGE_ATTACHED",
        "IMAGE_REFUSED",
        "ITEM_REPEATED",
        "KEY_ORDER_LOST",
        "LATE_CONTENT",
        "LATE_EVENT",
        "LATE_FAULT",
        "LATE_INIT",
        "LIMIT_REFUSED",
        "LOOP_NUDGED",
        "LOOP_SEEN",
        "MALFORMED_EVENT",
        "MAX_TOKENS_ADDED",
        "MAX_TOKENS_LOWERED",
        "MAX_TOKENS_RAISED",
        "MAX_TOKENS_REFUSED",
        "MESSAGES_DROPPED",
        "MESSAGES_EMPTY",
        "MESSAGES_MOVED",
        "MESSAGE_CLEARED",
        "MESSAGE_IGNORED",
        "METHOD_UNIMPLEMENTED",
        "MODEL_FALLBACK",
        "MODEL_SWITCHED",
        "NOT_OBJECT",
        "OTHER_CHOICE",
        "OVERFLOW_ESTIMATED",
        "PARAM_REFUSED",
        "PART_TYPE",
        "PART_UNKNOWN",
        "REASONING_MISSING",
        "REASONING_REFUSED",
        "REASONING_RENAMED",
        "RECENT_RESULTS_ADDED",
        "REFUSAL_AS_TEXT",
        "REMOVED_TOOL_CALLED",
        "REQUEST_FIELD_RENAMED",
        "REQUEST_REFUSED",
        "RESPONSE_COMPRESSED",
        "RESPONSE_NOT_STORED",
        "RESULTS_FIRST",
        "RESULTS_IN_CALL_ORDER",
        "RESULT_MEDIA_MOVED",
        "ROLE_ORDER",
        "ROLE_RENAMED",
        "ROLE_TYPE",
        "ROLE_UNKNOWN",
        "ROLLED_BACK",
        "SAMPLING_REFUSED",
        "SCHEMA_NOT_FOLLOWED",
        "SCHEMA_OUTDATED",
        "SEARCH_NOT_ANSWERED",
        "SECOND_CALL_DROPPED",
        "SESSION_IGNORED",
        "SHOWN_TEXT_REPLACED",
        "SIGNATURE_MISSING",
        "STATE_INVALID",
        "STATE_PRESENT",
        "STATE_RESTORED",
        "STOP_REFUSED",
        "STORE_DOWN",
        "STORE_SLOW",
        "STREAM_MENDED",
        "SUBTASK_HIDDEN",
        "SUMMARY_BUDGET",
        "SUMMARY_CANDIDATE",
        "SUMMARY_FAILED",
        "SUMMARY_MISMATCH",
        "SUMMARY_REJECTED",
        "SUMMARY_STARTED",
        "SUMMARY_STORED",
        "SYSTEM_AS_USER",
        "SYSTEM_FOLDED",
        "SYSTEM_MARK_ESCAPED",
        "TAIL_BROKEN",
        "TEXT_BLANK",
        "TEXT_CALL_BROKEN",
        "TEXT_CALL_CUT",
        "TEXT_CALL_MENDED",
        "TEXT_CALL_UNKNOWN",
        "TEXT_MENDED",
        "TEXT_OUT_OF_ORDER",
        "TEXT_UNICODE",
        "THINKING_REFUSED",
        "THINKING_UNSIGNED",
        "THOUGHT_UNCLOSED",
        "TOOLS_COUNT",
        "TOOLS_HELD_BACK",
        "TOOLS_LOADED",
        "TOOLS_MISSING",
        "TOOLS_NAME",
        "TOOLS_NOT_OFFERED",
        "TOOLS_REFUSED",
        "TOOL_AS_FUNCTION",
        "TOOL_CHOICE_REFUSED",
        "TOOL_KIND_REFUSED",
        "TOOL_NAME_DERIVED",
        "TOOL_NAME_MISSING",
        "TOOL_NAME_SHAPE",
        "TOOL_NOT_ALLOWED",
        "TOOL_REMOVED",
        "TOOL_RESULT_EXTRACTED",
        "TOOL_SCHEMA_CHANGED",
        "TOOL_SCHEMA_REFUSED",
        "TRANSACTION_OPEN",
        "TRANSACTION_UNBALANCED",
        "TURNS_MERGED",
        "TURN_INTERRUPTED",
        "TURN_INVENTED",
        "UNKNOWN_EVENT",
        "UNKNOWN_MASK_PATH",
        "UNKNOWN_VARIANT",
        "USAGE_ESTIMATED",
        "USAGE_REQUESTED",
        "USER_TURNS_PINNED",
        "USER_TURN_ADDED",
        "USER_TURN_KEPT",
        "USER_TURN_SHORTENED",
    }
)


def broken(notice: Notice) -> tuple[Requirement, ...]:
    """Returns the words that a notice breaks, in the order of `REQUIREMENTS`; of a rule that no table has, none."""
    rule = notice.rule
    if rule in BY_FIELD:
        fields = () if notice.fields is UNSET else notice.fields
        found = {FIELDS[name] for field in fields if (name := field.partition(".")[0]) in FIELDS}
        return tuple([word for word in REQUIREMENTS if word in found])
    word = BREACHES.get(rule)
    if word is None or (notice.action not in _LOSES and rule not in OBSERVED):
        return ()
    return (word,) if rule not in LEVELS or notice.level in LEVELS[rule] else ()


def breaches(notices: Iterable[Notice]) -> Mapping[Requirement, tuple[Notice, ...]]:
    """Returns the broken words in the order of `REQUIREMENTS`, each with the notices that break it."""
    found: dict[Requirement, list[Notice]] = {}
    for notice in notices:
        for word in broken(notice):
            found.setdefault(word, []).append(notice)
    return {word: tuple(found[word]) for word in REQUIREMENTS if word in found}
