"""A kind of demo backend -> its address in this process, where it is started when it is first asked for."""

from contextlib import AsyncExitStack
from types import TracebackType


class Demos:
    """`async with` it; all of them end with the block."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._urls: dict[str, str] = {}

    async def __aenter__(self) -> "Demos":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def url(self, kind: str) -> str:
        """The address of this kind."""
        if kind not in self._urls:
            from gateway.demo import serve_demo

            self._urls[kind] = (await self._stack.enter_async_context(serve_demo(kind))).base_url
        return self._urls[kind]
