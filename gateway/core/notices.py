"""Defines a change or an observation of the gateway as a value; the server turns it into log lines and headers."""

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, final

import msgspec
from msgspec import UNSET, UnsetType

Stage = Literal[
    "decode",
    "validate",
    "repair",
    "state",
    "classify",
    "guard",
    "trim",
    "flatten",
    "profile",
    "encode",
    "backend",
    "unwrap",
]
Action = Literal["added", "changed", "dropped", "moved", "shortened", "ignored", "seen", "failed"]
Level = Literal["debug", "info", "warning", "error"]

# docs/notices.md and docs/rules.md list them. An adapter or dialect of another package may have rules of its own, so
# that a notice that is read from bytes has any text as its rule.
if TYPE_CHECKING:
    NoticeRule: TypeAlias = Literal[
        "ACTION_IGNORED",
        "ACTION_SKIPPED",
        "ANSWER_LABEL_DROPPED",
        "ANSWER_STEERED",
        "ANSWER_UNFENCED",
        "ARGUMENTS_AS_OBJECT",
        "ARGUMENTS_AS_TEXT",
        "ARGUMENTS_BROKEN",
        "ARGUMENTS_EXTENDED",
        "BACKEND_CREDENTIAL",
        "BLANK_TEXT_NOT_SENT",
        "BLOCK_BINDING_ADDED",
        "BRIDGE_ADDED",
        "CACHE_KEY_ADDED",
        "CACHE_MARKS_CHANGED",
        "CACHE_MARKS_PLACED",
        "CACHE_MARKS_REFUSED",
        "CALLS_EMPTY",
        "CALLS_TYPE",
        "CALLS_UNANSWERED",
        "CALL_ARGS_TYPE",
        "CALL_EMPTY",
        "CALL_FIELD_LATE",
        "CALL_FORMS_MIXED",
        "CALL_ID_ADDED",
        "CALL_ID_DUPLICATE",
        "CALL_ID_MISSING",
        "CALL_ID_RENAMED",
        "CALL_ID_SHAPE",
        "CALL_MARK_ESCAPED",
        "CALL_NAME",
        "CALL_TYPE",
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
        "DEMAND_IN_WORDS",
        "DEPRECATED_FORM_CHANGED",
        "DIRECTIVE_APPLIED",
        "DOCUMENT_NOT_READ",
        "DOCUMENT_READ",
        "EFFORT_CHANGED",
        "EFFORT_NOT_SENT",
        "EFFORT_REFUSED",
        "EMPTY_ANSWER",
        "EMPTY_TEXT_FILLED",
        "EMPTY_TURN_NOT_SENT",
        "ENVELOPE_BROKEN",
        "ENVELOPE_FIELD_DROPPED",
        "ENVELOPE_OPENED",
        "ERROR_PART_NOT_SENT",
        "FIELD_NOT_SENT",
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
        "IMAGE_DESCRIBED",
        "IMAGE_NOT_DESCRIBED",
        "IMAGE_REFUSED",
        "ITEM_NOT_SENT",
        "ITEM_REPEATED",
        "KEY_ORDER_LOST",
        "LATE_CONTENT",
        "LATE_EVENT",
        "LATE_FAULT",
        "LATE_INIT",
        "LIMIT_REFUSED",
        "LOOP_NUDGED",
        "LOOP_SEEN",
        "LOOP_TOOLS_OFF",
        "MALFORMED_EVENT",
        "MAX_TOKENS_ADDED",
        "MAX_TOKENS_LOWERED",
        "MAX_TOKENS_RAISED",
        "MAX_TOKENS_REFUSED",
        "MEDIA_PRUNED",
        "MESSAGES_DROPPED",
        "MESSAGES_EMPTY",
        "MESSAGES_MOVED",
        "MESSAGE_CLEARED",
        "MESSAGE_IGNORED",
        "METHOD_UNIMPLEMENTED",
        "MODEL_FALLBACK",
        "MODEL_SWITCHED",
        "NATIVE_CALL_DROPPED",
        "NOT_OBJECT",
        "NUMBER_INEXACT",
        "OTHER_CHOICE",
        "OVERFLOW_ESTIMATED",
        "PARAM_REFUSED",
        "PART_NOT_SENT",
        "PART_TYPE",
        "PART_UNKNOWN",
        "PREFIX_CHANGED",
        "REASONING_ADDED",
        "REASONING_DROPPED",
        "REASONING_MISSING",
        "REASONING_NOT_SENT",
        "REASONING_NOT_SHOWN",
        "REASONING_REFUSED",
        "REASONING_RENAMED",
        "RECENT_RESULTS_ADDED",
        "REFUSAL_AS_TEXT",
        "REMOVED_TOOL_CALLED",
        "REQUEST_FIELD_CHANGED",
        "REQUEST_FIELD_DROPPED",
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
        "SECOND_CALL_DROPPED",
        "SESSION_IGNORED",
        "SHOWN_CALL_REPLACED",
        "SHOWN_TEXT_REPLACED",
        "SEARCH_NOT_ANSWERED",
        "SIGNATURE_ADDED",
        "SIGNATURE_MISSING",
        "STATE_AMBIGUOUS",
        "STATE_FOREIGN",
        "STATE_INVALID",
        "STATE_MISSING",
        "STATE_NOT_SHOWN",
        "STATE_PREFIX_CHANGED",
        "STATE_PRESENT",
        "STATE_RESTORED",
        "STATE_UNCONFIRMED",
        "STATE_UNLABELLED",
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
        "TOOL_CHOICE_IGNORED",
        "TOOL_CHOICE_REFUSED",
        "TOOL_ID_DUPLICATE",
        "TOOL_ID_MISSING",
        "TOOL_ID_UNKNOWN",
        "TOOL_KIND_REFUSED",
        "TOOL_NAME_DERIVED",
        "TOOL_NAME_DROPPED",
        "TOOL_NAME_MISSING",
        "TOOL_NAME_RENAMED",
        "TOOL_NAME_SHAPE",
        "TOOL_NOT_ALLOWED",
        "TOOL_NOT_SENT",
        "TOOL_NOT_STRICT",
        "TOOL_ORPHAN",
        "TOOL_REMOVED",
        "TOOL_REPEATED",
        "TOOL_RESULTS_ELIDED",
        "TOOL_RESULTS_FITTED",
        "TOOL_RESULTS_LIMITED",
        "TOOL_RESULT_EXTRACTED",
        "TOOL_RESULT_SHORTENED",
        "TOOL_SCHEMA_CHANGED",
        "TOOL_SCHEMA_REFUSED",
        "TOOL_TURN_AS_TEXT",
        "TRANSACTION_OPEN",
        "TRANSACTION_UNBALANCED",
        "TURNS_MERGED",
        "TURN_INTERRUPTED",
        "TURN_INVENTED",
        "TURN_NAME_NOT_SENT",
        "TURN_NOT_SENT",
        "UNKNOWN_EVENT",
        "UNKNOWN_MASK_PATH",
        "UNKNOWN_VARIANT",
        "USAGE_ESTIMATED",
        "USAGE_REQUESTED",
        "USER_HASHED",
        "USER_TURNS_PINNED",
        "USER_TURN_ADDED",
        "USER_TURN_KEPT",
        "USER_TURN_SHORTENED",
    ]
