"""Writes one summary: asks a model for it, checks the answer, and returns the record to store."""

import time
from collections.abc import Sequence

import msgspec

from gateway.core.answer import read_answer
from gateway.core.conversation import Conversation
from gateway.core.events import Event, UsageReport
from gateway.core.tokens import estimate_text, estimate_view
from gateway.exchange import Exchange
from gateway.history.classify import system_prefix
from gateway.history.directives import without_cleared
from gateway.memory.summaries.job_answer import JobAnswer, read_summary
from gateway.memory.summaries.job_request import PROMPT_VERSION, summary_conversation
from gateway.memory.summaries.plan import SummaryRange
from gateway.memory.summaries.summary import Cost, Producer, SummaryRecord
from gateway.server.state.store import StateStore
from gateway.server.summaries.recall import Recalled
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.completion import complete
from gateway.server.upstream.transport import Transport
from gateway.settings import ModelSettings


class RoutedModel(msgspec.Struct, frozen=True):
    """A model by the name that the settings know it by, with its entry and its backend."""

    name: str
    route: ModelSettings
    backend: Backend

    @property
    def sent_name(self) -> str:
        """The model's name at its backend."""
        return self.route.name or self.name


class SummaryTask(msgspec.Struct, frozen=True):
    """The turns to summarise, for whom, and where the summary is stored. `recalled` is what the request knew that
    begins the job, and `request_id` its id. `schema`: the writer is asked for JSON of a schema."""

    store: StateStore
    tenant: str
    recalled: Recalled
    summary_range: SummaryRange
    writer: RoutedModel
    request_id: str
    deadline_s: float
    schema: bool = False

    @property
    def conversation(self) -> Conversation:
        """The repaired conversation, without text that was for one turn which is over."""
        return without_cleared(self.recalled.conversation)

    @property
    def root(self) -> bytes:
        """The digest under which the conversation is indexed."""
        return self.recalled.root


class JobRequest(msgspec.Struct, frozen=True):
    """The job's own request, ready to be sent, and the tokens that it is expected to use."""

    exchange: Exchange
    tokens: int


class Written(msgspec.Struct, frozen=True):
    """A complete answer to the job's request, and what it has cost."""

    answer: JobAnswer
    usage: UsageReport
    milliseconds: int


def prepare_job(task: SummaryTask) -> JobRequest:
    """Writes the job's request. Raises GatewayError where its backend cannot be sent it."""
    writer, summary_range = task.writer, task.summary_range
    request = summary_conversation(task.conversation, summary_range, writer.sent_name, task.schema)
    request = writer.backend.with_request_id(request)
    exchange = Exchange(writer.backend.adapter, request, writer.route.policy, label=writer.backend.state_label)
    return JobRequest(exchange, estimate_view(request) + summary_range.output_tokens)


async def ask(transport: Transport, task: SummaryTask, request: JobRequest) -> Written:
    """Returns the model's answer. Raises GatewayError."""
    began = time.monotonic()
    events = await complete(transport, task.writer.backend, request.exchange, task.deadline_s)
    answer = _answer(events)
    usage = _usage(events, request.tokens - task.summary_range.output_tokens, answer)
    return Written(answer, usage, int((time.monotonic() - began) * 1000))


def _answer(events: Sequence[Event]) -> JobAnswer:
    answer = read_answer(events)
    return JobAnswer(answer.text, None if answer.finish is None else answer.finish.reason, len(answer.calls))


def _usage(events: Sequence[Event], prompt_estimate: int, answer: JobAnswer) -> UsageReport:
    """Returns the tokens that the backend reports; estimates where it reports none."""
    reports = [event for event in events if isinstance(event, UsageReport) and not event.estimated]
    prompt = max((report.prompt_tokens or 0 for report in reports), default=0)
    completion = max((report.completion_tokens or 0 for report in reports), default=0)
    return UsageReport(
        prompt or prompt_estimate,
        completion or estimate_text(answer.text),
        estimated=not (prompt and completion),
    )


def record_of(task: SummaryTask, written: Written) -> SummaryRecord:
    """Returns the record of a checked summary. Raises SummaryRejected for an answer that must not be stored."""
    summary_range, writer = task.summary_range, task.writer
    start = system_prefix(task.conversation.turns)
    summary = read_summary(
        written.answer, task.conversation.turns[start : start + summary_range.boundary.turns], summary_range
    )
    return SummaryRecord(
        tenant=task.tenant,
        digest=summary_range.boundary.digest,
        turns=summary_range.boundary.turns,
        root=task.root,
        generation=summary_range.generation,
        parent=None if summary_range.previous is None else summary_range.previous.digest,
        prompt_version=PROMPT_VERSION,
        created=time.time(),
        producer=Producer(writer.name, writer.backend.name, writer.sent_name, task.request_id),
        cost=Cost(
            written.usage.prompt_tokens or 0,
            written.usage.completion_tokens or 0,
            written.usage.estimated,
            written.milliseconds,
            summary_range.covered_tokens,
            estimate_text(summary.text),
        ),
        content=summary.content,
        known=summary.known,
        text=summary.text,
    )
