"""Defines the answers of the dialect as msgspec types, for the published document.

The encoders write answers field by field; clients may rely on the listed fields. Source: google-genai 3.6.1,
`google.genai.interactions`.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from gateway.core.conversation import Violation
from gateway.core.notices import Notice
from gateway.dialects.dragoman_field import Diagnostics


class InteractionUsage(Struct, frozen=True):
    """Token counts; `dragoman.usage` says how reliable they are. `total_output_tokens` is without the thoughts."""

    total_input_tokens: int
    total_output_tokens: int
    total_tokens: int
    total_thought_tokens: int | UnsetType = UNSET
    total_cached_tokens: int | UnsetType = UNSET


class InteractionStep(Struct, frozen=True):
    """A step: `thought` has `summary` and `signature`, `model_output` its `content`, `function_call` the rest."""

    type: str
    content: list[dict[str, Any]] | UnsetType = UNSET
    summary: list[dict[str, Any]] | UnsetType = UNSET
    signature: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: dict[str, Any] | UnsetType = UNSET


class InteractionFault(Struct, frozen=True):
    """Why an interaction has no complete answer."""

    code: str
    message: str


class InteractionObject(Struct, frozen=True):
    """An interaction. `store` says whether it is stored. The object of a stream's events has no `steps`."""

    id: str
    object: Literal["interaction"]
    status: Literal["in_progress", "completed", "requires_action", "incomplete"]
    model: str
    created: str
    updated: str
    store: bool
    steps: list[InteractionStep] | UnsetType = UNSET
    usage: InteractionUsage | UnsetType = UNSET
    previous_interaction_id: str | UnsetType = UNSET
    input: list[dict[str, Any]] | UnsetType = UNSET
    errors: list[InteractionFault] | UnsetType = UNSET
    dragoman: Diagnostics | UnsetType = UNSET


class InteractionEvent(Struct, frozen=True):
    """An event of a stream."""

    event_type: Literal[
        "interaction.created",
        "interaction.status_update",
        "step.start",
        "step.delta",
        "step.stop",
        "interaction.completed",
        "error",
    ]
    interaction: InteractionObject | UnsetType = UNSET
    interaction_id: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    index: int | UnsetType = UNSET
    step: InteractionStep | UnsetType = UNSET
    delta: dict[str, Any] | UnsetType = UNSET
    error: InteractionFault | UnsetType = UNSET


class InteractionErrorStatus(Struct, frozen=True):
    """The error. `code` is stable; `status` and `details` are those of Google's APIs."""

    code: str
    message: str
    status: str
    details: list[dict[str, Any]]
    violations: list[Violation] | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class InteractionErrorBody(Struct, frozen=True):
    """The body of every error response."""

    error: InteractionErrorStatus


class DeletedInteraction(Struct, frozen=True):
    """Says that an interaction is deleted: an empty object."""
