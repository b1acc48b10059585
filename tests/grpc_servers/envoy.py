"""Runs Envoy as the proxy that translates gRPC-Web for servers of gRPC."""

import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from gateway.core.conversation import Json
from tests.grpc_servers.installed import FOLDER
from tests.grpc_servers.server_process import accepting, free_port, server_process

_TYPE: Final = "type.googleapis.com/envoy.extensions"
_HTTP2: Final[Json] = {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": f"{_TYPE}.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
}


@asynccontextmanager
async def envoy(ports: Sequence[int]) -> AsyncIterator[list[int]]:
    """Run Envoy in front of the servers at these ports of this machine until the block ends. Return its own ports, in
    the same order: HTTP/1.1 or HTTP/2 in, HTTP/2 out."""
    own = [free_port() for _ in ports]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "envoy.json"
        file.write_text(json.dumps(_configuration(list(zip(own, ports, strict=True)))))
        (binary,) = FOLDER.glob("envoy/lib/python*/site-packages/envoy/_bin/envoy")
        arguments = ("--concurrency", "1", "--disable-hot-restart", "--log-level", "error")
        async with server_process([binary, "--config-path", file, *arguments]) as process:
            for port in own:
                await accepting(process, port)
            yield own


def _configuration(pairs: list[tuple[int, int]]) -> Json:
    return {
        "static_resources": {
            "listeners": [_listener(own, f"behind-{own}") for own, _ in pairs],
            "clusters": [_cluster(f"behind-{own}", port) for own, port in pairs],
        }
    }


def _listener(port: int, cluster: str) -> Json:
    route: Json = {"match": {"prefix": "/"}, "route": {"cluster": cluster, "timeout": "0s"}}
    manager: Json = {
        "@type": f"{_TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": cluster,
        "route_config": {"virtual_hosts": [{"name": cluster, "domains": ["*"], "routes": [route]}]},
        "http_filters": [
            {"name": "grpc_web", "typed_config": {"@type": f"{_TYPE}.filters.http.grpc_web.v3.GrpcWeb"}},
            {"name": "router", "typed_config": {"@type": f"{_TYPE}.filters.http.router.v3.Router"}},
        ],
    }
    return {
        "address": _address(port),
        "filter_chains": [{"filters": [{"name": "http_connection_manager", "typed_config": manager}]}],
    }


def _cluster(name: str, port: int) -> Json:
    endpoint: Json = {"endpoint": {"address": _address(port)}}
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "5s",
        "typed_extension_protocol_options": _HTTP2,
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
    }


def _address(port: int) -> Json:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
