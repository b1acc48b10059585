"""Tests bound sockets and their printed addresses."""

import contextlib

import pytest

from gateway.core.errors import SettingsError
from gateway.server.process.listener import address, bind
from gateway.settings import ServerSettings


@pytest.mark.parametrize(("host", "told"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")])
def test_the_address_is_one_that_can_be_asked(host: str, told: str) -> None:
    with contextlib.closing(bind(ServerSettings(host=host, port=0))) as listener:
        assert address(listener) == f"http://{told}:{listener.getsockname()[1]}"


def test_an_address_that_cannot_be_had_is_named() -> None:
    with contextlib.closing(bind(ServerSettings(port=0))) as listener:
        taken = listener.getsockname()[1]
        with pytest.raises(SettingsError, match=f"cannot listen on 127.0.0.1:{taken}: Address already in use"):
            bind(ServerSettings(port=taken))
