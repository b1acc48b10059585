"""Defines the gateways to measure: how each is started, its port, and what its requests need in addition."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from bench import payload
from bench.load import Target
from bench.websocket import WebSocketTarget

# The first of the ports of a run; two runs on one machine need ports of their own.
BACKEND_PORT: Final = int(os.environ.get("BENCH_PORT", "9200"))
OWN_PORT: Final = BACKEND_PORT + 1
_RELAY_PORT: Final = BACKEND_PORT + 2
_NGINX_PORT: Final = BACKEND_PORT + 3
_H11_PORT: Final = BACKEND_PORT + 4
_LITELLM_PORT: Final = BACKEND_PORT + 5
BACKEND: Final = f"http://127.0.0.1:{BACKEND_PORT}"
CHAT: Final = "/v1/chat/completions"
KEY: Final = "bench-key"
_PAGE_KB: Final = os.sysconf("SC_PAGE_SIZE") // 1024


class Streams(msgspec.Struct, frozen=True):
    """Streamed responses that are measured beside those of chat completions: another client or another wire."""

    target: Target
    model: str


class MeasuredGateway(msgspec.Struct, frozen=True):
    """One gateway to measure. `command` None: it is already running. `streams`: other ways through it, by name."""

    target: Target
    command: tuple[str, ...] | None = None
    environ: Mapping[str, str] = {}
    streams: Mapping[str, Streams] = {}


class Running:
    """A started process."""

    def __init__(self, pid: int | None, start_s: float) -> None:
        self.pid = pid
        self.start_s = start_s
        self.idle_mb = self.memory_mb

    @property
    def cpu_s(self) -> float:
        """Processor time so far in seconds, to the nanosecond (Linux; else 0)."""
        return sum(map(_process_time, self._pids()))

    @property
    def memory_mb(self) -> float:
        """Resident memory (Linux; else 0)."""
        return sum(int(fields[21]) for fields in self._stats()) * _PAGE_KB / 1024

    @property
    def descriptors(self) -> int:
        """The number of open descriptors (Linux)."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def _stats(self) -> Iterator[list[str]]:
        """Yields the stat fields of the process and its children."""
        with contextlib.suppress(OSError):
            for pid in self._pids():
                yield Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()

    def _pids(self) -> Iterator[int]:
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            if self.pid is not None:
                yield self.pid
            yield from map(int, children)


def _process_time(pid: int) -> float:
    # The number of a process's clock, as clock_getcpuclockid(3) computes it on Linux; Python has this only for threads.
    with contextlib.suppress(OSError):
        return time.clock_gettime(~pid << 3 | 2)
    return 0.0


@contextlib.contextmanager
def backend(folder: Path, deltas: int = payload.CHUNKS, held: int = 0) -> Iterator[None]:
    """Runs the backend of the measured gateways, with these arguments of `bench.mock`."""
    command = (sys.executable, "-m", "bench.mock", str(BACKEND_PORT), str(deltas), str(held))
    with started(command, BACKEND_PORT, 1, {}, folder / "mock.log"):
        yield


def known(folder: Path) -> dict[str, MeasuredGateway]:
    """Returns Dragoman with its defaults and the installed control gateways. Their files are written to `folder`."""
    python = sys.executable
    key = (("authorization", f"Bearer {KEY}"),)
    chat, responses, messages = (
        Target(f"http://127.0.0.1:{OWN_PORT}{path}", key, request)
        for path, request in (
            (CHAT, payload.request),
            ("/v1/responses", payload.responses_request),
            ("/v1/messages", payload.messages_request),
        )
    )
    websocket = WebSocketTarget(responses.url, key, payload.responses_request)
    own = MeasuredGateway(
        chat,
        serve_command(settings_file(folder)),
        {"DRAGOMAN_API_KEYS": KEY},
        {
            "protobuf": Streams(chat, "agent"),
            "protobuf by a mapping": Streams(chat, "mapped"),
            "gRPC": Streams(chat, "grpc"),
            "gRPC-Web": Streams(chat, "grpc_web"),
            "text": Streams(chat, "text"),
            "Responses client": Streams(responses, payload.model()),
            "Responses client over WebSocket": Streams(websocket, payload.model()),
            "Messages client": Streams(messages, payload.model()),
            "Responses backend": Streams(chat, "responses"),
            "Responses client and backend": Streams(responses, "responses"),
            "Responses client over WebSocket, and backend": Streams(websocket, "responses"),
            "Messages backend": Streams(chat, "messages"),
            "Messages client and backend": Streams(messages, "messages"),
        },
    )
    relay = (python, "-m", "uvicorn", "bench.relay:app", "--no-access-log", "--log-level", "warning", "--port")
    to_backend = {"BENCH_BACKEND": BACKEND}
    found = {
        "direct": MeasuredGateway(Target(BACKEND + CHAT)),
        "dragoman": own,
        "relay": MeasuredGateway(
            Target(f"http://127.0.0.1:{_RELAY_PORT}{CHAT}"), (*relay, str(_RELAY_PORT)), to_backend
        ),
        "relay, h11": MeasuredGateway(
            Target(f"http://127.0.0.1:{_H11_PORT}{CHAT}"), (*relay, str(_H11_PORT), "--http", "h11"), to_backend
        ),
    }
    if (nginx := shutil.which("nginx")) is not None:
        command = (nginx, "-p", str(folder), "-c", str(_nginx(folder)))
        found["nginx"] = MeasuredGateway(Target(f"http://127.0.0.1:{_NGINX_PORT}{CHAT}"), command)
    return found


