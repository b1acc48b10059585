"""Checks which model describes pictures, which depends on the entries of the models."""

from collections.abc import Mapping

from gateway.core.errors import SettingsError
from gateway.settings.check import nearest
from gateway.settings.model_names import ModelNames
from gateway.settings.values import ModelSettings, VisionSettings


def check_vision(models: Mapping[str, ModelSettings], vision: VisionSettings) -> None:
    """Raises SettingsError where pictures are to be described and no other model is named that takes them: a model
    cannot describe its own pictures."""
    describing = [name for name, entry in models.items() if entry.policy.images == "describe"]
    if vision.model is None:
        if describing:
            raise SettingsError(f"vision.model is missing: images is describe for the model {describing[0]!r}")
        return
    seeing = ModelNames(models).find(vision.model)
    if seeing is None:
        raise SettingsError(f"vision.model: there is no model {vision.model!r}{nearest(vision.model, models)}")
    if seeing.facts.images is False:
        raise SettingsError(f"vision.model: facts.images of {vision.model!r} is false, so it takes no pictures")
    if seeing.policy.images == "describe":
        raise SettingsError(
            f"vision.model: images is describe for {vision.model!r} itself, which would ask itself: "
            "its own entry must say refuse or placeholder"
        )
    same = (seeing.backend, seeing.name or vision.model)
    for name in describing:
        if (models[name].backend, models[name].name or name) == same:
            raise SettingsError(f"vision.model: {name!r} is the same model at the same backend as {vision.model!r}")
