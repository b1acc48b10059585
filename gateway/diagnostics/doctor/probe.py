"""Defines a probe, and the questions that it may ask the backend."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from gateway.adapter import Capabilities
from gateway.diagnostics.doctor.finding import Finding
from gateway.diagnostics.doctor.question import Answer, Key, ModelNames, Question, Reached
from gateway.settings import BackendSettings


class ProbedBackend(Protocol):
    """One backend, one of its models, and the way to it. `ask` sends the same question once.

    `model` is the model's name at the backend, empty where none is known. `remedies` are the fields of a profile that
    earlier probes found necessary: every later question is sent with them. `refusals` are the rules by which earlier
    probes found it to refuse a history that no profile mends, each with the id of the probe. (Any: JSON.)
    """

    settings: BackendSettings
    capabilities: Capabilities
    model: str
    remedies: dict[str, Any]
    refusals: dict[str, str]

    async def reach(self) -> Reached:
        """Opens a connection to each address of the host."""
        ...

    async def list_models(self, key: Key = "right") -> ModelNames:
        """Fetches the list of models."""
        ...

    async def ask(self, question: Question) -> Answer:
        """Sends a question, and returns the whole answer, or what came before its error."""
        ...

    async def ask_at_once(self, questions: Sequence[Question]) -> tuple[Answer, ...]:
        """Sends several questions at the same time; also the same one several times."""
        ...

    def redact(self, text: str) -> str:
        """Returns the text without a secret of the backend."""
        ...


Run: TypeAlias = Callable[[ProbedBackend], Awaitable[Finding]]


class Probe(msgspec.Struct, frozen=True):
    """One check of a backend. `asks` is what it asks, as a question. `questions` is how many it sends at most, and
    `tokens` about how many tokens these and their answers have, where they are not short.

    `needs` are the ids of the probes without whose success it says nothing. `feature` is what the model can do if it
    succeeds. `slow`: it is tried only on demand.
    """

    id: str
    name: str
    asks: str
    run: Run
    questions: int = 1
    needs: tuple[str, ...] = ()
    feature: str = ""
    slow: bool = False
    tokens: int = 0
