"""Describes a model to clients: the facts of its settings, else those of its backend's list, as far as the gateway can
serve them.
"""

from typing import Final

from gateway.adapter import BackendModel, Capabilities
from gateway.core.model_facts import EFFORT_WORDS, Effort, ModelFacts, PatchForm
from gateway.core.policy import Policy
from gateway.dialect import ModelInfo
from gateway.server.upstream.backends import Backend
from gateway.settings import ModelSettings

PDF: Final = "application/pdf"
EFFORT: Final = "reasoning_effort"
# The largest part of the window that a client is told to leave free for an answer.
_MOST_FREE: Final = 4


def describe_model(
    name: str, created: int, route: ModelSettings, backend: Backend, listed: BackendModel | None = None
) -> ModelInfo:
    """Returns the model of a name. `listed` is its entry in the backend's list, None where there is none.

    What the backend's wire cannot carry is not offered, whatever is known of the model; what is not known of it is
    offered where the wire can carry it, except the form of apply_patch, which a model must have been trained for: only
    a wire that has tools with free text as input suggests that. Pictures and PDFs that are read for the model are
    offered, too: a client would otherwise not send them.
    """
    facts = route.facts if listed is None else route.facts.over(listed.facts)
    capabilities = backend.adapter.capabilities
    length = route.context_length or (None if listed is None else listed.context_length)
    tools = capabilities.tools and facts.tools is not False
    suggested: PatchForm = "freeform" if "custom" in capabilities.carries else "none"
    efforts = _efforts(facts, capabilities, route.policy, route.name or name)
    return ModelInfo(
        name,
        created,
        tools=tools,
        images=route.policy.images == "describe" or (capabilities.images and facts.images is not False),
        context_length=length,
        files=route.policy.documents == "text" or (_takes_pdf(capabilities, route.policy) and facts.files is not False),
        parallel_calls=tools and facts.parallel_calls is not False,
        max_output=facts.max_output,
        compact_at=facts.compact_at or _compact_at(length, facts.max_output),
        efforts=efforts,
        default_effort=facts.default_effort if efforts is not None and facts.default_effort in efforts else None,
        apply_patch=(facts.apply_patch or suggested) if tools else "none",
        display_name=facts.display_name or "",
    )


def _takes_pdf(capabilities: Capabilities, policy: Policy) -> bool:
    return PDF in (capabilities.files if policy.profile.files is None else policy.profile.files)


def _efforts(facts: ModelFacts, capabilities: Capabilities, policy: Policy, model: str) -> tuple[Effort, ...] | None:
    """Returns the efforts that are known, else those that the profile has for the model."""
    if EFFORT not in capabilities.supported_params:
        return ()
    if facts.efforts is not None or not capabilities.request_rules:
        return facts.efforts
    rules = policy.profile.request_rules
    if rules is None:
        return None
    own = rules.of_model(policy.base_model or model)
    thinking = (None if own is None else own.thinking) or rules.thinking
    if thinking is None or thinking.efforts is None:
        return None
    return tuple([word for word in EFFORT_WORDS if word in thinking.efforts])


def _compact_at(length: int | None, max_output: int | None) -> int | None:
    """Returns the tokens from which the longest answer might not fit beside the conversation. The window of a model
    whose answer may fill all of it is not given up for that."""
    if length is None or max_output is None:
        return None
    return max(length - min(max_output, length // _MOST_FREE), 1)
