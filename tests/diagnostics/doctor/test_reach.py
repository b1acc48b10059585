"""What the doctor says of a name, of its addresses and of TLS."""

import pytest

from gateway.core.errors import BackendError
from gateway.diagnostics.doctor.examination import chosen, examine
from gateway.diagnostics.doctor.question import Address, Answer, Question, Reached
from gateway.diagnostics.doctor.reach_probes import SOON_DAYS
from tests.diagnostics.doctor.test_examination import ScriptedBackend

HERE = Address("IPv4", "127.0.0.1")
GONE = Address("IPv6", "::1", "Connection refused")


class ReachedBackend(ScriptedBackend):
    """One whose host shows this."""

    def __init__(self, reached: Reached) -> None:
        super().__init__()
        self._reached = reached

    async def reach(self) -> Reached:
        return self._reached


class FailingBackend(ScriptedBackend):
    """One that answers nothing but this error."""

    def __init__(self, error: BackendError) -> None:
        super().__init__()
        self._error = error

    async def ask(self, question: Question) -> Answer:
        return Answer(error=self._error)


@pytest.mark.parametrize(
    ("reached", "verdicts", "detail"),
    [
        (Reached("h", fault="no such name"), ["broken", "skipped"], "it needs D201, which did not succeed"),
        (Reached("h", (HERE,)), ["ok", "ok"], "without TLS"),
        (Reached("h", (HERE, GONE)), ["ok", "todo"], "::1 (IPv6) cannot be reached, another address can"),
        (Reached("h", (GONE,)), ["ok", "broken"], "no connection can be opened"),
        (Reached("h", (HERE,), "self-signed certificate"), ["ok", "broken"], "no TLS connection can be opened"),
        (Reached("h", (HERE,), tls="TLSv1.3", expires_days=SOON_DAYS), ["ok", "ok"], "TLSv1.3"),
        (
            Reached("h", (HERE,), tls="TLSv1.3", expires_days=SOON_DAYS - 1),
            ["ok", "todo"],
            f"the certificate ends in {SOON_DAYS - 1} days",
        ),
    ],
)
async def test_what_stands_in_the_way_is_found(reached: Reached, verdicts: list[str], detail: str) -> None:
    address, connection = await examine(ReachedBackend(reached), chosen(slow=False, only=("D20",)), lambda probe: None)
    assert [address.finding.verdict, connection.finding.verdict] == verdicts
    assert connection.finding.detail == detail


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("model_not_found", "correct models.*.name"),
        ("upstream_unknown_url", "correct base_url and the path at its end"),
        ("rate_limit_exceeded", "ask the provider for a higher limit"),
        ("insufficient_quota", "add credit at the provider"),
        ("upstream_overloaded", "wait until it has loaded its model"),
        ("upstream_redirect", "set base_url to the address that it redirects to"),
        ("upstream_error", "look at the log of the backend"),
        ("upstream_protocol_error", "see docs/errors.md for the code upstream_protocol_error"),
    ],
)
async def test_an_answer_that_fails_has_the_advice_of_its_code(code: str, advice: str) -> None:
    backend = FailingBackend(BackendError("no", code=code))
    (found,) = await examine(backend, chosen(slow=False, only=("D221",)), lambda probe: None)
    assert found.finding.verdict == "broken" and advice in found.finding.advice
