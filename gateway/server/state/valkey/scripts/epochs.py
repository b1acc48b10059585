"""Holds the scripts that begin and end the epochs of tenants, list them, and delete what ended ones have left."""

from typing import Final

from gateway.server.state.valkey.scripts.script import script

# KEYS: epoch. ARGV: token, the record for a tenant that has none. Returns the present record.
BEGIN: Final = script(
    "allow-oom",
    """
local record = redis.call('GET', KEYS[1])
if not record or #record ~= #ARGV[2] then
  record = ARGV[2]
  redis.call('SET', KEYS[1], record)
end
return {ARGV[1], 'ok', record}
""",
)

# KEYS: epoch. ARGV: token, the next record. Returns the previous record.
FORGET: Final = script(
    "allow-oom",
    """
local record = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[2])
return {ARGV[1], 'ok', record}
""",
)

# KEYS: epochs. ARGV: token. Returns its members.
LABELS: Final = script(
    "no-writes",
    """
local found = {ARGV[1], 'ok'}
for _, label in ipairs(redis.call('SMEMBERS', KEYS[1])) do found[#found + 1] = label end
return found
""",
)

# KEYS: epochs, index, sizes. ARGV: token, base. Deletes some entries of an epoch, and returns how many are left.
SWEEP: Final = script(
    "allow-oom",
    """
for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, 499)) do
  redis.call('UNLINK', ARGV[2] .. string.match(member, '^(.*):'))
  redis.call('ZREM', KEYS[2], member)
end
local left = redis.call('ZCARD', KEYS[2])
if left == 0 then
  redis.call('DEL', KEYS[3])
  redis.call('SREM', KEYS[1], string.sub(ARGV[2], 5, -2))
end
return {ARGV[1], 'ok', left}
""",
)
