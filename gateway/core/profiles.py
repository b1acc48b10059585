"""Describes, as data, which requests OpenAI-compatible providers accept.

The source of every entry is a provider's documentation or error text. A profile changes only what its provider
requires; the default one changes nothing. `settings.json` may add profiles (`profiles.NAME`, where `base` names the
profile to start from).
"""

import re
from typing import Final, Literal

import msgspec

from gateway.core import provider_requests
from gateway.core.messages_rules import MessagesModel, MessagesRules
from gateway.core.request_rules import RequestRules
from gateway.core.state_rule import StateRule
from gateway.core.tool_rules import ToolRules

Reasoning = Literal["keep", "drop", "echo_in_tool_loop", "echo_all_tool_turns"]

# Shorter derived identifiers could collide.
LEAST_ROOM: Final = 8
_MOST_ROOM: Final = 64


class Alphabet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The identifiers that a provider accepts: a regular-expression class of characters and lengths in characters.

    `first` restricts the first character further. None of `characters` means: any.
    """

    characters: str | None = None
    first: str | None = None
    shortest: int = 1
    longest: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for an alphabet that permits no derived identifiers."""
        for letters, needed in ((self.characters, "t0123456789abcdef"), (self.first, "t")):
            if letters is not None and not _matches(letters, needed):
                raise ValueError(f"[{letters}] must be a regular expression that matches each of {needed}")
        if not 0 <= self.shortest <= min(self.longest or _MOST_ROOM, _MOST_ROOM):
            raise ValueError(f"shortest must be a whole number from 0 to longest, at most {_MOST_ROOM}")
        if self.longest is not None and self.longest < LEAST_ROOM:
            raise ValueError(f"longest must be a whole number of {LEAST_ROOM} or more; it is {self.longest}")


