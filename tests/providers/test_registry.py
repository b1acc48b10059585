"""Every file of a provider is listed, and what it says fits together."""

import pkgutil
from typing import Final

import pytest

from gateway import providers
from gateway.providers.provider import Provider
from gateway.providers.refusals import COMMON_REFUSALS, REFUSALS
from gateway.providers.registry import PROFILES, PROVIDERS

MODULES: Final = [
    pkgutil.resolve_name(f"gateway.providers.{found.name}") for found in pkgutil.iter_modules(providers.__path__)
]
DESCRIBED: Final = [value for module in MODULES for value in vars(module).values() if isinstance(value, Provider)]


def test_every_provider_that_a_file_describes_is_listed_once() -> None:
    assert {provider.name for provider in DESCRIBED} == {provider.name for provider in PROVIDERS}
    assert len({provider.name for provider in PROVIDERS}) == len(PROVIDERS)


def test_no_profile_and_no_host_is_of_two_providers() -> None:
    profiles = [name for provider in PROVIDERS for name in provider.profiles]
    hosts = [host for provider in PROVIDERS for host in provider.hosts]
    assert sorted(["none", *profiles]) == sorted(PROFILES)
    assert len(set(hosts)) == len(hosts)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_what_a_provider_names_is_its_own(provider: Provider) -> None:
    kinds = [kind for kind in (provider.hosted, provider.server) if kind is not None]
    assert [kind.name for kind in kinds] == [provider.name]
    named = [*provider.hosts.values(), *(kind.profile for kind in kinds if kind.profile is not None)]
    assert set(named) <= set(provider.profiles)
    assert set(provider.refusals) <= set(REFUSALS)


def test_every_meaning_of_a_refusal_has_words() -> None:
    spoken = {refusal for texts in (COMMON_REFUSALS, *(one.refusals for one in PROVIDERS)) for refusal in texts}
    assert spoken == set(REFUSALS)
    assert len(set(REFUSALS)) == len(REFUSALS)
