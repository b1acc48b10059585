"""Asks models for the gateway itself, and charges the API key whose request caused it."""

from typing import TYPE_CHECKING

from gateway.core.errors import BackendTimeout, GatewayError
from gateway.dialects.usage import usage_part
from gateway.server.access.budgets import NOTHING, amount_of, expected_of
from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.completion import Completion, CompletionRequest, ask_model
from gateway.server.upstream.transport import Transport

if TYPE_CHECKING:
    from gateway.server.state.budgets import Budgets


class ModelCalls:
    """`budgets` are those of the settings in use; None: no key has one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.budgets: Budgets | None = None

    async def ask(self, key: str, request: CompletionRequest, deadline_s: float) -> Completion:
        """Returns the answer. Raises GatewayError, also where a budget of the key does not allow the request. One that
        is late, cut or cancelled counts with the estimate of its prompt, one that no backend has answered not at
        all."""
        budgets = self.budgets
        if budgets is None or not budgets.of(key):
            return await ask_model(self._transport, request, deadline_s)
        answered = False

        def watch(response: BackendResponse) -> BackendResponse:
            nonlocal answered
            answered = answered or response.status == 200
            return response

        used = expected_of(request.price, request.prompt_tokens)
        charge = await budgets.charge(key, used)
        try:
            completion = await ask_model(self._transport, request, deadline_s, watch)
            usage = completion.usage
            cached = usage_part(usage, "cached_tokens") or 0
            used = amount_of(request.price, usage.prompt_tokens or 0, usage.completion_tokens or 0, cached)
        except GatewayError as error:
            # A backend may still work on what it has not answered in time.
            if not answered and not isinstance(error, BackendTimeout):
                used = NOTHING
            raise
        finally:
            budgets.settle(key, charge, used)
        return completion
