"""The words of each provider about a request that is too long are understood, with their numbers; and the gateway's own
words are those that each client looks for."""

import re

import pytest

from gateway.core.backend_status import reported_error, status_error
from gateway.core.context_length import OutputLimit, OutputOverflow, Overflow, TooLong, read_too_long
from gateway.core.conversation import JsonObject

NO_NUMBERS = Overflow()
# As the providers publish or send them.
SAID: dict[str, tuple[str, TooLong]] = {
    "anthropic": ("prompt is too long: 210000 tokens > 200000 maximum", Overflow(210_000, 200_000)),
    "anthropic, output": (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or "
        "`max_tokens` and try again",
        OutputOverflow(190_000, 20_000, 200_000),
    ),
    "bedrock": ("Input is too long for requested model.", NO_NUMBERS),
    "openai": (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please "
        "reduce the length of the messages.",
        Overflow(9001, 8192),
    ),
    "openai, prompt and answer": (
        "This model's maximum context length is 8192 tokens. However, you requested 10000 tokens (9000 "
        "in the messages, "
        "1000 in the completion). Please reduce the length of the messages or completion.",
        Overflow(9000, 8192),
    ),
    "openai, responses": (
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        NO_NUMBERS,
    ),
    "azure": ("The prompt exceeds your deployment's context.", NO_NUMBERS),
    "google": (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        Overflow(1_200_000, 1_048_576),
    ),
    "google, half": (
        "The input token count exceeds the maximum number of tokens allowed 1048576.",
        Overflow(None, 1_048_576),
    ),
    "xai": (
        "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
        Overflow(200_000, 131_072),
    ),
    "yandex": ("number of input tokens must be no more than 32768, got 56832", Overflow(56_832, 32_768)),
    # Characters, not tokens.
    "yandex, text": ("text length is 349354, which is outside the range (0, 100000]", NO_NUMBERS),
    "groq": ("Please reduce the length of the messages or completion.", NO_NUMBERS),
    "mistral": (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        Overflow(40_000, 32_768),
    ),
    "openrouter": (
        "This endpoint's maximum context length is 65,536 tokens. However, you requested about 80,000 "
        "tokens (70,000 of "
        "text input, 2,000 of tool input, 8,000 in the output).",
        Overflow(72_000, 65_536),
    ),
    "vllm": (
        "This model's maximum context length is 4096 tokens. However, your request has 5000 input "
        "tokens. Please reduce "
        "the length of the input messages.",
        Overflow(5000, 4096),
    ),
    "vllm, output": (
        "This model's maximum context length is 40960 tokens. However, you requested 41000 tokens (9000 "
        "in the messages, "
        "32000 in the completion). Please reduce the length of the messages or completion.",
        OutputOverflow(9000, 32_000, 40_960),
    ),
    "vllm, output, newer": (
        "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 40960 "
        "tokens and your request has 9000 input tokens (32000 > 40960 - 9000).",
        OutputOverflow(9000, 32_000, 40_960),
    ),
    "vllm, output, newest": (
        "You passed 9001 input tokens and requested 32000 output tokens. However, the model's context length is only "
        "40960 tokens, resulting in a maximum input length of 8960 tokens. Please reduce the length of "
        "the input prompt.",
        OutputOverflow(9001, 32_000, 40_960),
    ),
    "vllm, engine": (
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
        Overflow(5000, 4096),
    ),
    "together, sglang": (
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        Overflow(5000, 4096),
    ),
    "tgi": (
        "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000",
        Overflow(2000, 1024),
    ),
    "tgi, output": (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1000 `inputs` tokens and "
        "1500 `max_new_tokens`",
        OutputOverflow(1000, 1500, 2048),
    ),
    "lm studio": (
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        NO_NUMBERS,
    ),
    "lm studio, newer": (
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough.",
        Overflow(5000, 4096),
    ),
    "llama.cpp": (
        "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        Overflow(5000, 4096),
    ),
    "llama.cpp, older": ("the request exceeds the available context size. try increasing it", NO_NUMBERS),
    "ollama": ("prompt too long; exceeded max context length by 4 tokens", NO_NUMBERS),
    "minimax": ("invalid params, context window exceeds limit (2013)", NO_NUMBERS),
    "kimi": (
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
        Overflow(300_000, 262_144),
    ),
    "glm": ("Prompt exceeds max length", NO_NUMBERS),
    "qwen": (
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
        Overflow(None, 98304),
    ),
    "fireworks": ("The prompt is too long: 140000, model maximum context length: 131071", Overflow(140_000, 131_071)),
    "cohere": (
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000. Try using a shorter "
        "prompt.",
        Overflow(5000, 4081),
    ),
    "cohere, newer": (
        "too many tokens: size limit exceeded by 300 tokens. Try using shorter or fewer inputs. The limit for this "
        "model is 8000 tokens.",
        Overflow(None, 8000),
    ),
    "openai, limit": (
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided "
        "100000.",
        OutputLimit(16_384, 100_000),
    ),
    "anthropic, limit": (
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude",
        OutputLimit(64_000, 100_000),
    ),
    "groq, limit": (
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the "
        "`context_window` for this model",
        OutputLimit(8192),
    ),
    "deepseek, limit": ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", OutputLimit(8192)),
    "bedrock, limit": (
        "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum "
        "tokens value that is "
        "lower than 4096.",
        OutputLimit(4096),
    ),
}


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("name", SAID)
def test_a_request_that_is_too_long_is_known_by_its_words(name: str, status: int) -> None:
    message, expected = SAID[name]
    error = status_error(status, {}, message=message)
    assert error.too_long == expected
    overflow = isinstance(expected, Overflow)
    assert error.status == 400
    assert (error.code, error.param) == (
        ("context_length_exceeded", "messages") if overflow else ("invalid_value", "max_tokens")
    )
    (notice,) = error.notices
    assert notice.rule == ("CONTEXT_OVERFLOW" if overflow else "MAX_TOKENS_REFUSED")
    assert message[:200] in notice.detail


