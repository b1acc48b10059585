"""Runs every test of connections on both event loops."""

from tests.server.upstream.event_loops import pytest_asyncio_loop_factories as pytest_asyncio_loop_factories
