"""Holds the state that all routes share while the gateway runs, built from settings."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from gateway.core.conversation import Conversation
from gateway.core.errors import ServerShutdown
from gateway.core.secrets import without_secrets
from gateway.dialects.route_table import RouteTable
from gateway.inspector.texts import error_codes
from gateway.registry import load_dialects
from gateway.server.access.admission import Admission
from gateway.server.access.api_keys import ApiKeys, check_exposure, check_names, load_keys
from gateway.server.access.request_checks import HostFilter, is_loopback
from gateway.server.inspect.access import InspectorAccess, inspector_off
from gateway.server.log.logger import LEVELS, LOGGER
from gateway.server.media.check import media_faults, uses_media
from gateway.server.state.answer_store import AnswerStores
from gateway.server.state.guarded_store import GuardedStore, patience_s
from gateway.server.state.memory import MemoryStore
from gateway.server.state.model_calls import ModelCalls
from gateway.server.state.open_store import open_limits
from gateway.server.state.prefixes import Prefixes
from gateway.server.state.request_state import state_features
from gateway.server.state.shared_rate_limits import SharedRateLimits
from gateway.server.state.state_folder import StateKeys
from gateway.server.state.store import EVERYONE, StoreUnavailable
from gateway.server.state.stores import Stores
from gateway.server.telemetry.access_log import AccessLog
from gateway.server.telemetry.event_bus import EventBus
from gateway.server.telemetry.metric_types import Snapshot
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import Observers, RequestContext, RequestObserver
from gateway.server.telemetry.request_metrics import RequestMetrics, declare_errors
from gateway.server.telemetry.tracing import open_tracing
from gateway.server.telemetry.worker_metrics import WorkerMetrics
from gateway.server.upstream.backends import Backends
from gateway.server.upstream.completion import RoutedModel
from gateway.server.upstream.deadlines import DeadlineScheduler
from gateway.server.upstream.demo_backends import DemoBackends
from gateway.server.upstream.fd_limits import last_for_backends
from gateway.server.upstream.model_list import ModelLists
from gateway.server.upstream.schema_cache import update_caches
from gateway.server.upstream.token_counter import TokenCounter
from gateway.server.upstream.transport import Transport
from gateway.settings import BudgetSettings, Price, Settings
from gateway.settings.reload_policy import keep_restart_only
from gateway.settings.source import SettingsSource

if TYPE_CHECKING:
    from gateway.server.api.passed.routes import PassedRoutes
    from gateway.server.inspect.inspector import Inspector
    from gateway.server.media.media import Media
    from gateway.server.state.connection_answers import ConnectionMemories
    from gateway.server.state.spending import Spending
    from gateway.server.summaries.compaction import CompactionRequest, Compactions
    from gateway.server.summaries.opened_history import Opened
    from gateway.server.summaries.summaries import Summaries
    from gateway.server.upstream.circuit import Circuits

# The digests of prompts take this share of the memory that is allowed for the contents of requests.
_PROMPTS: Final = 1 / 16


class Drained(Protocol):
    """What ends when the gateway stops, once it has finished what is running."""

    def drain(self) -> None:
        """Begins nothing more."""
        ...


class GatewayState:
    """Shared state of the routes, built before the gateway binds, so that a wrong setting is reported at once. Raises
    SettingsError.

    A request takes what it needs from here when it begins, so that `change` affects only later requests. `state_keys`
    are those that a supervisor has opened for all of its workers."""

    def __init__(
        self, settings: Settings, environ: Mapping[str, str] = os.environ, state_keys: StateKeys | None = None
    ) -> None:
        self._environ = environ
        self._exposed = True
        self.dialects = load_dialects()
        self.demo_backends = DemoBackends()
        self.transport = Transport(int(settings.limits.max_response_mb * 2**20), last_for_backends())
        self.scheduler = DeadlineScheduler()
        self.event_bus = EventBus(self.without_secrets)
        self.model_lists = ModelLists()
        self.token_counter = TokenCounter(self.transport)
        self.metrics = Metrics()
        self.metrics.running_requests.set_function(lambda: self.scheduler.size)
        self.metrics.workers.inc()
        self.admission = Admission(time.monotonic)
        self.stores = Stores(settings, self.metrics, environ)
        self.spending: Spending | None = None
        self.models = ModelCalls(self.transport)
        self._directory: Path | None = None
        self.state_keys = state_keys or StateKeys(settings.state, environ)
        self.tracing = open_tracing(settings.tracing, environ)
        observers: list[RequestObserver] = [RequestMetrics(self.metrics), AccessLog(), self.event_bus]
        if self.tracing is not None:
            observers.append(self.tracing)
        self.access = InspectorAccess(settings, environ)
        self.inspector = self._inspector(settings, observers)
        self.observers = Observers(*observers)
        self.worker_metrics: WorkerMetrics | None = None
        self.summaries: Summaries | None = None
        self.media: Media | None = None
        self.created = int(time.time())
        self.ready = False
        self.draining = False
        self.websockets: set[Drained] = set()
        self.metrics.open_websockets.set_function(lambda: len(self.websockets))
        # Where the settings are read from, and the keys whose values there wait for a restart.
        self.source: SettingsSource | None = None
        self.waiting: tuple[str, ...] = ()
        self._learning: asyncio.Task[None] | None = None
        backends = Backends(settings)
        _check_media(settings, backends)
        _check_passed(settings, self.dialects)
        self._use(settings, backends, self._keys(settings))

    @cached_property
    def compactions(self) -> "Compactions":
        """What makes and opens the compactions that clients keep."""
        # Loaded with the first one.
        from gateway.server.summaries.compaction import Compactions
        from gateway.server.summaries.seal import SummarySeal

        return Compactions(SummarySeal(self.state_keys), self.models, self.metrics)

    @cached_property
    def circuits(self) -> "Circuits":
        """The circuits of the backends whose requests may go on with another model."""
        # Loaded with the first one.
        from gateway.server.upstream.circuit import Circuits

        return Circuits(time.monotonic, self.metrics.open_circuits.replace)

    @cached_property
    def connection_memories(self) -> "ConnectionMemories":
        """What the WebSockets of clients remember."""
        # Loaded with the first one.
        from gateway.server.state.connection_answers import ConnectionMemories

        return ConnectionMemories()

    async def opened(self, key: str, conversation: Conversation) -> "Opened":
        """Returns the conversation of a client with the compactions in it opened. Raises InvalidRequest for one that
        cannot be."""
        await self._learn_epochs(key)
        return await asyncio.to_thread(self.compactions.opened, key, conversation)

    def compaction_request(self, context: RequestContext, name: str, opened: "Opened") -> "CompactionRequest":
        """Returns the compaction that a client asks for of this history, `name` being its model."""
        from gateway.server.summaries.compaction import CompactionRequest
        from gateway.server.summaries.summaries import key_compress

        model = RoutedModel(name, *self.backends.route(name))
        compress = model.route.compress
        writer = model if compress.model is None else RoutedModel(compress.model, *self.backends.route(compress.model))
        kept = self.stores.of(context)
        # Counts hold no contents: they are kept of every key, and in the memory of one worker each worker would have a
        # limit of its own.
        store = self.store if kept is None else kept.store
        most = key_compress(self.settings, context.key).tokens_per_day or compress.tokens_per_day
        # The time of the request: what is forgotten while the summary is written is not opened either.
        began = time.time() - (time.monotonic() - context.started)
        return CompactionRequest(opened, context.key, context.id, model, writer, store, most, began)

    async def _learn_epochs(self, *keys: str) -> None:
        """Learns from a store that others share when API keys, or all of them, were forgotten. While it is away, what
        was learnt before holds."""
        if self.store.name == MemoryStore.name:
            return
        tenants = (*keys, EVERYONE)
        with contextlib.suppress(StoreUnavailable):
            for tenant, when in zip(tenants, await self.store.forgotten(tenants), strict=True):
                self.state_keys.folder.learn(tenant, when)

    @property
    def store(self) -> GuardedStore:
        """The store that the settings name. What belongs to a request uses the store of `stores.of`."""
        return self.stores.shared

    def _inspector(self, settings: Settings, observers: list[RequestObserver]) -> "Inspector | None":
        """Returns the inspector, or None where nobody may look, and nothing is saved or examined. Adds what observes
        requests."""
        wanted = settings.inspector
        watches = wanted.record is not None or wanted.caches == "always"
        is_open = self.access.is_open(settings, bool(self._keys(settings)))
        if not watches and not is_open:
            return None
        from gateway.server.inspect.inspector import Inspector

        inspector = Inspector(wanted, self.access, lambda: self.settings, lambda: self.backends.secrets, self.redact)
        if wanted.record is not None:
            inspector.save_in(wanted.record)
        inspector.recent.price_of = self._price
        if is_open:
            inspector.recent.may_keep = self.stores.remembers
        if wanted.caches != "never":
            from gateway.server.inspect.cache_doctor import CacheDoctor

            most_bytes = int(wanted.keep_mb * 2**20 * _PROMPTS)
            inspector.recent.caches = CacheDoctor(most_bytes, self.metrics, self.stores.remembers)
        observers.append(inspector.recent)
        return inspector

    def _price(self, model: str) -> Price | None:
        route = self.settings.route(model)
        return None if route is None else route.price

    def redact(self, text: str) -> str:
        """Returns the text without any secret that is sent to backends. (Of clients' keys only digests are known.)"""
        text = self.backends.redact(text)
        return text if self.tracing is None else self.tracing.redact(text)

    def without_secrets(self, text: str) -> str:
        """Returns the text without these secrets, and without what looks like one: for events and spans, which others
        than the client read."""
        return without_secrets(self.redact(text))

    def check_inspector(self, path: str, head: Mapping[bytes, bytes]) -> None:
        """Raises InvalidRequest for a request that may not look at others."""
        if self.inspector is None:
            raise inspector_off(self.settings)
        self.access.check(path, head, self.settings, bool(self.keys))

    def check_exposure(self, insecure: bool) -> None:
        """Raises SettingsError when clients outside this machine could reach the gateway without a key."""
        self._exposed = insecure
        check_exposure(self.settings.server, self.keys, insecure)

    async def change(self, settings: Settings) -> tuple[str, ...]:
        """Applies other settings from the next request on; running requests finish with the old ones. Returns the names
        of the settings that would need a restart and therefore stay. Raises SettingsError, and then changes nothing."""
        before = self.settings
        settings, kept = keep_restart_only(before, settings)
        keys = self._keys(settings)
        check_exposure(settings.server, keys, self._exposed)
        changed = {name: entry for name, entry in settings.backends.items() if entry != before.backends.get(name)}
        await update_caches(changed)
        # In a thread: a changed entry may need a compiler of protobuf schemas.
        backends = await asyncio.to_thread(Backends, settings, self.backends)
        _check_media(settings, backends)
        _check_passed(settings, self.dialects)
        await backends.start(self.demo_backends)
        self._use(settings, backends, keys)
        self.waiting = kept
        if self.tracing is not None and settings.tracing is not None:
            self.tracing.change(settings.tracing)
        if settings.log.level != before.log.level:
            LOGGER.setLevel(LEVELS[settings.log.level])
        return kept

    def _keys(self, settings: Settings) -> ApiKeys:
        keys = load_keys(settings.server, self._environ)
        check_names(settings, keys)
        return keys

    def _use(self, settings: Settings, backends: Backends, keys: ApiKeys) -> None:
        """Replaces the settings in use. No statement here can fail, and no request can begin in between."""
        server = settings.server
        self.settings = settings
        self.stores.change(settings)
        self.backends = backends
        if "circuits" in vars(self):
            self.circuits.keep(settings.backends)
        declare_errors(self.metrics, error_codes(), settings.backends)
        self.keys = keys
        self.hosts = HostFilter(server.allowed_hosts if is_loopback(server.host) else None)
        self.admission.change(server.max_requests, settings.keys)
        self.spending = self._spending(settings)
        self.models.budgets = None if self.spending is None else self.spending.budgets
        self.max_body = int(server.max_body_mb * 2**20)
        self.answers = AnswerStores(settings, self.stores)
        most_bytes = int(settings.state.prefix_mb * 2**20)
        self.prefixes = Prefixes(most_bytes, self.metrics, self.stores.remembers, self.state_keys.epochs)
        self.media = self._media(settings, backends)
        self.passed = _passed_routes(settings)
        self.features = state_features(settings, self.stores, self.metrics, self._summaries(settings, backends))

    def _spending(self, settings: Settings) -> "Spending | None":
        """Returns the feature that admits requests within the budgets of keys; None where no key has had one yet."""
        if self.spending is None and not any(entry.budget != BudgetSettings() for entry in settings.keys.values()):
            return None
        # Loaded with the first key that has one.
        from gateway.server.state.budgets import Budgets
        from gateway.server.state.open_store import open_budgets
        from gateway.server.state.spending import Spending

        spending = self.spending or Spending(
            Budgets(
                lambda: open_budgets(self.settings.state, self._directory, self._environ),
                lambda: patience_s(self.settings.state),
                self.metrics,
            )
        )
        spending.budgets.change(settings.keys)
        return spending

    def _summaries(self, settings: Settings, backends: Backends) -> "Summaries | None":
        """Returns the feature that summarises histories; None where that is off for all models."""
        if not any(entry.compress.enabled for entry in settings.models.values()):
            return None
        if self.summaries is None:
            # Loaded with the first model whose histories are summarised.
            from gateway.server.summaries.summaries import open_summaries

            self.summaries = open_summaries(self.models, self.metrics, self.event_bus)
        self.summaries.use(settings, backends)
        return self.summaries

    def _media(self, settings: Settings, backends: Backends) -> "Media | None":
        """Returns the feature that reads pictures and PDFs; None where no model has them read."""
        if not uses_media(settings):
            return None
        # Loaded with the first model that has them read.
        from gateway.server.media.media import Media

        media = self.media or Media(self.models, self.metrics, self.stores)
        media.use(settings, backends)
        return media

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Opens the transport and the demo backends, and starts the trace exporter; closes the stores at the end."""
        async with aclosing(self.stores), self.transport, self.demo_backends, self._traced(), self._inspected():
            await self.backends.start(self.demo_backends)
            # Already open where this process serves by itself.
            await asyncio.to_thread(self.state_keys.open)
            self.ready = True
            try:
                yield
            finally:
                self.ready = False
                if self._learning is not None:
                    self._learning.cancel()
                if self.admission.shared is not None:
                    await self.admission.shared.aclose()
                if self.spending is not None:
                    await self.spending.budgets.aclose()

    @asynccontextmanager
    async def _traced(self) -> AsyncIterator[None]:
        if self.tracing is None:
            yield
            return
        exporter = self.tracing.start(self.without_secrets)
        self.metrics.spans.set_function(lambda: exporter.exported)
        self.metrics.span_drops.set_function(lambda: exporter.dropped)
        try:
            yield
        finally:
            await asyncio.to_thread(self.tracing.stop)

    @asynccontextmanager
    async def _inspected(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if self.inspector is not None:
                await stack.enter_async_context(self.inspector.serving())
                if (folder := self.inspector.folder) is not None:
                    known = folder.running(lambda: self.settings, lambda: [*self.backends.secrets])
                    await stack.enter_async_context(known)
            yield

    def snapshot(self) -> Snapshot:
        """Returns the current metrics; with several workers, those of all of them."""
        own = self.metrics.snapshot()
        return own if self.worker_metrics is None else self.worker_metrics.total(own)

    def share_limits(self, directory: Path | None = None) -> None:
        """Counts the usage of keys together with other processes, where the settings name a store for it, or in a file
        of the directory that the workers share. Raises SettingsError."""
        self._directory = directory
        store = open_limits(self.settings.state, directory, self._environ)
        if store is not None:
            self.admission.shared = SharedRateLimits(
                store, self.admission.limits, lambda: self.settings.state.deadline_ms / 1000, self.metrics
            )

    def tick(self) -> None:
        """Does the work that is due about once a second."""
        self.admission.tick()
        self.stores.tick()
        if self.spending is not None:
            self.spending.budgets.tick(time.monotonic())
        self._check_prefixes()
        self.publish_metrics()

    def _check_prefixes(self) -> None:
        """Lets go of the beginnings of conversations whose key was forgotten: on this machine, or in the store that
        several share."""
        keys = self.prefixes.keys
        if not keys:
            return
        self.prefixes.check_epochs()
        if self.store.name != MemoryStore.name and (self._learning is None or self._learning.done()):
            self._learning = asyncio.create_task(self._learn_epochs(*keys))

    def publish_metrics(self) -> None:
        """Publishes this worker's metrics to the other workers."""
        if self.worker_metrics is not None:
            self.worker_metrics.publish(self.metrics.snapshot())

    def drain(self) -> None:
        """Stops accepting requests; ends the requests that are still running after `graceful_shutdown_timeout_s`."""
        if not self.draining:
            self.draining = True
            self.ready = False
            self.event_bus.close()
            for websocket in tuple(self.websockets):
                websocket.drain()
            if self.summaries is not None:
                self.summaries.drain()
            if self.inspector is not None:
                self.inspector.recent.watchers.close()
            asyncio.get_running_loop().call_later(self.settings.server.graceful_shutdown_timeout_s, self.stop)

    def stop(self) -> None:
        """Ends all running requests now; every client gets an error."""
        self.scheduler.interrupt_all(shutdown)


def _check_media(settings: Settings, backends: Backends) -> None:
    if uses_media(settings) and (error := next(media_faults(settings, backends.adapters), None)) is not None:
        raise error


def _check_passed(settings: Settings, dialects: RouteTable) -> None:
    """Raises SettingsError for a passed route that the gateway serves itself."""
    if any(entry.routes for entry in settings.backends.values()):
        from gateway.server.api.passed.routes import route_faults

        for error in route_faults(settings.backends, dialects):
            raise error


def _passed_routes(settings: Settings) -> "PassedRoutes | None":
    """Returns the routes that are passed on; None: there are none."""
    if not any(entry.routes for entry in settings.backends.values()):
        return None
    # Loaded with the first one that the settings list.
    from gateway.server.api.passed.routes import PassedRoutes

    return PassedRoutes(settings.backends)


def shutdown() -> ServerShutdown:
    """Returns the error for a request that can no longer be completed."""
    return ServerShutdown("The gateway is shutting down.", headers={"retry-after": "1", "connection": "close"})
