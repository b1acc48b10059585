"""The routes that the gateway has beside those of dialects and of the inspector."""

from typing import Final

from gateway.server.access.request_checks import OPEN_PATHS, START_PAGE
from gateway.server.inspect.access import OPERATOR_PATHS
from gateway.server.upstream.demo_backends import DEMO_REQUESTS

OWN_ROUTES: Final = frozenset(
    {("POST", "/v1/explain"), *(("GET", path) for path in (*OPEN_PATHS, *OPERATOR_PATHS))}
    | {("HEAD", "/openapi.json"), *(("GET", path) for path in ("/docs", "/openapi.json", DEMO_REQUESTS))}
)
OWN_PATHS: Final = frozenset(path for _, path in OWN_ROUTES) | {START_PAGE}
