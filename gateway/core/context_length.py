"""Reads a provider's words about a request that is too long for its model, and writes those on which clients
shorten it.

Two errors have much the same words. A prompt that does not fit (`Overflow`) must become shorter: clients compact their
history. A prompt that fits, with a limit of tokens for the answer that does not (`OutputOverflow`, `OutputLimit`),
needs a smaller limit: a client that compacts then does so in vain.

Sources: the error messages of Anthropic, Amazon Bedrock, OpenAI, Azure, Google, xAI, Groq, Mistral, OpenRouter, vLLM,
Together, SGLang, LM Studio, llama.cpp, Ollama, MiniMax, Kimi, GLM, Qwen, Yandex and TGI; Claude Code, opencode, pi,
qwen-code, cline, kimi-code, Continue, litellm and langchain for the words that they look for.
"""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from gateway.core.conversation import Json

# The code of a prompt that is longer than the model's context, which each wire says in its own way.
CONTEXT_LENGTH_EXCEEDED: Final = "context_length_exceeded"
# llama.cpp's type of the error, and its counts beside the message.
_OVERFLOW_TYPE: Final = "exceed_context_size_error"
_COUNTS: Final = ("n_prompt_tokens", "n_ctx")
# Nothing that names the length of a prompt stands further behind.
_LONGEST: Final = 2000


class Overflow(msgspec.Struct, frozen=True):
    """The prompt has more `tokens` than the `limit` of the model. None: the backend did not say."""

    tokens: int | None = None
    limit: int | None = None

    @property
    def counts(self) -> tuple[int, int] | None:
        """Both numbers, where they are known and say what the error says."""
        if self.tokens is None or self.limit is None or self.tokens <= self.limit:
            return None
        return self.tokens, self.limit

    @property
    def sentence(self) -> str:
        """The words that every client knows for an overflow: no provider's own ones are."""
        if self.counts is None:
            return (
                "prompt is too long: the input exceeds the context window (maximum context length) of this model; "
                "reduce the length of the messages"
            )
        tokens, limit = self.counts
        return (
            f"prompt is too long: {tokens} tokens > {limit} maximum. This model's maximum context length is {limit} "
            "tokens; please reduce the length of the messages."
        )


class OutputOverflow(msgspec.Struct, frozen=True):
    """The prompt has `tokens` and fits into the `limit` of the model, but not together with the tokens of an answer
    that were `asked` for."""

    tokens: int
    asked: int
    limit: int

    @property
    def sentence(self) -> str:
        """Anthropic's words, on which Claude Code asks for as many tokens as there is room for."""
        return (
            f"input length and `max_tokens` exceed context limit: {self.tokens} + {self.asked} > {self.limit}, "
            "decrease input length or `max_tokens` and try again"
        )


class OutputLimit(msgspec.Struct, frozen=True):
    """More tokens of an answer were `asked` for than the model ever writes. None: the backend did not repeat it."""

    limit: int
    asked: int | None = None


TooLong: TypeAlias = Overflow | OutputOverflow | OutputLimit

