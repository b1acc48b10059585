"""docs/settings.md lists every key with its default."""

import json
import pkgutil
import re
from collections.abc import Iterator

import msgspec
import pytest

from gateway.core.model_facts import ModelFacts
from gateway.core.policy import FlattenOptions, LoopGuard, Policy, PromptCache, RecentToolResults
from gateway.providers.profile import Profile
from gateway.providers.registry import PROFILES
from gateway.registry import ADAPTERS
from gateway.settings import (
    BackendSettings,
    BudgetSettings,
    Candidate,
    CompressSettings,
    InspectorSettings,
    KeeperSettings,
    KeyCompressSettings,
    KeySettings,
    LimitSettings,
    LogSettings,
    Price,
    ResponsesSettings,
    ServerSettings,
    StateSettings,
    TracingSettings,
    VisionSettings,
)
from gateway.settings.reload_policy import restart_only
from tests.paths import ROOT

DOCS = ROOT / "docs"
ROW = re.compile(r"^\| `([a-z_.*]+)` \| (.*?) \| (yes|restart) \| ", re.MULTILINE)
ROWS = ROW.findall((DOCS / "settings.md").read_text(encoding="utf-8"))
LISTED = [(key, default) for key, default, _ in ROWS]

KINDS: list[tuple[str, type[msgspec.Struct]]] = [
    ("", Policy),
    ("flatten.", FlattenOptions),
    ("recent_tool_results.", RecentToolResults),
    ("loop_guard.", LoopGuard),
    ("prompt_cache.", PromptCache),
    ("server.", ServerSettings),
    ("limits.", LimitSettings),
    ("log.", LogSettings),
    ("tracing.", TracingSettings),
    ("inspector.", InspectorSettings),
    ("state.", StateSettings),
    ("compress.", CompressSettings),
    ("responses.", ResponsesSettings),
    ("keeper.", KeeperSettings),
    ("vision.", VisionSettings),
    ("keys.*.", KeySettings),
    ("keys.*.budget.", BudgetSettings),
    ("keys.*.compress.", KeyCompressSettings),
    ("backends.*.", BackendSettings),
    ("models.*.candidates.", Candidate),
    ("models.*.price.", Price),
    ("models.*.facts.", ModelFacts),
    *(("", pkgutil.resolve_name(adapter).Options) for adapter in ADAPTERS.values()),
]


def fields() -> Iterator[tuple[str, object]]:
    for prefix, kind in KINDS:
        for field in msgspec.structs.fields(kind):
            if field.name != "options":
                yield prefix + field.name, field.default


@pytest.mark.parametrize(("name", "default"), list(fields()))
def test_every_key_is_listed_with_its_default(name: str, default: object) -> None:
    told = [said for key, said in LISTED if key == name]
    assert told, f"{name} is not in docs/settings.md"
    if default is None or isinstance(default, bool | int | float | str | tuple):
        assert f"`{json.dumps(default)}`" in told, told


def test_no_key_is_listed_that_does_not_exist() -> None:
    assert {key for key, _ in LISTED} <= {name for name, _ in fields()}


def test_every_key_says_whether_it_can_be_reloaded() -> None:
    restart = {f"{prefix}{name}" for prefix, kind in KINDS for name in restart_only(kind)}
    assert restart
    assert {key for key, _, reload in ROWS if reload == "restart"} == restart


def test_every_profile_and_none_else_is_described() -> None:
    page = (DOCS / "providers.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == list(PROFILES)
    described = Profile.__doc__ or ""
    assert [field for field in Profile.__struct_fields__ if f"`{field}`" not in described] == []
