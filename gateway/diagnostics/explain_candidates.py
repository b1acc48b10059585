"""Says of a request, as a client wrote it, which models of the settings may answer it, and what each plan loses;
nothing is sent."""

from collections.abc import Mapping

from gateway.adapter import Adapter
from gateway.core.errors import InvalidRequest
from gateway.core.requirements import Requirement
from gateway.diagnostics.explanation import ExplainedCandidate
from gateway.diagnostics.routed_request import route_document
from gateway.dialect import Dialect
from gateway.dialects.document import Document
from gateway.exchange.candidates import Considered, Model, bound_to_account, by_least_loss, consider
from gateway.settings import Settings
from gateway.settings.model_names import ModelNames


def explain_candidates(
    document: Document, settings: Settings, adapters: Mapping[str, Adapter], dialect: Dialect
) -> tuple[ExplainedCandidate, ...]:
    """Returns the model of the request, and behind it the others in the order in which they would be asked, at last
    those that cannot be. Raises InvalidRequest like `route_document`, and for a model without a backend."""
    routed = route_document(document, settings, adapters, dialect)
    if routed.adapter is None:
        raise InvalidRequest("To compare candidates, the settings must have a model with a backend.", param="model")
    models = _models(ModelNames(settings.models).known_name(routed.model), settings, adapters)
    bound, account = bound_to_account(routed.conversation), models[0].label

    def considered(model: Model) -> Considered:
        required = [word for one in (models[0], model) for word in _required(one.name, settings)]
        return consider(model, routed.conversation, account, bound, frozenset(required))

    first, *others = map(considered, models)
    order = [model for _, model in by_least_loss(others)]
    ranked = [one for model in order for one in others if one.model == model]
    return tuple(map(_explained, [first, *ranked, *[one for one in others if one.loss is None]]))


def _models(name: str, settings: Settings, adapters: Mapping[str, Adapter]) -> list[Model]:
    entry = settings.route(name)
    names = [name]
    if entry is not None:
        names += [one.model for one in entry.candidates]
        names += [entry.longer] if entry.longer is not None and entry.longer not in names else []
    return [model for one in names if (model := _model(one, settings, adapters)) is not None]


def _required(name: str, settings: Settings) -> tuple[Requirement, ...]:
    entry = settings.route(name)
    return () if entry is None else entry.require


def _model(name: str, settings: Settings, adapters: Mapping[str, Adapter]) -> Model | None:
    entry = settings.route(name)
    adapter = None if entry is None else adapters.get(entry.backend)
    if entry is None or adapter is None:
        return None
    policy = entry.on(adapter.capabilities.native).policy
    label = settings.backends[entry.backend].state_label
    return Model(name, entry.name or name, entry.backend, adapter, policy, label, entry.context_length)


def _explained(one: Considered) -> ExplainedCandidate:
    loss = one.loss
    if loss is None:
        return ExplainedCandidate(one.model.name, one.model.backend, refusal=one.refusal)
    return ExplainedCandidate(one.model.name, one.model.backend, loss.over_window, loss.names, loss.losses)