def serve_command(settings: Path) -> tuple[str, ...]:
    """Returns the command that starts Dragoman with these settings."""
    return (sys.executable, "-m", "gateway", "serve", "--settings", str(settings))


def settings_file(folder: Path, name: str = "settings", **sections: object) -> Path:
    """Writes the settings of a Dragoman before the benchmark's backend, with these sections beside them."""
    file = folder / f"{name}.json"
    settings = {
        **sections,
        "server": {"port": OWN_PORT},
        "log": {"file": str(folder / "gateway.log")},
        "backends": {
            "native": {"adapter": "adapters.openai_chat.backend:OpenAIChatAdapter", "base_url": f"{BACKEND}/v1"},
            "agent": {"adapter": "adapters.warp.backend:WarpAdapter", "base_url": BACKEND, "rollback": "stream"},
            "mapped": {"adapter": "adapters.proto.backend:ProtoAdapter", "preset": "warp", "base_url": BACKEND},
            "grpc": {"adapter": "proto", "preset": "demo", "base_url": BACKEND},
            "grpc_web": {"adapter": "proto", "preset": "demo", "carrier": "grpc_web", "base_url": BACKEND},
            "messages": {
                "adapter": "adapters.anthropic_messages.backend:AnthropicMessagesAdapter",
                "base_url": BACKEND,
            },
            "responses": {"adapter": "adapters.openai_responses.backend:OpenAIResponsesAdapter", "base_url": BACKEND},
            "text": {"adapter": "adapters.text.backend:TextAdapter", "base_url": BACKEND, "wire": "llama_cpp"},
        },
        "models": {
            "agent": {"backend": "agent", "name": "auto"},
            "mapped": {"backend": "mapped", "name": "auto"},
            "grpc": {"backend": "grpc"},
            "grpc_web": {"backend": "grpc_web"},
            "messages": {"backend": "messages"},
            "responses": {"backend": "responses"},
            "text": {"backend": "text"},
            "*": {"backend": "native"},
        },
    }
    file.write_bytes(msgspec.json.encode(settings))
    return file


def _nginx(folder: Path) -> Path:
    file = folder / "nginx.conf"
    file.write_text(
        f"worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log stderr warn;\n"
        "events { worker_connections 8192; }\n"
        "http { access_log off; client_max_body_size 64m; client_body_buffer_size 16m; keepalive_requests 1000000;\n"
        + "".join(
            f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        + f"upstream backend {{ server 127.0.0.1:{BACKEND_PORT}; keepalive 1024; keepalive_requests 1000000; }}\n"
        f"server {{ listen 127.0.0.1:{_NGINX_PORT} backlog=4096; location / {{ proxy_pass http://backend;\n"
        'proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } } }\n'
    )
    return file


def litellm(folder: Path) -> MeasuredGateway | None:
    """Returns LiteLLM before the chat completions (model `native`) and the Messages API (`messages`) of the backend,
    with the settings that its authors recommend for production; None where neither `BENCH_LITELLM` names its program
    nor one is installed."""
    program = os.environ.get("BENCH_LITELLM") or shutil.which("litellm")
    if program is None:
        return None
    models = (("native", "openai/native", f"{BACKEND}/v1"), ("messages", "anthropic/messages", BACKEND))
    entries = [
        {"model_name": name, "litellm_params": {"model": model, "api_base": base, "api_key": "any"}}
        for name, model, base in models
    ]
    settings = {
        "model_list": entries,
        "litellm_settings": {"set_verbose": False, "num_retries": 0, "telemetry": False},
        "general_settings": {"master_key": f"sk-{KEY}"},
    }
    # Every JSON document is one of YAML.
    file = folder / "litellm.yaml"
    file.write_bytes(msgspec.json.encode(settings))
    command = (
        program,
        "--config",
        str(file),
        "--host",
        "127.0.0.1",
        "--port",
        str(_LITELLM_PORT),
        "--num_workers",
        "1",
    )
    environ = {"LITELLM_MODE": "PRODUCTION", "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    target = Target(f"http://127.0.0.1:{_LITELLM_PORT}{CHAT}", (("authorization", f"Bearer sk-{KEY}"),))
    return MeasuredGateway(target, command, environ)


@contextlib.contextmanager
def started(
    command: tuple[str, ...], port: int, core: int | None, environ: Mapping[str, str], log: Path, patience_s: float = 30
) -> Iterator[Running]:
    """Runs a command, pinned to one core (None: not pinned); the block begins with its first accepted connection.
    Raises TimeoutError after `patience_s`."""
    # Not `gateway.testing.gateway`: the command may be any server, and its start, cores and memory are measured.
    begun = time.perf_counter()
    with log.open("wb") as out:
        process = subprocess.Popen(command, env={**os.environ, **environ}, stdout=out, stderr=out)
        if core is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, {core % (os.cpu_count() or 1)})
        try:
            _await_port(port, process, patience_s)
            start_s = time.perf_counter() - begun
            time.sleep(0.3)
            yield Running(process.pid, start_s)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_port(port: int, process: subprocess.Popen[bytes], patience_s: float) -> None:
    until = time.perf_counter() + patience_s
    while time.perf_counter() < until:
        time.sleep(0.01)
        # Another process may use the port.
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
    raise TimeoutError(f"nothing listens on port {port}")
