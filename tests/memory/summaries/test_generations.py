"""Tests a conversation that grows through several generations of summaries, with a summariser that follows a script."""

import json
from typing import Any, Final

import msgspec
import pytest

from gateway.core.conversation import Conversation, Text, ToolCall, Turn
from gateway.core.policy import Policy
from gateway.core.tokens import estimate_text, estimate_turn
from gateway.history.classify import system_prefix
from gateway.history.pairing import is_paired
from gateway.history.prepare import prepare
from gateway.memory.summaries.job_answer import JobAnswer, SummaryRejected, read_summary
from gateway.memory.summaries.job_request import summary_conversation
from gateway.memory.summaries.plan import CompressLimits, SummaryRange, plan_range
from gateway.memory.summaries.substitution import applied_to
from gateway.memory.summaries.summary import Cost, SummaryRecord
from gateway.memory.summaries.view import view_tokens
from tests.history.strategies import numbered, result, system, user
from tests.memory.summaries.records import boundaries, newest_match, record_of

LIMITS: Final = CompressLimits(window=32_000)
UNLIMITED = Policy(max_history_messages=None, max_tool_results=None)


def summarise(request: Conversation) -> str:
    """What a model that does as it is told answers: carries over the items before, and tells each tool's facts."""
    items: dict[str, list[dict[str, Any]]] = {}
    for line in map(json.loads, request.turns[1].text.split("\n")):
        for item in line.get("items", []):
            items.setdefault(item["kind"], []).append({"text": item["text"], "from": item["from"]})
        if line.get("role") == "user":
            items.setdefault("goal", []).append({"text": line["text"][:300], "from": [line["n"]]})
        for one in line.get("results", []):
            if "FACT" in one["text"]:
                fact = one["text"].split("FACT ")[1].split("\n")[0]
                items.setdefault("facts", []).append({"text": fact, "from": [line["n"]]})
    return json.dumps(items)


class Memory:
    """The records of one conversation, and the jobs that wrote them."""

    def __init__(self, limits: CompressLimits = LIMITS) -> None:
        self.records: dict[bytes, SummaryRecord] = {}
        self.jobs: list[SummaryRange] = []
        self.read: list[int] = []
        self.limits = limits

    def serve(self, turns: tuple[Turn, ...], answer: str | None = None) -> Conversation:
        """Serves one request, and does the job that it asks for. Returns what is sent to the backend."""
        conversation = Conversation(turns)
        found = boundaries(turns)
        match = newest_match(found, self.records)
        record = None if match is None else self.records[match.digest]
        summary = None if record is None else applied_to(conversation, record)
        sent = prepare(conversation, UNLIMITED, summary).conversation
        sizes = [estimate_turn(turn) for turn in turns]
        assert abs(view_tokens(conversation, sizes, record) - sum(map(estimate_turn, sent.turns))) <= 4
        cover = plan_range(conversation, found, sizes, self.limits, applied=record)
        if isinstance(cover, SummaryRange):
            self._summarise(conversation, cover, answer)
        return sent

    def _summarise(self, conversation: Conversation, cover: SummaryRange, answer: str | None) -> None:
        self.jobs.append(cover)
        request = summary_conversation(conversation, cover, "small")
        self.read.append(sum(map(estimate_turn, request.turns)))
        start = system_prefix(conversation.turns)
        covered = conversation.turns[start : start + cover.boundary.turns]
        try:
            summary = read_summary(JobAnswer(summarise(request) if answer is None else answer, "stop"), covered, cover)
        except SummaryRejected:
            return
        made = record_of(conversation.turns, cover.boundary.turns, generation=cover.generation)
        cost = Cost(self.read[-1], 100, False, 1, cover.covered_tokens, estimate_text(summary.text))
        self.records[made.digest] = msgspec.structs.replace(
            made, text=summary.text, content=summary.content, known=summary.known, cost=cost
        )


def round_of(number: int, text: str) -> list[Turn]:
    call = ToolCall(f"call_{number}", "read", json.dumps({"path": f"src/module_{number}.py"}))
    return [Turn("assistant", (Text(f"Step {number}."), call)), result(f"call_{number}", text)]


PLANTED: Final = {
    4: "FACT the database is db-prod-17.example.net:5433\n",
    11: "FACT ValueError: ledger_v2 has no column total_net\n",
}


def agent(rounds: int) -> tuple[Turn, ...]:
    turns = [system("You are an agent."), user("Port the ledger. Never push to origin/main.")]
    for number in range(rounds):
        turns += round_of(number, PLANTED.get(number, "") + f"module {number}\n" + "some line of code()\n" * 90)
        if number == 20:
            turns += [
                user("Cancel the migration of the archive."),
                Turn("assistant", (Text("Cancelled."),)),
                user("Go on."),
            ]
    return numbered(*turns)


def test_an_agent_of_two_hundred_turns_stays_within_its_window() -> None:
    memory = Memory()
    for rounds in range(1, 100, 2):
        sent = memory.serve(agent(rounds))
        size = sum(map(estimate_turn, sent.turns))
        assert size <= 0.6 * LIMITS.window + 2_500, "the trigger, and the rounds that crossed it"
        assert is_paired(sent.turns)
    told = "\n".join(turn.text for turn in sent.turns)
    assert len(agent(99)) > 200
    assert "Never push to origin/main." in told
    assert "db-prod-17.example.net:5433" in told
    assert "ValueError: ledger_v2 has no column total_net" in told
    assert "Cancel the migration of the archive." in told
    grown = sum(map(estimate_turn, agent(99)))
    least = 0.15 * LIMITS.window
    assert 3 <= len(memory.jobs) <= grown / least
    assert [cover.generation for cover in memory.jobs] == [*range(1, len(memory.jobs) + 1)]
    assert max(memory.read) <= LIMITS.window * 0.95


def test_the_fourth_generation_reads_the_turns_themselves_again() -> None:
    memory = Memory(CompressLimits(window=16_000, job_window=200_000))
    for rounds in range(1, 130, 2):
        memory.serve(agent(rounds))
    assert [cover.start == 0 for cover in memory.jobs][:8] == [True, False, False, True, False, False, False, True]


def test_a_refused_answer_changes_nothing_that_is_sent() -> None:
    memory = Memory()
    for rounds in range(58, 61):
        sent = memory.serve(agent(rounds), answer="Error: overloaded")
    assert sent.turns == agent(60)
    assert memory.jobs
    assert not memory.records


@pytest.mark.parametrize("rounds", [1, 40])
def test_where_nothing_can_be_gained_no_job_starts(rounds: int) -> None:
    turns = numbered(system("rule " * 30_000), *agent(rounds)[1:])
    memory = Memory()
    assert memory.serve(turns).turns == turns
    assert memory.jobs == []