_N: Final = r"(?P<{}>\d[\d,]*)"
_TOKENS, _LIMIT, _ASKED, _TOTAL = (_N.format(name) for name in ("tokens", "limit", "asked", "total"))
# Amazon Bedrock says this of a rate, Groq of a minute's tokens, and OpenAI of any field.
_OTHER: Final = re.compile(
    r"too many tokens, please wait|tokens per minute|string too long\. expected a string with maximum length"
    r"|policy_blocked|dlp_request_denied",
    re.IGNORECASE,
)
# The first match wins; a text that has more numbers stands before one that has fewer.
_OVERFLOWS: Final = tuple(
    re.compile(text, re.IGNORECASE | re.DOTALL)
    for text in (
        # Anthropic, and Fireworks after it.
        rf"input length and `?max_tokens`? exceed context limit: {_TOKENS} \+ {_ASKED} > {_LIMIT}",
        rf"prompt is too long: {_TOKENS}(?: tokens > |, model maximum context length: ){_LIMIT}",
        # OpenAI, Azure, DeepSeek, OpenRouter, vLLM: in several ages.
        rf"maximum context length is {_LIMIT} tokens\b.*?your request has {_TOKENS} input tokens \({_ASKED} >",
        rf"maximum context length is {_LIMIT} tokens\b.*?requested {_ASKED} output tokens.*?at least {_TOKENS} input",
        rf"maximum context length is {_LIMIT} tokens\b.*?requested (?:about )?{_TOTAL} tokens"
        rf"(?:[^)]*?{_ASKED} (?:tokens )?in the (?:completion|output))?",
        rf"maximum context length is {_LIMIT} tokens\b.*?(?:resulted in|has|contains(?: at least)?) {_TOKENS}"
        r" (?:input )?tokens",
        rf"passed {_TOKENS} input tokens and requested {_ASKED} output tokens.*?context length is (?:only )?{_LIMIT}",
        rf"prompt \(length {_TOKENS}\) is longer than the maximum model length of {_LIMIT}",
        # Cohere.
        rf"number of tokens in the prompt cannot exceed {_LIMIT} - received {_TOKENS}",
        rf"too many tokens: size limit exceeded by [\d,]+ tokens.*?limit for this model is {_LIMIT} tokens",
        # TGI, and Together after it.
        rf"`?inputs`? tokens \+ `?max_new_tokens`? must be <= {_LIMIT}\. Given: {_TOKENS} `?inputs`? tokens and"
        rf" {_ASKED} `?max_new_tokens",
        rf"`?inputs`? must have less than {_LIMIT} tokens\. Given: {_TOKENS}",
        # SGLang, Together; Google; xAI; Mistral; Kimi; GitHub Copilot.
        rf"\({_TOKENS} tokens\) is longer than the model's context length \({_LIMIT}",
        rf"input token count \({_TOKENS}\) exceeds the maximum number of tokens allowed \({_LIMIT}",
        rf"maximum prompt length is {_LIMIT} but the request contains {_TOKENS}",
        rf"prompt contains {_TOKENS} tokens.*?model with {_LIMIT} maximum context length",
        rf"exceeded model token limit: {_LIMIT} \(requested: {_TOKENS}",
        rf"prompt token count of {_TOKENS} exceeds the limit of {_LIMIT}",
        # llama.cpp; LM Studio; Qwen; Yandex.
        rf"request \({_TOKENS} tokens\) exceeds the available context size \({_LIMIT}",
        rf"first {_TOKENS} tokens when context the overflows.*?context length of only {_LIMIT}",
        rf"range of input length should be \[\d+, {_LIMIT}\]",
        rf"number of input tokens must be no more than {_LIMIT}, got {_TOKENS}",
        # The same without numbers, and Ollama, MiniMax, GLM, Bedrock, OpenAI's Responses, Groq, Cohere.
        rf"maximum (?:context|prompt) length is {_LIMIT}",
        rf"exceeds the maximum number of tokens allowed:? {_LIMIT}",
        r"prompt is too long|prompt too long|input is too long for requested model|prompt exceeds max length",
        r"input token count.{0,40}exceeds the maximum|input token length too long",
        r"input tokens exceed the configured limit|exceeds the maximum number of tokens|maximum context limit",
        r"(?:exceed|longer than|larger than|greater than|too (?:long|large)).{0,60}"
        r"context[ _-]?(?:length|size|window|limit)",
        r"context[ _-]?(?:length|size|window|limit)(?:.{0,30}exceed| is too small)|exceeds your deployment",
        r"exceeded model token limit|longer than the maximum model length|reduce the length of the messages",
        r"tokens in request more than max tokens allowed|exceed max message tokens",
        r"text length is \d+, which is outside the range",
        r"`?inputs`? tokens \+ `?max_new_tokens",
    )
)
_LIMITS: Final = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (
        # Anthropic; OpenAI; Groq; DeepSeek and Qwen; Amazon Bedrock; Google.
        rf"max_tokens: {_ASKED} > {_LIMIT}, which is the maximum allowed number of output tokens",
        rf"max_(?:completion_)?tokens is too large: {_ASKED}\. this model supports at most {_LIMIT} completion tokens",
        rf"max_(?:completion_)?tokens`? must be less than or equal to `?{_LIMIT}",
        rf"range of max_tokens (?:is|should be) \[\d+, ?{_LIMIT}\]",
        rf"maximum tokens you requested exceeds the model limit of {_LIMIT}",
    )
)


def read_too_long(message: str, code: str | None, fields: Mapping[str, Json]) -> TooLong | None:
    """Returns the limits that an error names for the length of its request; None where it says nothing. `fields` are
    those of the error object beside its message."""
    text = message[:_LONGEST]
    if _OTHER.search(text):
        return None
    for pattern in _LIMITS:
        if found := pattern.search(text):
            numbers = _numbers(found)
            return OutputLimit(numbers["limit"], numbers.get("asked"))
    for pattern in _OVERFLOWS:
        if found := pattern.search(text):
            return _overflow(_numbers(found), fields)
    kinds = (code, fields.get("type"), fields.get("code"))
    if CONTEXT_LENGTH_EXCEEDED in kinds or _OVERFLOW_TYPE in kinds:
        return _overflow({}, fields)
    return None


def _numbers(found: re.Match[str]) -> dict[str, int]:
    return {name: int(value.replace(",", "")) for name, value in found.groupdict().items() if value is not None}


def _overflow(numbers: Mapping[str, int], fields: Mapping[str, Json]) -> Overflow | OutputOverflow:
    prompt, window = (_count(fields.get(name)) for name in _COUNTS)
    asked, total = numbers.get("asked"), numbers.get("total")
    tokens = numbers.get("tokens", total if total is None or asked is None else total - asked)
    tokens, limit = prompt if tokens is None else tokens, numbers.get("limit", window)
    if asked is not None and tokens is not None and limit is not None and tokens < limit:
        # A provider that rounds, or adds its own tokens, may name numbers whose sum fits.
        return OutputOverflow(tokens, max(asked, limit - tokens + 1), limit)
    return Overflow(tokens, limit)


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
