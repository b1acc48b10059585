"""Reads which other models may answer in the place of one, and checks them against the models of the file."""

from collections.abc import Mapping

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings.check import nearest, read_struct
from gateway.settings.model_names import is_pattern
from gateway.settings.values import Candidate, ModelSettings


def read_candidates(raw: Json, where: str) -> tuple[Candidate, ...]:
    """Returns the candidates of a model, each given by its name or as an object. Raises SettingsError."""
    if not isinstance(raw, list):
        raise SettingsError(f"{where} must be a list of names of other models")
    found = [
        Candidate(one) if isinstance(one, str) else read_struct(one, Candidate, f"{where}[{at}]")
        for at, one in enumerate(raw)
    ]
    names = [one.model for one in found]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise SettingsError(f"{where}[{at}]: {name!r} stands there twice")
    return tuple(found)


def check_candidates(models: Mapping[str, ModelSettings]) -> None:
    """Raises SettingsError for a candidate, or a `longer` model, that is no other model of the file."""
    for name, entry in models.items():
        for at, candidate in enumerate(entry.candidates):
            _check(f"models.{name}.candidates[{at}]", name, candidate.model, models)
        if entry.longer is None:
            continue
        _check(f"models.{name}.longer", name, entry.longer, models)
        window, other = entry.context_length, models[entry.longer].context_length
        if window is not None and other is not None and other <= window:
            raise SettingsError(f"models.{name}.longer: the context_length of {entry.longer!r} is not longer")


def _check(where: str, name: str, other: str, models: Mapping[str, ModelSettings]) -> None:
    if other == name:
        raise SettingsError(f"{where}: {name!r} is the model itself; name another one")
    if is_pattern(other):
        raise SettingsError(f"{where}: {other!r} is a pattern; name one model")
    if other not in models:
        raise SettingsError(f"{where}: there is no model {other!r}{nearest(other, models)}")
