"""The clients of the dialect kit, for tests of all dialects."""

import pkgutil
from typing import Final

from gateway.registry import DIALECTS
from gateway.testing.dialect_case import DialectCase

CASES: Final[tuple[DialectCase, ...]] = tuple(
    [pkgutil.resolve_name(f"tests.adapters.{name}.client.test_conformance:CASE") for name in DIALECTS]
)
