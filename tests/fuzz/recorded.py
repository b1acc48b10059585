"""The golden wires -> hypothesis strategies for wires like them, damaged: random bytes alone rarely get deep."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from hypothesis import strategies as st

from gateway.testing.golden import Golden, read_all
from gateway.testing.strategies import damaged
from tests.golden_wires import READERS

EVERY: Final = tuple(read_all(Path(__file__).parent.parent / "golden", READERS))


def _wires() -> Mapping[str, Sequence[bytes]]:
    wires = defaultdict(list)
    for golden in EVERY:
        wires[golden.scenario.adapter].append(golden.wire)
    return wires


PRESETS: Final = _wires()


@st.composite
def flipped(draw: st.DrawFn, wire: bytes) -> bytes:
    """The wire with a few bits turned round."""
    made = bytearray(wire)
    for place in draw(st.lists(st.integers(0, max(0, len(made) * 8 - 1)), max_size=4)):
        made[place // 8 : place // 8 + 1] = bytes([made[place // 8] ^ 1 << place % 8]) if made else b""
    return bytes(made)


@st.composite
def spliced(draw: st.DrawFn, wires: Sequence[bytes]) -> bytes:
    """A wire of whole events of these wires: some twice, some missing, some of another answer."""
    frames = [frame + b"\n\n" for wire in wires for frame in wire.split(b"\n\n") if frame]
    first = [frame + b"\n\n" for frame in draw(st.sampled_from(wires)).split(b"\n\n") if frame]
    for _ in range(draw(st.integers(0, 3))):
        start, end = sorted((draw(st.integers(0, len(first))), draw(st.integers(0, len(first)))))
        first[start:end] = draw(st.lists(st.sampled_from(frames), max_size=3))
    return b"".join(first)


def wires(adapter: str) -> st.SearchStrategy[bytes]:
    """What a backend of this kind might send on a bad day."""
    made = spliced(PRESETS[adapter])
    return made | made.flatmap(flipped) | made.flatmap(damaged)


@st.composite
def answers(draw: st.DrawFn) -> Golden:
    """A golden scenario with a damaged answer."""
    golden = draw(st.sampled_from(EVERY))
    wire = draw(wires(golden.scenario.adapter))
    return msgspec.structs.replace(golden, wire=wire)


def any_wires() -> st.SearchStrategy[bytes]:
    """The same of any backend."""
    return st.sampled_from(sorted(PRESETS)).flatmap(wires)


def asked() -> st.SearchStrategy[bytes]:
    """The golden requests, damaged."""
    sound = st.sampled_from([golden.request for golden in EVERY])
    return sound.flatmap(flipped) | sound.flatmap(damaged)
