"""The host and port of the settings -> a listening socket; and that socket -> the URL under which it is reached."""

import socket

from gateway.errors import SettingsError
from gateway.settings import ServerSettings


def bind(server: ServerSettings) -> socket.socket:
    """A listening socket. Raises SettingsError when the address cannot be had."""
    host = server.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay off only for sockets that say they are TCP; it would cost 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, server.port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise SettingsError(f"{server.host}:{server.port} cannot be bound: {reason}") from error
    return listener


def address(listener: socket.socket) -> str:
    """The URL under which a socket bound here is reached from here."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
