"""Writes the log lines of a request: one for each notice, one for a backend's failure, and the access line."""

import logging
import os
import ssl
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.errors import BackendError, GatewayError
from gateway.core.notices import Notice
from gateway.server.log.logger import LOGGER, log_line, log_notice
from gateway.server.telemetry.request_context import (
    NO_ERROR,
    SHOWN,
    FailedTry,
    Outcome,
    RequestContext,
    RequestObserver,
    shown,
)

_ACCESS: Final = "%s %s key=%s model=%s backend=%s status=%d code=%s ms=%s changes=%r"
_BACKEND_ERROR: Final = (
    "upstream_failure request_id=%s backend=%s model=%s phase=%s code=%s upstream_status=%s attempt=%d ms=%s "
    "credential=%s cause=%s reason=%r said=%r"
)


# These only the operator can correct.
_OPERATORS: Final = frozenset({"upstream_auth_error", "upstream_unknown_url"})
# What an agent causes again with each request is a warning once for a model, and a line at level debug afterwards.
_ONCE: Final = frozenset({"TOOL_NOT_SENT"})
# Models whose names the client chooses, and tools: the oldest of more warnings is forgotten.
MOST_WARNED: Final = 1024


class AccessLog(RequestObserver):
    """The log of requests."""

    def __init__(self) -> None:
        self._warned: dict[tuple[str, str], None] = {}

    def notices(self, context: RequestContext, notices: Sequence[Notice]) -> None:
        shows_debug = LOGGER.isEnabledFor(logging.DEBUG)
        for notice in notices:
            if notice.rule in _ONCE and self._is_known(context.model[:SHOWN], notice.detail):
                notice = msgspec.structs.replace(notice, level="debug")
            if shows_debug or notice.level != "debug":
                log_notice(notice, context.id, context.paths)

    def _is_known(self, model: str, detail: str) -> bool:
        """Returns whether there was this warning for the model; remembers it."""
        if (model, detail) in self._warned:
            return True
        if len(self._warned) == MOST_WARNED:
            del self._warned[next(iter(self._warned))]
        self._warned[model, detail] = None
        return False

    def error(self, context: RequestContext, error: GatewayError) -> None:
        """Writes a WARNING for an error of a backend, or an ERROR where only the operator can help."""
        if not context.is_told(error):
            self._tell(context, error)

    def failed_try(self, context: RequestContext, tried: FailedTry) -> None:
        self._tell(context, tried.error)

    def _tell(self, context: RequestContext, error: GatewayError) -> None:
        if not isinstance(error, BackendError):
            return
        log_line(
            logging.ERROR if error.code in _OPERATORS else logging.WARNING,
            context.id,
            _BACKEND_ERROR,
            context.id,
            context.backend,
            shown(context.model[:SHOWN]),
            context.phase,
            error.code or NO_ERROR,
            context.backend_status or "-",
            context.attempt,
            context.ms,
            context.credential or "-",
            type(error.__cause__).__name__ if error.__cause__ else "-",
            f"nothing at {context.unknown_url}" if context.unknown_url else reason(error.__cause__),
            # A client error goes to the client, who can act on it, and it often quotes the request.
            error.words if error.status >= 500 else "",
        )

    def conclude(self, context: RequestContext, outcome: Outcome) -> None:
        log_line(logging.INFO, context.id, _ACCESS, *msgspec.structs.astuple(outcome))


def reason(cause: BaseException | None) -> str:
    """Returns why the system or TLS failed, without the addresses that an exception's own text may hold."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message
    if isinstance(cause, ssl.SSLError):
        return cause.reason or ""
    if isinstance(cause, OSError) and cause.errno:
        # A failed name look-up has a negative number and a text of its own.
        return os.strerror(cause.errno) if cause.errno > 0 else cause.strerror or ""
    return ""