@pytest.mark.parametrize("name", SAID)
def test_the_same_words_inside_a_response_mean_the_same(name: str) -> None:
    message, expected = SAID[name]
    assert reported_error(None, message=message).too_long == expected
    assert reported_error(400, message=message).too_long == expected


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "Too many tokens, please wait before trying again."),
        (400, "Too many tokens, please wait before trying again."),
        (413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000"),
        (400, "Invalid 'tools[0].description': string too long. Expected a string with maximum length 1024"),
        (400, "The context of the question is missing."),
        (400, "max_tokens must be at least 1"),
        (400, "messages: at least one message is required"),
        (429, "maximum context length is 5 tokens"),
        (503, "prompt is too long"),
    ],
)
def test_other_words_are_no_overflow(status: int, message: str) -> None:
    assert status_error(status, {}, message=message).too_long is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}, Overflow(5000, 4096)),
        ({"type": "exceed_context_size_error", "n_prompt_tokens": True, "n_ctx": "4096"}, NO_NUMBERS),
        ({"code": "context_length_exceeded"}, NO_NUMBERS),
        ({"code": 400, "type": "invalid_request_error"}, None),
    ],
)
def test_a_code_or_type_says_it_too_and_llama_cpp_counts_beside_it(
    fields: JsonObject, expected: Overflow | None
) -> None:
    assert read_too_long("no words of it", None, fields) == expected


def test_a_sum_that_fits_by_the_providers_own_numbers_is_made_not_to() -> None:
    message = (
        "This model's maximum context length is 1000 tokens. However, you requested 900 tokens (400 in "
        "the messages, 500 "
        "in the completion)."
    )
    found = status_error(400, {}, message=message).too_long
    assert found == OutputOverflow(400, 601, 1000)


def test_words_behind_a_huge_text_are_not_looked_for() -> None:
    assert read_too_long("x" * 10_000_000 + "prompt is too long", None, {}) is None


# The patterns of the clients, by name. A client that has several is content with any of them.
CLIENTS = {
    "claude code": r"prompt is too long[^0-9]*(\d+)\s*tokens?\s*>\s*(\d+)|maximum context "
    "length|exceeds the context window",
    "opencode, pi": r"prompt is too long|maximum context length is \d+ tokens|exceeds the context window",
    "qwen-code": r"maximum context length|input token count.*exceeds|prompt is too long",
    "cline": r"context.{0,10}(?:length|window)|prompt is too long",
    "kimi-code": r"context.{0,10}(?:length|window)|prompt is too long",
    "continue": r"maximum context length|reduce the length of the messages",
    "litellm": r"maximum context length|prompt is too long",
    "langchain": r"prompt is too long|context_length_exceeded",
}


@pytest.mark.parametrize("overflow", [Overflow(5000, 4096), Overflow(), Overflow(5000), Overflow(5, 10)])
@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_knows_the_words_for_an_overflow(client: str, overflow: Overflow) -> None:
    assert re.search(CLIENTS[client], overflow.sentence, re.IGNORECASE)
    assert ("5000" in overflow.sentence) is (overflow.limit == 4096)


def test_claude_code_knows_the_words_for_too_large_an_answer() -> None:
    found = re.search(
        r"input length and `max_tokens` exceed context limit: (\d+) \+ (\d+) > (\d+)",
        OutputOverflow(9000, 32_000, 40_960).sentence,
    )
    assert found is not None
    assert [int(number) for number in found.groups()] == [9000, 32_000, 40_960]
    for client in CLIENTS.values():
        assert not re.search(client, found.string, re.IGNORECASE)
