"""Runs the proxies of HTTP/2 that stand in front of servers of gRPC."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from tests.grpc_servers.server_process import accepting, free_port, server_process

# It sends GOAWAY after so many requests of a connection.
_REQUESTS: Final = 100
_NGINX: Final = """
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {{ }}
http {{
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  keepalive_requests {requests};
  client_max_body_size 0;
{servers}
}}
"""
_SERVER: Final = """
  server {{
    listen 127.0.0.1:{own} http2;
    location / {{ grpc_pass grpc://127.0.0.1:{port}; }}
  }}
"""


@asynccontextmanager
async def nginx(ports: Sequence[int]) -> AsyncIterator[list[int]]:
    """Run nginx in front of the servers at these ports of this machine until the block ends. Return its own ports, in
    the same order."""
    own = [free_port() for _ in ports]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "nginx.conf"
        servers = (_SERVER.format(own=here, port=port) for here, port in zip(own, ports, strict=True))
        file.write_text(_NGINX.format(requests=_REQUESTS, servers="".join(servers)))
        command = ["nginx", "-p", folder, "-c", str(file), "-e", "stderr"]
        async with server_process(command) as process:
            for port in own:
                await accepting(process, port)
            yield own


@asynccontextmanager
async def nghttpx(ports: Sequence[int]) -> AsyncIterator[list[int]]:
    """Run a process of nghttpx in front of each of the servers at these ports, as `nginx` does with one."""
    own = [free_port() for _ in ports]
    async with AsyncExitStack() as stack:
        for here, port in zip(own, ports, strict=True):
            options = {
                "conf": "/dev/null",
                "errorlog-file": "/dev/stderr",
                "frontend": f"127.0.0.1,{here};no-tls",
                "backend": f"127.0.0.1,{port};;proto=h2",
            }
            command = ["nghttpx", *(f"--{name}={value}" for name, value in options.items())]
            await accepting(await stack.enter_async_context(server_process(command)), here)
        yield own
