"""Binds the listening socket to the host and port of the settings, and returns the URL of that socket."""

import errno
import socket
import sys
from typing import Final

from gateway.core.errors import SettingsError
from gateway.settings import ServerSettings
from gateway.settings.local_url import local_url

if sys.platform == "win32":
    # There, SO_REUSEADDR would let another program take the port.
    _REUSE: Final = socket.SO_EXCLUSIVEADDRUSE
else:
    _REUSE: Final = socket.SO_REUSEADDR


class AddressInUse(SettingsError):
    """The address cannot be bound because another program listens there."""


def bind(server: ServerSettings) -> socket.socket:
    """Returns a listening socket. Raises SettingsError when the address cannot be bound."""
    host = server.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only for sockets that state TCP as their protocol; the delay would cost 40 ms a
    # response.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, _REUSE, 1)
        listener.bind((host, server.port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        kind = AddressInUse if error.errno == errno.EADDRINUSE else SettingsError
        raise kind(f"cannot listen on {server.host}:{server.port}: {reason}") from error
    return listener


def address(listener: socket.socket) -> str:
    """Returns the URL under which this machine reaches a socket bound here."""
    return local_url(*listener.getsockname()[:2])
