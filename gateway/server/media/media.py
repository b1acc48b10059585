"""Puts text in the place of the pictures and PDFs that a model does not read.

Nothing of it fails a request: a part that cannot be read becomes a placeholder, and a notice says why. A picture is
asked about once; what was read stands in every later request, where the state of the client's key may be kept.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic
from typing import Final

import msgspec

from gateway.capabilities.read_parts import (
    Place,
    ReadPart,
    described,
    document_text,
    parts_to_read,
    with_texts,
    would_read,
)
from gateway.core.conversation import Conversation
from gateway.core.data_url import DataUrl
from gateway.core.notices import Level, Notice, NoticeRule
from gateway.server.media.pdf_process import READER, PdfProcesses
from gateway.server.media.read_text import ReadText, digest, keep, known_texts
from gateway.server.media.vision import KeyBudget, Vision
from gateway.server.state.model_calls import ModelCalls
from gateway.server.state.stores import RequestStore, Stores
from gateway.server.summaries.summaries import key_compress
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.backends import Backend, Backends
from gateway.server.upstream.completion import RoutedModel
from gateway.settings import ModelSettings, Settings

# The parts of each kind that are read for one request; of more, the newest are.
MOST: Final = 8
# A picture that could not be described is not asked about again so soon: each turn of a conversation sends it again.
PAUSE_S: Final = 60.0
MOST_PAUSES: Final = 1024
# Of the time of a request; the rest is for its answer.
SHARE: Final = 0.5
NOT_DECODED: Final = "its data: URL cannot be decoded"

# A part, found by its tenant and digest; None: nothing of it may be remembered.
_Key = tuple[str, bytes]


class _Reading(msgspec.Struct):
    """A part that is being read, and how many requests wait for it."""

    task: asyncio.Task[ReadText]
    waiting: int = 0


class Media:
    """The feature, in one worker."""

    def __init__(self, models: ModelCalls, metrics: Metrics, stores: Stores) -> None:
        self._stores = stores
        self._vision = Vision(models, metrics)
        self._pdfs = PdfProcesses(metrics)
        self._running: dict[_Key, _Reading] = {}
        self._pauses: OrderedDict[_Key, tuple[float, ReadText]] = OrderedDict()

    def use(self, settings: Settings, backends: Backends) -> None:
        """Applies other settings, from the next request on."""
        self._settings = settings
        self._backends = backends

    async def begin(
        self,
        context: RequestContext,
        route: ModelSettings,
        backend: Backend,
        conversation: Conversation,
        *,
        large: bool,
        tried: dict[DataUrl, ReadText] | None = None,
    ) -> "MediaRequest | None":
        """Returns what reads the parts of a request; None where it has none to read. `large`: the conversation is
        looked through in a thread. `tried` has what was read for an earlier try of the request, and gets what is read
        for this one. Raises InvalidRequest as `Stores.of` does."""
        policy, capabilities = route.policy, backend.adapter.capabilities
        if policy.images != "describe" and policy.documents is None:
            return None
        if large:
            parts = await asyncio.to_thread(parts_to_read, conversation, capabilities, policy, route.facts)
        else:
            parts = parts_to_read(conversation, capabilities, policy, route.facts)
        if not parts:
            return None
        name = self._settings.vision.model
        model = None if name is None else RoutedModel(name, *self._backends.route(name))
        store = self._stores.of(context)
        # Counts hold no contents: they are kept of every key.
        counts = self._stores.shared if store is None else store.store
        most = key_compress(self._settings, context.key).tokens_per_day or route.compress.tokens_per_day
        budget = KeyBudget(counts, context.key, most)
        deadline_s = backend.timeouts.total * SHARE
        return MediaRequest(self, conversation, parts, model, store, budget, deadline_s, tried)

    async def describe(self, picture: DataUrl, model: RoutedModel, budget: KeyBudget, deadline_s: float) -> ReadText:
        """Returns the description of a picture, or why there is none."""
        return await self._vision.describe(picture, model, budget, deadline_s)

    async def read_pdf(self, document: DataUrl) -> ReadText:
        """Returns the text of a PDF, or why there is none."""
        return await self._pdfs.read(document)

    def paused(self, key: _Key) -> ReadText | None:
        """Returns the failure of a part that was read in vain a moment ago."""
        until, read = self._pauses.get(key, (0.0, None))
        return read if monotonic() < until else None

    async def once(
        self, key: _Key, store: RequestStore, read: Callable[[], Awaitable[ReadText]], *, paid: bool
    ) -> ReadText:
        """Reads a part once for all requests that wait for it now, and keeps what was read. `paid`: the reading goes on
        when none waits any more; another would only keep the place of those that are waited for."""
        reading = self._running.get(key)
        if reading is None:
            reading = self._running[key] = _Reading(asyncio.create_task(self._kept(key, store, read)))
            reading.task.add_done_callback(lambda _: self._end(key, reading))
        reading.waiting += 1
        try:
            return await asyncio.shield(reading.task)
        finally:
            reading.waiting -= 1
            if not (paid or reading.waiting or reading.task.done()):
                self._end(key, reading)
                reading.task.cancel()

    def _end(self, key: _Key, reading: _Reading) -> None:
        """Lets no other request wait for a reading."""
        if self._running.get(key) is reading:
            del self._running[key]

    async def _kept(self, key: _Key, store: RequestStore, read: Callable[[], Awaitable[ReadText]]) -> ReadText:
        found = await read()
        if found.problem:
            self._pauses[key] = (monotonic() + PAUSE_S, found)
            self._pauses.move_to_end(key)
            if len(self._pauses) > MOST_PAUSES:
                self._pauses.popitem(last=False)
            return found
        return await keep(store, key[1], found)


class MediaRequest:
    """The parts of one request. `store` is None where nothing may be remembered of it; reading them may take
    `deadline_s` seconds."""

    def __init__(
        self,
        media: Media,
        conversation: Conversation,
        parts: Sequence[ReadPart],
        model: RoutedModel | None,
        store: RequestStore | None,
        budget: KeyBudget,
        deadline_s: float,
        tried: dict[DataUrl, ReadText] | None,
    ) -> None:
        self._tried = {} if tried is None else tried
        self._media = media
        self._conversation = conversation
        self._parts = parts
        self._model = model
        self._store = store
        self._budget = budget
        self._deadline_s = deadline_s

    async def read(self) -> tuple[Conversation, list[Notice]]:
        """Returns the conversation with texts in the place of its parts, and the notices of them."""
        keys, known = await self._known()
        fresh = self._fresh(keys, known)
        new = {data: part for data, part in fresh.items() if data not in self._tried}
        texts_read = await asyncio.gather(*(self._read(part, keys.get(part.place)) for part in new.values()))
        self._tried.update(zip(new, texts_read, strict=True))
        found = {data: self._tried[data] for data in fresh}
        read: dict[Place, tuple[ReadText, bool]] = {}
        for part in self._parts:
            data = part.data
            if data is None:
                read[part.place] = ReadText(problem=NOT_DECODED), False
            elif (cached := known.get(part.place)) is not None:
                read[part.place] = cached, True
            elif (text := found.get(data)) is not None:
                read[part.place] = text, False
            else:
                read[part.place] = ReadText(problem=f"more than {MOST} new ones in one request"), False
        texts = {part.place: _text(part, read[part.place][0]) for part in self._parts}
        notices = [_notice(part, *read[part.place], self._model, kept=part.place in keys) for part in self._parts]
        if self._store is not None:
            notices += self._store.take_notices()
        return with_texts(self._conversation, texts), notices

    async def known(self) -> tuple[Conversation, list[Notice]]:
        """Returns the conversation with the texts that are known, and a placeholder for each part that a request would
        have read; the notices say so. Nothing is read."""
        _, known = await self._known()
        name = None if self._model is None else self._model.name
        texts = {
            part.place: _text(part, known[part.place]) if part.place in known else f"[{part.kind}]"
            for part in self._parts
        }
        notices = [
            _notice(part, known[part.place], True, self._model) if part.place in known else would_read(part, name)
            for part in self._parts
        ]
        return with_texts(self._conversation, texts), notices

    async def _known(self) -> tuple[Mapping[Place, _Key], Mapping[Place, ReadText]]:
        """Returns the keys of the parts, and what is known of them; nothing where nothing may be remembered."""
        store = self._store
        epoch = None if store is None else await store.epoch()
        if store is None or epoch is None:
            return {}, {}
        keys = await asyncio.to_thread(self._keys, store.tenant, epoch)
        stored = await known_texts(store, [*{digest: None for _, digest in keys.values()}])
        known = {
            place: read
            for place, key in keys.items()
            if (read := stored.get(key[1]) or self._media.paused(key)) is not None
        }
        return keys, known

    def _keys(self, tenant: str, epoch: bytes) -> dict[Place, _Key]:
        reader = "" if self._model is None else f"{self._model.backend.name} {self._model.sent_name}"
        return {
            part.place: (tenant, digest(part.data, reader if part.kind == "image" else READER, epoch))
            for part in self._parts
            if part.data is not None
        }

    def _fresh(self, keys: Mapping[Place, _Key], known: Mapping[Place, ReadText]) -> dict[DataUrl, ReadPart]:
        """Returns the parts to read now, each bytes once: the newest ones of each kind."""
        fresh: dict[DataUrl, ReadPart] = {}
        counts = {"image": 0, "document": 0}
        for part in reversed(self._parts):
            if part.data is None or part.place in known or part.data in fresh or counts[part.kind] == MOST:
                continue
            counts[part.kind] += 1
            fresh[part.data] = part
        return fresh

    async def _read(self, part: ReadPart, key: _Key | None) -> ReadText:
        async def read() -> ReadText:
            assert part.data is not None  # `_fresh`
            if part.kind == "document":
                return await self._media.read_pdf(part.data)
            if self._model is None:
                return ReadText(problem="vision.model is not set")
            return await self._media.describe(part.data, self._model, self._budget, self._deadline_s)

        try:
            async with asyncio.timeout(self._deadline_s):
                if key is None or self._store is None:
                    return await read()
                return await self._media.once(key, self._store, read, paid=part.kind == "image")
        except TimeoutError:
            return ReadText(problem=f"it was not read within {self._deadline_s:g} s of the request")


def _text(part: ReadPart, read: ReadText) -> str:
    if part.kind == "image":
        return "[image]" if read.problem else described(read.text)
    if read.problem:
        return f"[document: not read, {read.problem}]"
    return document_text(read.text, read.pages, part.name)


def _notice(part: ReadPart, read: ReadText, cached: bool, model: RoutedModel | None, *, kept: bool = True) -> Notice:
    if read.problem:
        rule: NoticeRule = "IMAGE_NOT_DESCRIBED" if part.kind == "image" else "DOCUMENT_NOT_READ"
        detail = f"{_NAMES[part.kind]} was replaced by a placeholder: {read.problem}"
        return Notice("encode", "changed", rule, detail, index=part.index, level="warning")
    level: Level = "debug" if cached else "info"
    again = ", as before" if cached else ""
    if part.kind == "image":
        name = "" if model is None else model.name
        cut = ", without its end, which is too long" if read.is_cut else ""
        anew = "" if kept else "; it is not kept, and a later request has the image described anew"
        given = f"the description that {name!r} gives, {read.tokens} tokens{cut}{again}{anew}"
        detail = f"an image was replaced by {given}"
        return Notice("encode", "changed", "IMAGE_DESCRIBED", detail, index=part.index, level=level)
    lost = f" ({read.lost} could not be read)" if read.lost else ""
    detail = f"a PDF was replaced by its text, {read.pages} pages{lost} with {len(read.text)} characters{again}"
    return Notice("encode", "changed", "DOCUMENT_READ", detail, index=part.index, level=level)


_NAMES: Final = {"image": "an image", "document": "a PDF"}
