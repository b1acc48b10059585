"""Makes the features that remember something, where the settings switch them on for at least one model."""

from gateway.server.state.request_state import StateFeature, StateFeatures, SummaryFeature
from gateway.server.state.stores import Stores
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import Settings


def state_features(
    settings: Settings, stores: Stores, metrics: Metrics, summaries: SummaryFeature | None = None
) -> StateFeatures | None:
    """Returns the features in the order in which they see a request; None where all of them are off."""
    features: list[StateFeature] = []
    if any(entry.keeper.enabled for entry in settings.models.values()):
        # A feature that is off costs not even its import.
        from gateway.server.state.keeper import Keeper

        features.append(Keeper(metrics, settings.keys))
    return StateFeatures(features, stores, summaries) if features or summaries else None
