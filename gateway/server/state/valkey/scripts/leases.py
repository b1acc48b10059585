"""Holds the scripts that acquire, renew and release a lease."""

from typing import Final

from gateway.server.state.valkey.scripts.script import EPOCH, TIME, script

# KEYS: epoch, lease. ARGV: token, epoch, time to live in milliseconds.
ACQUIRE: Final = script(
    "allow-oom",
    EPOCH,
    TIME,
    """
local token = integer(micros)
if not redis.call('SET', KEYS[2], token, 'NX', 'PX', ARGV[3]) then return {ARGV[1], 'no'} end
return {ARGV[1], 'ok', token}
""",
)

# KEYS: epoch, lease. ARGV: token, epoch, token of the lease, time to live in milliseconds (0: give it up).
RENEW: Final = script(
    "allow-oom",
    EPOCH,
    """
if redis.call('GET', KEYS[2]) ~= ARGV[3] then return {ARGV[1], 'no'} end
if ARGV[4] == '0' then redis.call('DEL', KEYS[2]) else redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
return {ARGV[1], 'ok'}
""",
)
