"""Asks whether a backend accepts a history, and which fields of a profile mend it where it does not."""

from collections.abc import Sequence

import msgspec

from gateway.core.errors import BackendTimeout, InvalidRequest
from gateway.diagnostics.doctor.finding import Changes, Finding, broken, ok, remark, skipped, todo, untold
from gateway.diagnostics.doctor.probe import ProbedBackend
from gateway.diagnostics.doctor.question import Answer, Question
from gateway.diagnostics.doctor.requests import CHAT


async def accepts(question: Question, remedies: Sequence[Changes], backend: ProbedBackend) -> Finding:
    """Sends the question; where the backend refuses it, again with each remedy, until one is accepted."""
    answer = await backend.ask(question)
    if answer.refusal is None:
        return failure(answer) or ok("accepted")
    if question.as_is:
        repaired = await backend.ask(_repaired(question))
        if repaired.refusal is None:
            return failure(repaired) or remark(_mended(answer), answer.words, answer.rule)
        answer = repaired
    if answer.rule in backend.refusals:
        return skipped(f"refused by {answer.rule}, which {backend.refusals[answer.rule]} found")
    for changes in remedies:
        tried = msgspec.structs.replace(_repaired(question), changes=changes)
        if (await backend.ask(tried)).error is None:
            return todo("refused; the profile can mend it, as was tried", "see the suggestion", answer.words, changes)
    return todo("refused, and no profile mends it", _advice(answer), answer.words, rule=answer.rule)


def failure(answer: Answer) -> Finding | None:
    """Returns the finding of a question that got no answer, None for one that did."""
    error = answer.error
    if error is None:
        return None
    if isinstance(error, BackendTimeout):
        return untold(error.message)
    if isinstance(error, InvalidRequest):
        return skipped(f"the adapter does not offer it: {error.message.rstrip('.')}")
    return broken(f"the request fails: {error.message}", f"see docs/errors.md for the code {error.code}", answer.words)


def sends(backend: ProbedBackend, field: str) -> bool:
    """Returns whether a field of a request reaches the backend."""
    capabilities = backend.capabilities
    return capabilities.passthrough == CHAT or field in capabilities.supported_params


def undeclared(backend: ProbedBackend, field: str) -> str:
    """Returns the advice about a field that has no effect; where the adapter declares it, that is a finding, too."""
    if field in backend.capabilities.supported_params:
        return f"the adapter {backend.settings.adapter} declares {field}, and the backend ignores it: do not rely on it"
    return "the prompt asks for it, and the model does not obey: do not rely on it"


def _repaired(question: Question) -> Question:
    return msgspec.structs.replace(question, as_is=False)


def _mended(answer: Answer) -> str:
    known = f" ({answer.rule})" if answer.rule else ", in words that the gateway does not know"
    return f"refused{known}; the repair mends it before it is sent"


def _advice(answer: Answer) -> str:
    advice = answer.refusal.extra.get("advice") if answer.refusal is not None else None
    return str(advice) if advice else "clients must not send this; its words are unknown to the gateway: report them"