else:
    NoticeRule = str

# Notices that report an observed or kept value, not a change to the request or response.
NO_CHANGE: Final[frozenset[Action]] = frozenset({"seen", "ignored", "failed"})
# Those of pictures and PDFs that were read as text, or should have been.
READ_RULES: Final[frozenset[NoticeRule]] = frozenset(
    {"IMAGE_DESCRIBED", "IMAGE_NOT_DESCRIBED", "DOCUMENT_READ", "DOCUMENT_NOT_READ"}
)
# Those of an answer that took several requests.
HIDDEN_ROUNDS: Final[frozenset[tuple[NoticeRule, Action]]] = frozenset(
    {("TOOLS_LOADED", "added"), ("REMOVED_TOOL_CALLED", "dropped")}
)


class Reported(set[object]):
    """The keys of what was reported of one response: a backend that breaks a rule breaks it in every event."""

    def is_new(self, key: object) -> bool:
        """Returns whether nothing was reported under this key, and remembers it."""
        if key in self:
            return False
        self.add(key)
        return True


class UnknownValue(msgspec.Struct, frozen=True):
    """A part of a backend's message that its schema does not know: a field of the message at `path` (a value of the
    enum field at `path`), by its number."""

    path: str
    number: int


@final
class Notice(msgspec.Struct, frozen=True):
    """One change or observation.

    `rule` is a stable code (docs/notices.md lists them all); `index` the message's position in the client's request;
    `detail` one sentence with names and counts, never with contents. For the rules that people grep for, the detail is
    the log line itself. `unknown` is set where the detail is about such a part of a message, and `fields` where a rule
    is about any field: the names of those of which something is lost, as chat completions has them, or as they stand in
    a message, a tool or a part.
    """

    stage: Stage
    action: Action
    rule: NoticeRule
    detail: str
    index: int | None = None
    tool_call_id: str | None = None
    level: Level = "info"
    unknown: UnknownValue | UnsetType = UNSET
    fields: tuple[str, ...] | UnsetType = UNSET
