"""The order of the probes, what a failed one means for others, and that no secret is in a finding."""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.adapter import Capabilities
from gateway.core.errors import BackendRejected
from gateway.diagnostics.doctor.accepting import accepts
from gateway.diagnostics.doctor.examination import PROBES, examine
from gateway.diagnostics.doctor.finding import Checked, Finding, Report, Section, Verdict, broken, ok, remark, todo
from gateway.diagnostics.doctor.probe import Probe, ProbedBackend, Run
from gateway.diagnostics.doctor.question import Answer, Key, ModelNames, Question, Reached
from gateway.diagnostics.doctor.requests import request, user
from gateway.settings import BackendSettings

SECRET = "CANARY-4c1f"
QUESTION = request(user("Hello"))


class ScriptedBackend:
    """Refuses what does not have the changes that it wants."""

    def __init__(self, wants: dict[str, Any] | None = None, rule: str = "") -> None:
        self.settings = BackendSettings("openai_chat", "http://localhost")
        self.capabilities = Capabilities()
        self.model = "m"
        self.remedies: dict[str, Any] = {}
        self.refusals: dict[str, str] = {}
        self._wants = wants
        self._rule = rule

    async def reach(self) -> Reached:
        raise AssertionError("not asked for")

    async def list_models(self, key: Key = "right") -> ModelNames:
        raise AssertionError("not asked for")

    async def ask(self, question: Question) -> Answer:
        changes = {**self.remedies, **question.changes}
        if self._wants is None or any(changes.get(name) != value for name, value in self._wants.items()):
            return Answer(error=BackendRejected("refused", status=400, extra={"rule": self._rule, "advice": "do X"}))
        return Answer()

    async def ask_at_once(self, questions: Sequence[Question]) -> tuple[Answer, ...]:
        raise AssertionError("not asked for")

    def redact(self, text: str) -> str:
        return text.replace(SECRET, "[redacted]")


def finding_of(finding: Finding) -> Run:
    async def run(backend: ProbedBackend) -> Finding:
        return finding

    return run


async def crash(backend: ProbedBackend) -> Finding:
    raise ValueError(f"no {SECRET}")


async def verdicts(*probes: Probe) -> list[Verdict]:
    return [one.finding.verdict for one in await examine(ScriptedBackend(), probes, lambda probe: None)]


async def test_a_crashed_probe_does_not_stop_the_others() -> None:
    probes = (Probe("D1", "a", "?", crash), Probe("D2", "b", "?", finding_of(ok())))
    assert await verdicts(*probes) == ["crashed", "ok"]


@pytest.mark.parametrize(
    ("first", "second"), [("ok", "ok"), ("todo", "ok"), ("broken", "skipped"), ("skipped", "skipped")]
)
async def test_a_probe_is_skipped_where_what_it_needs_failed(first: Verdict, second: Verdict) -> None:
    probes = (Probe("D1", "a", "?", finding_of(Finding(first))), Probe("D2", "b", "?", finding_of(ok()), needs=("D1",)))
    assert await verdicts(*probes) == [first, second]


@pytest.mark.parametrize(("first", "second"), [(todo("no", rule="R"), "skipped"), (remark("odd", rule="R"), "ok")])
async def test_a_rule_skips_what_needs_it_only_where_nothing_mends_it(first: Finding, second: Verdict) -> None:
    probes = (Probe("D1", "a", "?", finding_of(first)), Probe("D2", "b", "?", finding_of(ok()), needs=("D1",)))
    assert await verdicts(*probes) == [first.verdict, second]


async def test_a_need_that_was_not_chosen_skips_nothing() -> None:
    assert await verdicts(Probe("D2", "b", "?", finding_of(ok()), needs=("D1",))) == ["ok"]


async def test_no_text_of_a_finding_holds_a_secret() -> None:
    said = Finding("todo", f"a {SECRET}", f"b {SECRET}", f"c {SECRET} sk-abcdefghijklmnop")
    probes = (Probe("D1", "a", "?", finding_of(said)), Probe("D2", "b", "?", crash))
    found = await examine(ScriptedBackend(), probes, lambda probe: None)
    assert [one.id for one in found] == ["D1", "D2"]
    for one in found:
        texts = one.finding.detail + one.finding.advice + one.finding.evidence
        assert "[redacted]" in texts
        assert SECRET not in texts
        assert "abcdefghijklmnop" not in texts


async def test_the_first_remedy_that_works_is_used_from_then_on() -> None:
    backend = ScriptedBackend({"developer": "system"})

    async def run(probed: ProbedBackend) -> Finding:
        return await accepts(QUESTION, ({"system": "first"}, {"developer": "system"}), probed)

    probes = (Probe("D1", "a", "?", run), Probe("D2", "b", "?", run))
    first, second = await examine(backend, probes, lambda probe: None)
    assert (first.finding.verdict, first.finding.changes) == ("todo", {"developer": "system"})
    assert second.finding.verdict == "ok"


async def test_a_refusal_without_a_remedy_is_told_once() -> None:
    backend = ScriptedBackend(None, "STATE_INVALID")

    async def run(probed: ProbedBackend) -> Finding:
        return await accepts(QUESTION, (), probed)

    probes = (Probe("D1", "a", "?", run), Probe("D2", "b", "?", run))
    first, second = await examine(backend, probes, lambda probe: None)
    assert (first.finding.verdict, first.finding.advice) == ("todo", "do X")
    assert second.finding == Finding("skipped", "refused by STATE_INVALID, which D1 found")


def test_the_ids_are_unique_and_each_need_stands_before() -> None:
    ids = [probe.id for probe in PROBES]
    assert len(set(ids)) == len(ids)
    for at, probe in enumerate(PROBES):
        assert set(probe.needs) <= set(ids[:at])


@pytest.mark.parametrize(
    ("finding", "status", "strict"),
    [(ok(), 0, 0), (remark("odd"), 0, 0), (todo("do"), 0, 1), (broken("no"), 1, 1), (Finding("crashed"), 1, 1)],
)
def test_the_exit_status_follows_from_the_worst(finding: Finding, status: int, strict: int) -> None:
    report = Report(1, "0", (Section("s", "", (Checked("D1", "a", ok()), Checked("D2", "b", finding))),))
    assert (report.status(strict=False), report.status(strict=True)) == (status, strict)
