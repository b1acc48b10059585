"""Defines a profile: which requests a provider accepts.

A profile changes only what its provider requires; the default one changes nothing. `settings.json` may add profiles
(`profiles.NAME`, where `base` names the profile to start from).
"""

import re
from typing import Final, Literal

import msgspec

from gateway.core.state_rule import StateRule
from gateway.providers.messages_rules import MessagesRules
from gateway.providers.request_rules import RequestRules
from gateway.providers.tool_rules import ToolRules

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


NEUTRAL: Final = Profile()
