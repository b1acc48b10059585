"""Says in one value what the list of requests shows of one request: its outcome, tokens and cost, its conversation."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import Turn
from gateway.core.events import UsageReport
from gateway.core.session import Session
from gateway.diagnostics.prompt_cache.finding import Finding
from gateway.diagnostics.prompt_cache.words import cause_name, cause_rule, finding_sentence
from gateway.dialects.usage import usage_part
from gateway.inspector.asked import Asked
from gateway.memory.history_digest import history_digests
from gateway.settings import Price

# Whether the bytes of a request can be had, and why not: they were never kept, or gave way to those of later requests.
Contents: TypeAlias = Literal["kept", "never_kept", "evicted"]


class Cost(msgspec.Struct, frozen=True):
    """The cost of a request by the prices of its model; `estimated`: its tokens were not counted by the backend."""

    amount: float
    currency: str
    estimated: bool = False


class CacheLoss(msgspec.Struct, frozen=True):
    """What a provider's prompt cache could not serve of a request: the name of the `cause` and the `rule` of the
    gateway behind it (empty: none), in one sentence; the tokens before the first difference (`held`), those behind it
    that were read anew (`lost`), and those that were read from the cache (`cached` null: the provider does not say, and
    the others are estimated). `cost` is what `lost` cost more than cached tokens; null: the model has no such price."""

    cause: str
    rule: str
    sentence: str
    held: int
    lost: int
    cached: int | None
    cost: Cost | None = None


class Summary(msgspec.Struct, frozen=True):
    """One request. `seq` grows with the time of its beginning, `began` is a Unix time, `ms` counts from the request's
    head; `live`: it is being served. `changes` are those of the gateway by stage, `rules` the codes of its notices.
    `status` is 0 and `code` empty until they are known, and 499 for a client that left. `worker` counts from 1.
    `conversation` is equal for requests of one client whose first user messages are equal; empty where no contents are
    kept. `tokens_estimated`: the tokens were not counted by the backend. `cost` null: the model has no price, or the
    tokens are not known. `cache` null: nothing was found, or not looked for. `session` is null where no contents were
    captured. `client` is the program as its user agent names it, `first_ms` the time of the first events of the
    response (null: there are none), `outcome` what became of the request, in words, and `asked` what it asks."""

    seq: int
    id: str
    began: float
    method: str
    path: str
    dialect: str
    key: str
    model: str
    backend: str
    live: bool
    ms: float
    status: int = 0
    code: str = ""
    stream: bool = False
    changes: str = ""
    rules: tuple[str, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    contents: Contents = "never_kept"
    bytes: int = 0
    worker: int = 1
    conversation: str = ""
    tokens_estimated: bool = False
    cost: Cost | None = None
    cache: CacheLoss | None = None
    session: Session | None = None
    client: str = ""
    first_ms: float | None = None
    outcome: str = ""
    asked: Asked = Asked()


_MILLION: Final = 1_000_000


class TokenCounts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The tokens of a request so far as they are known; `cached` are those of the prompt that the provider read from
    its cache, and `estimated`: the backend did not count them."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    estimated: bool = False


def token_counts(usage: UsageReport) -> TokenCounts:
    """Returns the tokens of a report."""
    cached = usage_part(usage, "cached_tokens") if usage.extra else None
    return TokenCounts(usage.prompt_tokens, usage.completion_tokens, cached, usage.estimated)


def cost_of(tokens: TokenCounts | None, price: Price | None) -> Cost | None:
    """Returns the cost; None where the model has no price, or the tokens are not known."""
    if price is None or tokens is None or tokens.prompt is None or tokens.completion is None:
        return None
    cached = min(tokens.cached or 0, tokens.prompt)
    for_cached = price.input if price.cached_input is None else price.cached_input
    amount = (tokens.prompt - cached) * price.input + cached * for_cached + tokens.completion * price.output
    return Cost(round(amount / _MILLION, 9), price.currency, tokens.estimated)


def with_price(summary: Summary, tokens: TokenCounts | None, price: Price) -> Summary:
    """Returns the summary with what the request cost, and what the loss of a cache cost."""
    cache = summary.cache
    if cache is not None:
        cache = msgspec.structs.replace(cache, cost=_cost_of_loss(cache, price))
    return msgspec.structs.replace(summary, cost=cost_of(tokens, price), cache=cache)


def cache_loss(finding: Finding) -> CacheLoss:
    """Returns a finding as it is shown, without its cost."""
    cause = finding.cause
    return CacheLoss(
        cause_name(cause), cause_rule(cause), finding_sentence(finding), finding.held, finding.lost, finding.cached
    )


def _cost_of_loss(loss: CacheLoss, price: Price) -> Cost | None:
    if price.cached_input is None:
        return None
    amount = loss.lost * max(price.input - price.cached_input, 0)
    return Cost(round(amount / _MILLION, 9), price.currency, loss.cached is None)


def first_user_turn(turns: Sequence[Turn]) -> Turn | None:
    """Returns the first message of a user, or None."""
    return next((turn for turn in turns if turn.role == "user"), None)


def conversation_name(first: Turn | None) -> str:
    """Returns a short name for a first user message, equal for equal ones; empty for none. The system's text is no part
    of it: one that changes with every request is what a person looks for who compares them."""
    return "" if first is None else blake2b(repr(first.blocks).encode("utf-8", "replace"), digest_size=6).hexdigest()


def conversation_session(turns: Sequence[Turn]) -> Session | None:
    """Returns the session of a client that names none, by the first link of the chain of digests
    (`gateway.memory.history_digest`): what stands before the model's first turn, which every continuation has
    before it. Of one key, conversations that begin alike are one session. None where the user says nothing."""
    answered = next((at for at, turn in enumerate(turns) if turn.role == "assistant"), len(turns))
    digests = history_digests(turns[:answered], b"", "")
    return Session("conversation", digests[-1].digest.hex()[:12]) if digests else None
