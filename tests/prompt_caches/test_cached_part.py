"""Over 50 turns of an agent, the part of the prompt that its provider reads from the cache never shrinks.

The requests have the forms that the programs send (`sessions`), the caches the rules that the providers publish
(`provider_caches`). `tests/clients/test_prompt_caches.py` runs the program itself.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import pytest

from adapters.anthropic_messages.client.dialect import AnthropicMessagesDialect
from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.adapter import Adapter
from gateway.core.notices import Notice
from gateway.core.policy import Policy, PromptCache
from gateway.dialect import Dialect, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.providers.registry import PROFILES
from gateway.registry import load_adapter
from gateway.settings import BackendSettings
from tests.prompt_caches.provider_caches import AnthropicCache, Cache, ImplicitCache, OpenAICache, blocks, tokens
from tests.prompt_caches.sessions import claude_code, codex
from tests.tiers import sample

TURNS: Final = 50
UNLIMITED: Final = Policy(max_tool_results=None, max_history_messages=None)
PLACED: Final = PromptCache(breakpoints=True)
CLAUDE_CODE: Final = AnthropicMessagesDialect()
CODEX: Final = OpenAIResponsesDialect()


class Backend(msgspec.Struct, frozen=True):
    """A backend with its model, its provider's profile and the model of its cache."""

    name: str
    adapter: str
    model: str
    cache: Callable[[], Cache]
    profile: str = "none"

    def load(self) -> Adapter:
        return load_adapter(self.adapter, BackendSettings(adapter=self.adapter, base_url="http://host"), 1 << 20)


MESSAGES: Final = Backend("Messages", "anthropic_messages", "claude-opus-5", AnthropicCache)
OPENROUTER: Final = Backend("OpenRouter", "openai_chat", "anthropic/claude-opus-5", AnthropicCache, "openrouter")
QWEN: Final = Backend("Qwen", "openai_chat", "qwen3-coder-plus", AnthropicCache, "qwen")
CHAT: Final = Backend("chat of OpenAI", "openai_chat", "gpt-5.6", OpenAICache, "openai")
OLDER: Final = Backend("chat of OpenAI, older", "openai_chat", "gpt-5.1", ImplicitCache, "openai")
DEEPSEEK: Final = Backend("DeepSeek", "openai_chat", "deepseek-chat", ImplicitCache, "deepseek")
RESPONSES: Final = Backend("Responses", "openai_responses", "gpt-5.6", OpenAICache)
GEMINI: Final = Backend("Gemini", "gemini", "gemini-3-pro-preview", ImplicitCache, "gemini")
EXPLICIT: Final = (MESSAGES, OPENROUTER, QWEN)
ALL: Final = (*EXPLICIT, CHAT, OLDER, DEEPSEEK, RESPONSES, GEMINI)


def named(backend: Backend) -> str:
    return backend.name


def sent(
    dialect: Dialect, requests: Iterable[Any], backend: Backend, policy: Policy
) -> Iterable[tuple[Any, Sequence[Notice]]]:
    """Yields what the backend receives of each request, and its notices."""
    adapter = backend.load()
    policy = msgspec.structs.replace(policy, profile=PROFILES[backend.profile])
    for request in requests:
        read = dialect.decode(read_document(json.dumps(request).encode()), RequestHead("")).conversation
        exchange = Exchange(adapter, msgspec.structs.replace(read, model=backend.model), policy)
        yield json.loads(exchange.request.body), exchange.notices


def cached(dialect: Dialect, requests: Iterable[Any], backend: Backend, policy: Policy = UNLIMITED) -> list[int]:
    """The tokens that each request reads from the cache. What a request adds is not in it yet; all of the request
    before is."""
    cache = backend.cache()
    return [cache.ask(body) for body, _ in sent(dialect, requests, backend, policy)]


def sizes(dialect: Dialect, requests: Iterable[Any], backend: Backend, policy: Policy = UNLIMITED) -> list[int]:
    return [tokens(blocks(body)) for body, _ in sent(dialect, requests, backend, policy)]


def with_marks(policy: Policy = UNLIMITED) -> Policy:
    return msgspec.structs.replace(policy, prompt_cache=PLACED)


@pytest.mark.parametrize("backend", ALL, ids=named)
def test_the_cached_part_of_a_claude_code_session_never_shrinks(backend: Backend) -> None:
    """Its marks are those of the client: the settings ask for none."""
    read = cached(CLAUDE_CODE, claude_code(TURNS), backend)
    whole = sizes(CLAUDE_CODE, claude_code(TURNS), backend)
    assert read[0] == 0
    assert read[1:] == whole[:-1], "a request reads all of the one before"


@sample("calls")
@pytest.mark.parametrize("backend", ALL, ids=named)
@pytest.mark.parametrize("calls", [1, 15])
def test_the_cached_part_of_a_codex_session_never_shrinks_with_placed_marks(backend: Backend, calls: int) -> None:
    """A round of 15 calls adds more blocks than Anthropic looks back over."""
    read = cached(CODEX, codex(TURNS, calls), backend, with_marks())
    whole = sizes(CODEX, codex(TURNS, calls), backend, with_marks())
    assert read == [0, *whole[:-1]], "a request reads all of the one before"


@pytest.mark.parametrize("backend", EXPLICIT, ids=named)
def test_without_marks_nothing_is_cached_where_the_provider_wants_them(backend: Backend) -> None:
    assert set(cached(CODEX, codex(5), backend)) == {0}


def test_the_lookback_of_the_model_is_that_of_anthropic() -> None:
    """One mark at the end of rounds of 15 calls finds the system prompt alone, as its client would see it."""
    read = cached(CLAUDE_CODE, claude_code(5, calls=15), MESSAGES)
    assert len({*read[1:]}) == 1


@pytest.mark.parametrize("backend", [MESSAGES, CHAT, GEMINI], ids=named)
def test_where_the_cached_part_shrinks_a_notice_says_so(backend: Backend) -> None:
    limited = msgspec.structs.replace(with_marks(), max_history_messages=20, trim_step=10)
    cache = backend.cache()
    shrunk = 0
    before = 0
    for body, notices in sent(CODEX, codex(TURNS), backend, limited):
        read = cache.ask(body)
        if read < before:
            shrunk += 1
            assert "HISTORY_LIMITED" in {notice.rule for notice in notices}
        before = read
    assert 0 < shrunk <= TURNS // 5
