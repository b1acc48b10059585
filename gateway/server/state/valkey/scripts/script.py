"""Makes scripts, and holds the Lua that those of several files begin with.

Each script takes the token of its call as first argument and returns it first, so that no reply is ever taken for
another call's. Those that read or write entries and leases take the key of the tenant's epoch record and the first
bytes of the record that the caller knows: when these differ, nothing is done, and the present record is returned
(`EPOCH`).
"""

import hashlib
from typing import Final

import msgspec


class Script(msgspec.Struct, frozen=True):
    """`sha` is the name by which a server that has seen the text runs it."""

    text: str
    sha: str


def script(flags: str, *parts: str) -> Script:
    """Joins the parts of a script, below its flags (`no-writes`, `allow-oom`; empty: none)."""
    text = f"#!lua flags={flags}\n" + "".join(parts)
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


EPOCH: Final = """
local record = redis.call('GET', KEYS[1])
if not record or string.sub(record, 1, 8) ~= ARGV[2] then return {ARGV[1], 'epoch', record} end
"""

TIME: Final = """
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local millis = math.floor(micros / 1000)
local function integer(number) return string.format('%.0f', number) end
"""