def _matches(letters: str, needed: str) -> bool:
    try:
        return re.fullmatch(f"[{letters}]+", needed) is not None
    except re.error:
        return False


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rules of one provider.

    - `call_id`, `tool_names`: identifiers outside are replaced by derived ones, and restored in the response. A
      `call_id` that permits any says nothing: then the adapter's wire decides.
    - `arguments`: how `function.arguments` is written: JSON text, or a JSON object (Ollama's own API).
    - `content`: `string` where the provider refuses lists of text parts, for every role; `tool_content` for tool
      messages.
    - `result_media`: where an image or a file of a tool result is sent: in the result (`keep`), in a message of the
      user behind all results of the batch (`user`), or not at all (`placeholder`).
    - `tool_name`: whether a tool message names its function; `tool_name_field` is the field.
    - `tool_turns`: `text` where the provider lacks the roles of tool use: calls and results become plain turns.
    - `reasoning`: how the reasoning of earlier turns is sent. The two `echo` policies require it on assistant turns
      with tool calls (of the running loop, or of all) and put `reasoning_missing` where it was lost. `reasoning_field`
      is the message field that carries it; None: the field of the client's message.
    - `developer`: the role that carries what OpenAI calls `developer`.
    - `system`: `first` where only the leading message may be a system message: later ones are sent at their place, as
      marked text of the user.
    - `first_turn`: `user` where the first message after the system messages must be the user's.
    - `finish_reason`: `optional` where a stream that ends with `[DONE]` may have no finish reason.
    - `last_turn`: `user` where the last message that is no system message must not be the assistant's.
    - `alternation`: `strict` where two user or two assistant messages may not follow each other.
    - `user_after_tool`: `bridge` where an assistant message must stand between tool results and the next user message.
    - `reused_ids`: `rename` where each call needs an id of its own; `keep` where ids carry a meaning, so that no id is
      rewritten, whatever the wire says: a later call with the id of an earlier one then breaks no rule.
    - `choice_fields`: `drop` where a message must not carry the fields of its choice (`finish_reason`, `index`,
      `logprobs`), which clients that store whole choices send back.
    - `empty_beside_calls`: the content of an assistant message that only calls tools: unchanged, "" or null.
    - `empty_text`: the replacement for blank text where the provider refuses it; None: no replacement.
    - `max_tools`: a request with more tools is refused before anything is sent.
    - `tool_rules`: what the provider demands of the functions of a request; null: as the adapter's wire says.
    - `request_rules`: what the provider demands of the other fields of a chat completions request; null: nothing.
    - `missing_signature`: the value to send as Gemini's thought signature when it was lost; lowers quality, so opt-in.
    - `files`: the media types of files that messages may hold; null: as the adapter's wire says.
    - `messages`: what the provider demands of a request of the Messages API, also of the thinking of earlier turns,
      which is in blocks there and not in fields; null: as the adapter's wire says.
    - `state`: which state of its answers the provider wants back, for the state cache; null: as the adapter's wire
      says.
    """

    call_id: Alphabet = Alphabet()
    reused_ids: Literal["rename", "keep"] = "rename"
    tool_names: Alphabet = Alphabet()
    arguments: Literal["string", "object"] = "string"
    content: Literal["parts", "string"] = "parts"
    tool_content: Literal["parts", "string"] = "parts"
    result_media: Literal["keep", "user", "placeholder"] = "keep"
    tool_name: Literal["keep", "drop", "derive"] = "keep"
    tool_name_field: Literal["name", "tool_name"] = "name"
    tool_turns: Literal["native", "text"] = "native"
    reasoning: Reasoning = "keep"
    reasoning_field: str | None = None
    reasoning_missing: str | None = None
    developer: Literal["developer", "system"] = "developer"
    system: Literal["anywhere", "first"] = "anywhere"
    first_turn: Literal["any", "user"] = "any"
    last_turn: Literal["any", "user"] = "any"
    alternation: Literal["free", "strict"] = "free"
    user_after_tool: Literal["allow", "bridge"] = "allow"
    choice_fields: Literal["keep", "drop"] = "keep"
    empty_beside_calls: Literal["keep", "empty", "null"] = "keep"
    empty_text: str | None = None
    max_tools: int | None = None
    tool_rules: ToolRules | None = None
    request_rules: RequestRules | None = None
    missing_signature: str | None = None
    files: tuple[str, ...] | None = None
    messages: MessagesRules | None = None
    state: StateRule | None = None
    finish_reason: Literal["required", "optional"] = "required"


# "Invalid schema for function: object schema missing properties", "array schema missing items", and "schema must have
# type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
_OPENAI_TOOLS: Final = ToolRules(root="object", nested="complete")
# "function parameters is empty".
_WITH_PARAMETERS: Final = ToolRules(parameters="required")
_NO_STRICT: Final = ToolRules(most_strict=0)
_PDF: Final = ("application/pdf",)
_OPENAI_NAMES: Final = Alphabet(characters="A-Za-z0-9_-", longest=64)

# Servers of the Messages API that check no signature: DeepSeek, Kimi and MiniMax want their thinking back, without one.
_ANY_THINKING: Final = MessagesRules()
_NEWEST_CLAUDE: Final = MessagesModel(
    r"(.*\.)?claude-((fable|mythos)-5-[1-9]|(opus|sonnet)-5-[5-9])(?![0-9]).*",
    system="anywhere",
    sampling="default",
    refused_thinking=("enabled", "disabled"),
    forced_tools="never",
)
# Anthropic: "Preserved thinking" (a block counts while the system prompt, the tools and the messages before it are what
# they were; the older models have no such check), "Mid-conversation system messages", and the migration guides (of
# Claude 4.7: "setting temperature, top_p or top_k to any non-default value will return a 400 error", no more budgets;
# of Fable 5: thinking cannot be disabled; of Fable 5.1: a tool_choice of the type any or tool is a 400).
_CLAUDE: Final = (
    _NEWEST_CLAUDE,
    msgspec.structs.replace(
        _NEWEST_CLAUDE,
        models=r"(.*\.)?claude-haiku-5-[5-9](?![0-9]).*",
        refused_thinking=("enabled",),
        forced_tools="without_thinking",
    ),
    MessagesModel(
        r"(.*\.)?claude-(fable|mythos)-5(?![0-9]).*",
        thinking="signed",
        system="anywhere",
        sampling="default",
        refused_thinking=("enabled", "disabled"),
    ),
    MessagesModel(
        r"(.*\.)?claude-(opus-4-[89]|(opus|sonnet|haiku)-5)(?![0-9]).*",
        thinking="signed",
        system="anywhere",
        sampling="default",
        refused_thinking=("enabled",),
    ),
    MessagesModel(
        r"(.*\.)?claude-opus-4-7(?![0-9]).*", thinking="signed", sampling="default", refused_thinking=("enabled",)
    ),
    MessagesModel(r"(.*\.)?claude-(opus|sonnet|haiku)-4-[56](?![0-9]).*", thinking="signed", sampling="one"),
    MessagesModel(r"(.*\.)?claude-(instant|[123]|(opus|sonnet)-4).*", thinking="signed"),
)

NEUTRAL: Final = Profile()

PROFILES: Final[dict[str, Profile]] = {
    "none": NEUTRAL,
    # OpenAI refused longer ids than 40 with `string_above_max_length`, tool arrays over 128 with
    # `array_above_max_length`.
    "openai": Profile(
        call_id=Alphabet(longest=40),
        tool_names=_OPENAI_NAMES,
        tool_name="drop",
        reasoning="drop",
        result_media="user",
        files=_PDF,
        max_tools=128,
        tool_rules=_OPENAI_TOOLS,
        request_rules=provider_requests.OPENAI,
        choice_fields="drop",
    ),
    "deepseek": Profile(
        tool_names=_OPENAI_NAMES,
        tool_content="string",
        tool_name="drop",
        developer="system",
        reasoning="drop",
        empty_beside_calls="empty",
        max_tools=128,
        result_media="placeholder",
        request_rules=provider_requests.DEEPSEEK,
        messages=_ANY_THINKING,
        choice_fields="drop",
    ),
    # If the history holds a tool call, its reasoning is required in all later turns.
    "deepseek-thinking": Profile(
        tool_names=_OPENAI_NAMES,
        tool_content="string",
        tool_name="drop",
        developer="system",
        reasoning="echo_all_tool_turns",
        reasoning_field="reasoning_content",
        reasoning_missing="",
        empty_beside_calls="empty",
        max_tools=128,
        result_media="placeholder",
        request_rules=provider_requests.DEEPSEEK,
        messages=_ANY_THINKING,
        choice_fields="drop",
        state=StateRule(reasoning="plain", turns="calls", required="always"),
    ),
    # The chat template parses ids such as functions.NAME:0, so they must stay unchanged, also when a proxy counts from
    # 0 in every round.
    "kimi-thinking": Profile(
        reused_ids="keep",
        tool_names=_OPENAI_NAMES,
        tool_name="drop",
        developer="system",
        reasoning="echo_in_tool_loop",
        reasoning_field="reasoning_content",
        reasoning_missing=".",
        empty_beside_calls="empty",
        max_tools=128,
        result_media="user",
        tool_rules=ToolRules(root="object", most_strict=0),
        request_rules=provider_requests.KIMI,
        messages=_ANY_THINKING,
        choice_fields="drop",
        state=StateRule(reasoning="plain", turns="loop", required="always"),
    ),
    # The reasoning comes as text or in `reasoning_details`, as the request asks.
    "minimax": Profile(
        tool_names=_OPENAI_NAMES,
        tool_content="string",
        developer="system",
        result_media="user",
        tool_rules=_WITH_PARAMETERS,
        request_rules=provider_requests.MINIMAX,
        messages=_ANY_THINKING,
        choice_fields="drop",
        state=StateRule(reasoning="plain", fields=("reasoning_details",), turns="all"),
    ),
    # "Interleaved thinking": the reasoning of the running loop, unmodified and in its order.
    "glm": Profile(
        developer="system",
        reasoning_field="reasoning_content",
        result_media="user",
        tool_rules=_NO_STRICT,
        request_rules=provider_requests.GLM,
        messages=_ANY_THINKING,
        choice_fields="drop",
        state=StateRule(reasoning="plain", turns="loop"),
    ),
    # "Preserving reasoning": `reasoning_details` unmodified, whatever model stands behind.
    "openrouter": Profile(
        developer="system",
        result_media="user",
        files=_PDF,
        request_rules=provider_requests.OPENROUTER,
        messages=_ANY_THINKING,
        choice_fields="drop",
        state=StateRule(fields=("reasoning_details",), turns="all"),
    ),
    # Fields that it does not know are a 400, "Unknown name".
    # A tool message needs the name of its function, taken from the call and never from the client. A turn with calls
    # must follow a user turn or tool results. "Please ensure that multiturn requests end with a user role or a function
    # response."
    "gemini": Profile(
        tool_names=Alphabet(characters="A-Za-z0-9_.:-", first="A-Za-z_", longest=64),
        tool_content="string",
        tool_name="derive",
        developer="system",
        reasoning="drop",
        first_turn="user",
        last_turn="user",
        empty_beside_calls="empty",
        result_media="user",
        tool_rules=ToolRules(names="unique"),
        request_rules=provider_requests.GEMINI,
        choice_fields="drop",
        state=StateRule(provider="google", calls=True, turns="loop", required="always"),
    ),
    # The Messages API. "Invalid `signature` in `thinking` block", "text content blocks must be non-empty", "Tool names
    # must be unique", "temperature: range: 0..1".
    "anthropic": Profile(
        tool_rules=ToolRules(root="object", names="unique", most_strict=20),
        choice_fields="drop",
        messages=MessagesRules(thinking="bound", blank_text="drop", most_temperature=1, models=_CLAUDE),
        state=StateRule(provider="anthropic", reasoning="signed", turns="loop", required="thinking"),
    ),
    # "This model does not support assistant message prefill. The conversation must end with a user message."
    # It hoists every system and developer message to the beginning.
    "anthropic-compat": Profile(
        call_id=Alphabet(characters="A-Za-z0-9_-"),
        tool_names=_OPENAI_NAMES,
        tool_name="drop",
        developer="system",
        reasoning="drop",
        system="first",
        first_turn="user",
        last_turn="user",
        empty_beside_calls="null",
        empty_text="(empty)",
        tool_rules=ToolRules(root="object", names="unique"),
        request_rules=provider_requests.ANTHROPIC,
        choice_fields="drop",
    ),
    # Another field than its schema has is a 422, `extra_forbidden`.
    # Exactly nine alphanumeric characters, up to the eleventh version of its tokenizer. Its validator accepts a system
    # message only after another one or after the user's; its templates begin with the user.
    "mistral": Profile(
        call_id=Alphabet(characters="A-Za-z0-9", shortest=9, longest=9),
        tool_names=_OPENAI_NAMES,
        tool_name="derive",
        developer="system",
        reasoning="drop",
        system="first",
        first_turn="user",
        alternation="strict",
        user_after_tool="bridge",
        empty_beside_calls="empty",
        tool_rules=_WITH_PARAMETERS,
        request_rules=provider_requests.MISTRAL,
        choice_fields="drop",
    ),
    # "property 'prompt_cache_key' is unsupported".
    "groq": Profile(
        tool_names=_OPENAI_NAMES,
        content="string",
        tool_content="string",
        tool_name="drop",
        developer="system",
        reasoning="drop",
        max_tools=128,
        result_media="user",
        request_rules=provider_requests.GROQ,
        choice_fields="drop",
    ),
    # A field that it does not know, also in a message, is a 400, `wrong_api_format`: `reasoning_content` is one.
    "cerebras": Profile(
        developer="system",
        reasoning_field="reasoning",
        result_media="user",
        request_rules=provider_requests.CEREBRAS,
        choice_fields="drop",
    ),
    "ollama": Profile(
        arguments="object",
        content="string",
        tool_content="string",
        tool_name="derive",
        tool_name_field="tool_name",
        developer="system",
        reasoning="drop",
        empty_beside_calls="empty",
        result_media="user",
        request_rules=provider_requests.OLLAMA,
        messages=_ANY_THINKING,
        choice_fields="drop",
    ),
    # The strictest of the common templates: "After the optional system message, conversation roles must alternate user
    # and assistant roles except for tool calls and results."
    "vllm": Profile(
        tool_content="string",
        developer="system",
        system="first",
        first_turn="user",
        reasoning_field="reasoning",
        alternation="strict",
        user_after_tool="bridge",
        empty_beside_calls="empty",
        result_media="user",
        request_rules=provider_requests.VLLM,
        messages=_ANY_THINKING,
        choice_fields="drop",
    ),
    # "A conversation must start with a user message", and alternate. Most of its models require "the last turn in the
    # conversation to be a user message".
    "bedrock": Profile(
        call_id=Alphabet(characters="A-Za-z0-9_.:-", longest=64),
        tool_names=_OPENAI_NAMES,
        tool_name="drop",
        developer="system",
        reasoning="drop",
        first_turn="user",
        last_turn="user",
        alternation="strict",
        user_after_tool="bridge",
        empty_beside_calls="null",
        empty_text="(empty)",
        result_media="user",
        request_rules=provider_requests.BEDROCK,
        choice_fields="drop",
    ),
    # A deployment has the rules of the model behind it, which its name does not tell: `base_model` of the model's entry
    # does.
    "azure": Profile(
        call_id=Alphabet(longest=40),
        tool_names=_OPENAI_NAMES,
        tool_name="drop",
        reasoning="drop",
        result_media="user",
        files=_PDF,
        max_tools=128,
        tool_rules=_OPENAI_TOOLS,
        request_rules=provider_requests.OPENAI,
        choice_fields="drop",
    ),
    # "developer is not one of ['system', 'assistant', 'user', 'tool', 'function']".
    "qwen": Profile(
        developer="system",
        result_media="user",
        request_rules=provider_requests.QWEN,
        choice_fields="drop",
        messages=_ANY_THINKING,
    ),
    # It has no role `developer`, and takes neither `strict` nor a message's `name`.
    "xai": Profile(
        tool_name="drop",
        developer="system",
        result_media="user",
        tool_rules=_NO_STRICT,
        request_rules=provider_requests.XAI,
        choice_fields="drop",
    ),
    # It has no role `developer`, and takes no `strict`.
    "together": Profile(
        developer="system",
        result_media="user",
        tool_rules=_NO_STRICT,
        request_rules=provider_requests.TOGETHER,
        choice_fields="drop",
    ),
    "fireworks": Profile(
        reasoning_field="reasoning_content",
        result_media="user",
        request_rules=provider_requests.FIREWORKS,
        choice_fields="drop",
    ),
    "snowflake": Profile(
        result_media="user",
        request_rules=provider_requests.SNOWFLAKE,
        choice_fields="drop",
        finish_reason="optional",
    ),
    # Servers with the templates of the models, as vLLM; each has a field for reasoning of its own.
    "lm-studio": Profile(
        tool_content="string",
        developer="system",
        system="first",
        first_turn="user",
        alternation="strict",
        user_after_tool="bridge",
        empty_beside_calls="empty",
        result_media="user",
        request_rules=provider_requests.LM_STUDIO,
        choice_fields="drop",
        messages=_ANY_THINKING,
    ),
    "llama-cpp": Profile(
        tool_content="string",
        developer="system",
        system="first",
        first_turn="user",
        reasoning_field="reasoning_content",
        alternation="strict",
        user_after_tool="bridge",
        empty_beside_calls="empty",
        result_media="user",
        request_rules=provider_requests.LLAMA_CPP,
        choice_fields="drop",
        messages=_ANY_THINKING,
    ),
    "sglang": Profile(
        tool_content="string",
        developer="system",
        system="first",
        first_turn="user",
        reasoning_field="reasoning_content",
        alternation="strict",
        user_after_tool="bridge",
        empty_beside_calls="empty",
        result_media="user",
        request_rules=provider_requests.SGLANG,
        choice_fields="drop",
        messages=_ANY_THINKING,
    ),
    # The chat completions of Ollama. A part of a list becomes a message of its own, which has no tool's name. Its
    # templates know no role `developer`.
    "ollama-compat": Profile(
        content="string",
        tool_content="string",
        developer="system",
        reasoning_field="reasoning",
        empty_beside_calls="empty",
        result_media="user",
        request_rules=provider_requests.OLLAMA,
        choice_fields="drop",
        messages=_ANY_THINKING,
    ),
}
