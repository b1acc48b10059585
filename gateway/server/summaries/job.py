"""Writes one summary: asks a model for it, checks the answer, and returns the record to store."""

import time

import msgspec

from gateway.core.conversation import Conversation
from gateway.core.events import UsageReport
from gateway.core.tokens import estimate_text
from gateway.history.classify import system_prefix
from gateway.history.directives import without_cleared
from gateway.memory.summaries.job_answer import JobAnswer, read_summary
from gateway.memory.summaries.job_request import PROMPT_VERSION, summary_conversation
from gateway.memory.summaries.plan import SummaryRange
from gateway.memory.summaries.summary import Cost, Producer, SummaryRecord
from gateway.server.state.model_calls import ModelCalls
from gateway.server.state.store import StateStore
from gateway.server.summaries.recall import Recalled
from gateway.server.upstream.completion import CompletionRequest, RoutedModel, prepare_completion


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


class Written(msgspec.Struct, frozen=True):
    """A complete answer to the job's request, and what it has cost."""

    answer: JobAnswer
    usage: UsageReport
    milliseconds: int


def prepare_job(task: SummaryTask) -> CompletionRequest:
    """Writes the job's request. Raises GatewayError where its backend cannot be sent it."""
    writer, summary_range = task.writer, task.summary_range
    request = summary_conversation(task.conversation, summary_range, writer.sent_name, task.schema)
    return prepare_completion(writer, request, summary_range.output_tokens)


async def ask(models: ModelCalls, task: SummaryTask, request: CompletionRequest) -> Written:
    """Returns the model's answer. Raises GatewayError."""
    completion = await models.ask(task.tenant, request, task.deadline_s)
    answer = completion.answer
    reason = None if answer.finish is None else answer.finish.reason
    return Written(JobAnswer(answer.text, reason, len(answer.calls)), completion.usage, completion.milliseconds)


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
