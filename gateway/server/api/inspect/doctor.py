"""Asks one backend the questions of `dragoman doctor`, for the inspector's page."""

import asyncio
from collections.abc import Sequence

import msgspec

from gateway.core.errors import InvalidRequest
from gateway.diagnostics.doctor.finding import Section
from gateway.diagnostics.doctor.probes import chosen
from gateway.server.api.gateway_state import GatewayState
from gateway.server.doctor.examine_backend import examine_backend
from gateway.server.log.logger import LOGGER


class DoctorView(msgspec.Struct, frozen=True):
    """The backends that can be asked, and how many questions each is asked at most."""

    backends: Sequence[str]
    questions: int


def doctor_view(state: GatewayState) -> DoctorView:
    """Returns what a person has to know before a backend is asked."""
    return DoctorView([*state.settings.backends], sum(probe.questions for probe in chosen(slow=False)))


class Doctor:
    """Asks one backend at a time. The questions belong to no client: they count for no key."""

    def __init__(self, state: GatewayState) -> None:
        self._state = state
        self._asking = asyncio.Lock()

    async def ask(self, name: str) -> Section:
        """Returns the findings about a backend. Raises InvalidRequest for an unknown one, and while another one is
        asked."""
        state = self._state
        backend = state.backends.known(name)
        if backend is None:
            raise InvalidRequest(f"There is no backend {name[:64]!r}.", status=404, code="unknown_backend")
        if self._asking.locked():
            raise InvalidRequest("A backend is being asked already.", status=503, code="overloaded")
        LOGGER.info("the inspector asks the backend %s the questions of the doctor", name)
        async with self._asking:
            examined = await examine_backend(
                state.settings, backend, "", state.transport, chosen(slow=False), lambda probe: None
            )
        return examined.section
