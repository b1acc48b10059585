"""Runs the official server of gRPC as a backend, with one method that a test plays."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

import grpc

# Any: grpcio has no types.
Context: TypeAlias = Any
# Sends the messages of a response; `context` sets its status and its metadata.
Play: TypeAlias = Callable[[bytes, Context], Iterator[bytes]]
Shape: TypeAlias = Literal["unary", "server stream", "bidirectional"]

_THREADS: Final = 40


class GrpcBackend:
    """`requests` holds the message of each call, `metadata` its headers, `seconds` the time that it has left."""

    def __init__(self, play: Play, scheme: str) -> None:
        self._play = play
        self._scheme = scheme
        self.port = 0
        self.requests: list[bytes] = []
        self.metadata: list[dict[str, str]] = []
        self.seconds: list[float] = []

    @property
    def base_url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def one(self, request: bytes, context: Context) -> bytes:
        """Answer a unary call."""
        (message,) = self.stream(request, context)
        return message

    def stream(self, request: bytes, context: Context) -> Iterator[bytes]:
        """Answer a call with a stream."""
        self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        self.seconds.append(context.time_remaining())
        yield from self._play(request, context)

    def bidirectional(self, requests: Iterator[bytes], context: Context) -> Iterator[bytes]:
        """Answer a call that must hold one message and its end."""
        (request,) = requests
        return self.stream(request, context)


@contextmanager
def grpc_backend(
    path: str, play: Play, shape: Shape = "server stream", tls: grpc.ServerCredentials | None = None
) -> Iterator[GrpcBackend]:
    """Serve this path until the block ends."""
    backend = GrpcBackend(play, "http" if tls is None else "https")
    handlers = {
        "unary": lambda: grpc.unary_unary_rpc_method_handler(backend.one),
        "server stream": lambda: grpc.unary_stream_rpc_method_handler(backend.stream),
        "bidirectional": lambda: grpc.stream_stream_rpc_method_handler(backend.bidirectional),
    }
    _, service, method = path.split("/")
    server = grpc.server(ThreadPoolExecutor(_THREADS))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handlers[shape]()}),))
    place = "127.0.0.1:0"
    backend.port = server.add_insecure_port(place) if tls is None else server.add_secure_port(place, tls)
    server.start()
    try:
        yield backend
    finally:
        server.stop(0).wait()


def sends(messages: Sequence[bytes], code: int = 0, details: str = "") -> Play:
    """Send these messages and this status."""

    def play(request: bytes, context: Context) -> Iterator[bytes]:
        yield from messages
        if code:
            context.abort(next(one for one in grpc.StatusCode if one.value[0] == code), details)

    return play
