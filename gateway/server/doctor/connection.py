"""Opens a connection to each address of a backend's host, and closes it again."""

import asyncio
import socket
import ssl
import time
from contextlib import suppress
from typing import Final

import msgspec

from gateway.diagnostics.doctor.question import Address, Reached
from gateway.server.upstream.http.origin import Origin
from gateway.server.upstream.http.tls import load_context

_FAMILIES: Final = {socket.AF_INET: "IPv4", socket.AF_INET6: "IPv6"}
_DAY_S: Final = 86_400


async def reach(origin: Origin, limit_s: float) -> Reached:
    """Looks the host up, connects to every address of it, and with TLS to the first that can be reached."""
    try:
        async with asyncio.timeout(limit_s):
            found = await asyncio.get_running_loop().getaddrinfo(
                origin.host, origin.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
            )
    except (OSError, TimeoutError) as error:
        return Reached(origin.host, fault=_reason(error))
    addresses = [await _address(family, name[0], origin.port, limit_s) for family, *_, name in found]
    reached = Reached(origin.host, addresses)
    if not origin.tls or all(one.fault for one in addresses):
        return reached
    return await _with_tls(reached, origin, limit_s)


async def _address(family: int, host: str | int, port: int, limit_s: float) -> Address:
    named = Address(_FAMILIES.get(socket.AddressFamily(family), str(family)), str(host))
    try:
        async with asyncio.timeout(limit_s):
            _, writer = await asyncio.open_connection(str(host), port)
    except (OSError, TimeoutError) as error:
        return msgspec.structs.replace(named, fault=_reason(error))
    await _close(writer)
    return named


async def _with_tls(reached: Reached, origin: Origin, limit_s: float) -> Reached:
    try:
        async with asyncio.timeout(limit_s):
            _, writer = await asyncio.open_connection(
                origin.host, origin.port, ssl=load_context(origin.files), server_hostname=origin.host
            )
    except (OSError, TimeoutError) as error:
        return msgspec.structs.replace(reached, fault=_reason(error))
    secured: ssl.SSLObject = writer.get_extra_info("ssl_object")
    version, days = secured.version() or "", _days(secured)
    await _close(writer)
    return msgspec.structs.replace(reached, tls=version, expires_days=days)


def _days(secured: ssl.SSLObject) -> int | None:
    """Returns how long the server's certificate is valid."""
    ends = (secured.getpeercert() or {}).get("notAfter")
    return int((ssl.cert_time_to_seconds(ends) - time.time()) / _DAY_S) if isinstance(ends, str) else None


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def _reason(error: OSError | TimeoutError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, TimeoutError) and not error.strerror:
        return "no answer in time"
    return error.strerror or type(error).__name__
