"""Charges a request that is passed on as it is to the budgets of tokens of its key: by the size of its body, and then
by the usage that the end of the answer states.

Nothing of such an answer is read but that. OpenAI's API reference has `usage` as a field of the answers of embeddings,
transcriptions and images, and of the last event of their streams; its counts are `total_tokens`, or
`prompt_tokens` or `input_tokens`, with `completion_tokens` or `output_tokens`.
"""

import re
from typing import Final

import msgspec

from gateway.core.errors import InvalidRequest
from gateway.core.events import MOST_TOKENS
from gateway.server.access.budgets import NOTHING, Amount
from gateway.server.state.budget_share import Charge
from gateway.server.state.budgets import Budgets
from gateway.server.telemetry.request_context import RequestContext

# What `usage` and what stands behind it take at most.
_TAIL: Final = 4096
# An object with objects in it. Within a text its quotes would be escaped.
_USAGE: Final = re.compile(rb'(?<!\\)"usage"\s*:\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})')
# Bytes of a body for one token: of JSON in English.
_BYTES_A_TOKEN: Final = 4


class _Usage(msgspec.Struct):
    total_tokens: int = 0
    prompt_tokens: int = 0
    input_tokens: int = 0
    completion_tokens: int = 0
    output_tokens: int = 0


_DECODER: Final = msgspec.json.Decoder(_Usage)


def stated_tokens(tail: bytes) -> int:
    """Returns the tokens that the end of an answer states; 0: none."""
    found = _USAGE.findall(tail)
    try:
        usage = _DECODER.decode(found[-1]) if found else _Usage()
    except msgspec.DecodeError:
        return 0
    parts = max(usage.prompt_tokens, usage.input_tokens) + max(usage.completion_tokens, usage.output_tokens)
    return min(max(usage.total_tokens or parts, 0), MOST_TOKENS)


class PassedCharge:
    """The charge of one request, which is settled when it has ended."""

    def __init__(self, budgets: Budgets, context: RequestContext, charge: Charge) -> None:
        self._budgets = budgets
        self._context = context
        self._charge = charge
        self._tail = b""

    def settle(self) -> None:
        """Replaces the estimate by what is known: also of a body whose size was not declared, or that is cut."""
        context, status = self._context, self._context.backend_status
        used = NOTHING
        # A backend may still work on what it has not answered.
        if 200 <= status < 300 or (context.is_sent and not status):
            used = Amount(stated_tokens(self._tail) or _estimated(context.passed_bytes))
        self._budgets.settle(context.key, self._charge, used)

    def see(self, data: bytes) -> None:
        """Takes the next bytes of an answer."""
        self._tail = (self._tail + data)[-_TAIL:]


async def charge_passed(budgets: Budgets, context: RequestContext, size: int) -> PassedCharge | None:
    """Charges a request with a body of so many bytes, by what is known of it; None where its key has no budget. Raises
    InvalidRequest where the key has one of money, and GatewayError as `Budgets.charge` does."""
    found = budgets.of(context.key)
    if not found:
        return None
    if any(budget.name.startswith("money") for budget in found):
        raise InvalidRequest(
            "A request that is passed on is not served for an API key with a budget of money: its cost is not known.",
            code="unsupported_operation",
        )
    charge = await budgets.charge(context.key, Amount(_estimated(size)))
    return PassedCharge(budgets, context, charge)


def _estimated(size: int) -> int:
    return max(1, size // _BYTES_A_TOKEN)
