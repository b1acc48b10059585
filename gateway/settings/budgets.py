"""Checks the budgets of keys, which depend on the prices of the models."""

from collections.abc import Iterator, Mapping

from gateway.core.errors import SettingsError
from gateway.settings.model_names import ModelNames
from gateway.settings.values import KeySettings, ModelSettings, VisionSettings


def check_budgets(keys: Mapping[str, KeySettings], models: Mapping[str, ModelSettings], vision: VisionSettings) -> None:
    """Raises SettingsError where money is limited and a model that the key's requests may use has no price, or one in
    another currency: its cost would count nowhere."""
    for name, key in keys.items():
        if not key.budget.counts_money:
            continue
        currencies: dict[str, str] = {}
        for model, entry in _spent_on(key, models, vision):
            if entry.price is None:
                raise SettingsError(f"models.{model}.price is missing: keys.{name}.budget limits money")
            other = currencies.setdefault(entry.price.currency, model)
            if len(currencies) > 1:
                first = next(iter(currencies.values()))
                raise SettingsError(
                    f"models.{other}.price.currency is not that of {first!r}: keys.{name}.budget counts one currency"
                )


def _spent_on(
    key: KeySettings, models: Mapping[str, ModelSettings], vision: VisionSettings
) -> Iterator[tuple[str, ModelSettings]]:
    """Yields the entries of the models that the key's requests use, with those that the gateway asks beside them."""
    names = ModelNames({name: (name, entry) for name, entry in models.items()})
    used = [found for model in key.models or models if (found := names.find(model)) is not None]
    beside = [entry.compress.model for _, entry in used]
    if any(entry.policy.images == "describe" for _, entry in used):
        beside.append(vision.model)
    yield from used
    for model in beside:
        if model is not None and (found := names.find(model)) is not None:
            yield found
