"""Runs llama.cpp's own HTTP server for a GGUF file on a free loopback port, as long as stdin is open.

Run as `python -m gateway.local.llama_server FILE [TOKENS]`, with the context in tokens. It prints its address when the
model is loaded. The parent process holds the other end of stdin: when the parent ends, in whatever way, so does this
process.
"""

import os
import sys
from typing import Final

import xllamacpp

CONTEXT: Final = 4096
ONE_THREAD: Final = 1
ERRORS: Final = 1


def serve(weights: str, context: int = CONTEXT) -> None:
    """Serves until stdin ends. Raises RuntimeError when the model cannot be loaded."""
    server = xllamacpp.Server(_parameters(weights, context))
    print(server.listening_address, flush=True)  # noqa: T201 (the parent reads it from stdout)
    sys.stdin.buffer.read()
    # The server's own shutdown waits for running responses; no client is left to read them.
    os._exit(0)


def _parameters(weights: str, context: int) -> xllamacpp.CommonParams:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = weights
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = context
    parameters.n_parallel = 1
    # Threads that wait actively starve each other where cores are shared; one that sleeps keeps its speed.
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        threads.n_threads = ONE_THREAD
        threads.poll = 0
    parameters.ui = False
    parameters.endpoint_metrics = True
    # No page in a browser may call this server; the gateway is no browser.
    parameters.cors_origins = ""
    parameters.verbosity = ERRORS
    return parameters


if __name__ == "__main__":
    serve(sys.argv[1], *map(int, sys.argv[2:]))
