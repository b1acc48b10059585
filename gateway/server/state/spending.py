"""Charges a client's request to the budgets of its key: before its backend is asked by an estimate of the prompt, and
at its end by what it has used.

What the backend reports counts. Where it reports nothing, or the answer is cut, the estimates count: of the prompt, and
of what came of the answer. A request that no backend has answered, and that none may be working on, costs nothing.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from gateway.core.conversation import Conversation
from gateway.core.events import Event, Finish, ResponseStart, UsageReport
from gateway.core.notices import Notice
from gateway.core.tokens import prompt_tokens
from gateway.dialects.usage import token_counts, usage_note, usage_part
from gateway.response.usage_estimate import answer_tokens
from gateway.server.access.budgets import NOTHING, Amount, amount_of, expected_of
from gateway.server.state.budget_share import Charge
from gateway.server.state.budgets import Budgets
from gateway.server.telemetry.request_context import Outcome, RequestContext, RequestObserver
from gateway.server.upstream.backend_response import BackendResponse
from gateway.settings import Price

if TYPE_CHECKING:
    from gateway.server.state.passed_charge import PassedCharge

# So many events are counted at once: they stay in memory until then.
_MANY: Final = 512

USAGE_REQUESTED: Final = Notice(
    "encode",
    "added",
    "USAGE_REQUESTED",
    "the backend is asked for token counts, because the key has a budget; the client, which has not asked, gets none",
    level="debug",
)


class Spending:
    """What the requests of clients spend of the budgets of their keys."""

    def __init__(self, budgets: Budgets) -> None:
        self.budgets = budgets

    def begin(self, context: RequestContext) -> "RequestCharge | None":
        """Returns the charge of a request, which observes it from now on, or has observed its tries before this one;
        None where its key has no budget."""
        if not self.budgets.of(context.key):
            return None
        if (charge := context.observers.find(RequestCharge)) is not None:
            return charge
        charge = RequestCharge(self.budgets, context.key)
        context.observers = context.observers.joined(charge)
        return charge

    async def begin_passed(self, context: RequestContext, size: int) -> "PassedCharge | None":
        """Returns the charge of a request that is passed on as it is, with a body of so many bytes; None where its key
        has no budget. Raises GatewayError as `charge_passed` does."""
        # Loaded with the first one.
        from gateway.server.state.passed_charge import charge_passed

        return await charge_passed(self.budgets, context, size)


class RequestCharge(RequestObserver):
    """The charge of one request, which observes it. It is settled at the end of the request."""

    def __init__(self, budgets: Budgets, key: str) -> None:
        self._budgets = budgets
        self._key = key
        self._charge: Charge | None = None

    def counted(self, conversation: Conversation, done: list[Notice]) -> Conversation:
        """Returns the conversation as one whose tokens the backend reports, or else they are estimated. `done` gets the
        notice where the client has not asked for them."""
        if conversation.include_usage or not conversation.stream:
            return conversation
        done.append(USAGE_REQUESTED)
        return msgspec.structs.replace(conversation, include_usage=True)

    async def begin_try(self, price: Price | None, conversation: Conversation, *, large: bool = False) -> None:
        """Charges what a try is expected to cost: the first one, or a further one of the same request, before which the
        one before is settled. `price` is that of the model that is asked. Raises GatewayError as `Budgets.charge` does,
        and then nothing of this try is charged."""
        self._settle()
        self._price = price
        self._prompt = await asyncio.to_thread(prompt_tokens, conversation) if large else prompt_tokens(conversation)
        self._sent = self._finished = False
        self._answers = self._refusals = 0
        self._usage: UsageReport | None = None
        self._events: list[Event] = []
        self._completion = 0
        self._charge = await self._budgets.charge(self._key, expected_of(price, self._prompt))

    def sent(self, context: RequestContext) -> None:
        self._sent = True

    def answer(self, context: RequestContext, answer: BackendResponse) -> BackendResponse:
        if answer.status == 200:
            self._answers += 1
        else:
            self._refusals += 1
        return answer

    def events(self, context: RequestContext, events: Sequence[Event]) -> None:
        self._events += events
        if len(self._events) > _MANY:
            self._count()

    def usage(self, context: RequestContext, usage: UsageReport) -> None:
        self._usage = usage

    def response(self, context: RequestContext, event: ResponseStart | Finish) -> None:
        self._finished = self._finished or type(event) is Finish

    def conclude(self, context: RequestContext, outcome: Outcome) -> None:
        self._settle()

    def _settle(self) -> None:
        charge, self._charge = self._charge, None
        if charge is None:
            return
        self._budgets.settle(self._key, charge, self._used())

    def _used(self) -> Amount:
        if not self._answers and (self._refusals or not self._sent):
            return NOTHING
        report = self._usage or UsageReport()
        prompt, completion, total = token_counts(report)
        if not self._finished or not completion:
            self._count()
            completion = max(completion, self._completion)
        # Each round of a request has a prompt of its own.
        prompt = prompt or self._prompt * max(self._answers, 1)
        if usage_note(report) == "total_only":
            prompt = min(prompt, total)
            completion = max(completion, total - prompt)
        return amount_of(self._price, prompt, completion, usage_part(report, "cached_tokens") or 0)

    def _count(self) -> None:
        self._completion += answer_tokens(self._events)
        self._events = []
