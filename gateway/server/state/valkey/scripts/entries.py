"""Holds the scripts that read, write, extend, delete and count the entries of a tenant."""

from typing import Final

from gateway.server.state.valkey.scripts.script import EPOCH, TIME, script

# A foreign value under a name of ours counts as none.
_ENTRY: Final = """
local function version(name)
  local head = redis.pcall('GETRANGE', name, 0, 20)
  return type(head) == 'string' and tonumber(string.match(head, '^(%d+):')) or 0
end
local function size(name)
  local length = redis.pcall('STRLEN', name)
  return type(length) == 'number' and length or 0
end
"""

# Needs `index`, `sizes` and `base` (`dg1:{T}:E:`).
_INDEX: Final = """
local function count(space, entries, bytes)
  redis.call('HINCRBY', sizes, space .. ':entries', entries)
  redis.call('HINCRBY', sizes, space .. ':bytes', bytes)
  redis.call('HINCRBY', sizes, 'bytes', bytes)
end
local function unlist(member)
  if redis.call('ZREM', index, member) == 1 then
    local space, bytes = string.match(member, '^(%l+):%x+:(%d+)$')
    count(space, -1, -bytes)
  end
end
local function delete(name)
  local bytes = size(name)
  redis.call('UNLINK', name)
  unlist(string.sub(name, #base + 1) .. ':' .. bytes)
end
local result = {ARGV[1], 'ok'}
local function report(reason, member)
  result[#result + 1] = reason .. ':' .. string.match(member, '^%l+')
end
local function purge(most)
  local members = redis.call('ZRANGEBYSCORE', index, '-inf', millis, 'LIMIT', 0, most)
  for _, member in ipairs(members) do
    unlist(member)
    report('expired', member)
  end
end
"""

GET: Final = script(
    "no-writes",
    EPOCH,
    """
local found = {ARGV[1], 'ok'}
for i = 2, #KEYS do
  local value = redis.pcall('GET', KEYS[i])
  found[i + 1] = type(value) == 'table' and '' or value
end
return found
""",
)

# KEYS: epoch, epochs, index, sizes, lease, then the names of the entries.
# ARGV: token, epoch, base, most bytes of the tenant (0: no limit), token of the lease ('': none), then for each entry
# its expected version ('': any, 0: absent), its time to live in milliseconds, and its sealed value.
PUT: Final = script(
    "",
    EPOCH,
    """
if ARGV[5] ~= '' and redis.call('GET', KEYS[5]) ~= ARGV[5] then return {ARGV[1], 'no'} end
local index, sizes, base, quota = KEYS[3], KEYS[4], ARGV[3], tonumber(ARGV[4])
""",
    TIME,
    _ENTRY,
    _INDEX,
    """
local versions, total = {}, 0
for i = 6, #KEYS do
  local at = 6 + 3 * (i - 6)
  versions[i] = version(KEYS[i])
  if ARGV[at] ~= '' and tonumber(ARGV[at]) ~= versions[i] then return {ARGV[1], 'no'} end
  total = total + #ARGV[at + 2]
end
if quota > 0 and total > quota then return {ARGV[1], 'full'} end
purge(64)
local fresh, longest = {}, 0
for i = 6, #KEYS do
  local at, name = 6 + 3 * (i - 6), KEYS[i]
  delete(name)
  local ttl = tonumber(ARGV[at + 1])
  local value = integer(math.max(micros, versions[i] + 1)) .. ':' .. ARGV[at + 2]
  local member = string.sub(name, #base + 1) .. ':' .. #value
  redis.call('SET', name, value, 'PX', ARGV[at + 1])
  redis.call('ZADD', index, integer(millis + ttl), member)
  count(string.match(member, '^%l+'), 1, #value)
  fresh[member] = true
  longest = math.max(longest, ttl)
end
while quota > 0 and tonumber(redis.call('HGET', sizes, 'bytes')) > quota do
  local victim
  for _, member in ipairs(redis.call('ZRANGE', index, 0, #KEYS)) do
    if not fresh[member] then victim = member break end
  end
  if not victim then break end
  redis.call('UNLINK', base .. string.match(victim, '^(.*):'))
  unlist(victim)
  report('full', victim)
end
redis.call('SADD', KEYS[2], string.sub(base, 5, -2))
for _, key in ipairs({index, sizes}) do
  if redis.call('PTTL', key) < longest then redis.call('PEXPIRE', key, integer(longest + 60000)) end
end
return result
""",
)

# KEYS: epoch, index, sizes, then the names of the entries. ARGV: token, epoch, base.
DELETE: Final = script(
    "allow-oom",
    EPOCH,
    "local index, sizes, base = KEYS[2], KEYS[3], ARGV[3]\n",
    TIME,
    _ENTRY,
    _INDEX,
    """
for i = 4, #KEYS do delete(KEYS[i]) end
return {ARGV[1], 'ok'}
""",
)

# KEYS: epoch, index, sizes, then the names of the entries. ARGV: token, epoch, base, time to live in milliseconds.
EXTEND: Final = script(
    "allow-oom",
    EPOCH,
    TIME,
    _ENTRY,
    """
for i = 4, #KEYS do
  local member = string.sub(KEYS[i], #ARGV[3] + 1) .. ':' .. size(KEYS[i])
  redis.call('PEXPIRE', KEYS[i], ARGV[4])
  redis.call('ZADD', KEYS[2], 'XX', integer(millis + ARGV[4]), member)
end
for i = 2, 3 do
  if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[i], integer(ARGV[4] + 60000)) end
end
return {ARGV[1], 'ok'}
""",
)

# KEYS: index, sizes. ARGV: token, base. Returns the fields of the hash of sizes.
STATS: Final = script(
    "allow-oom",
    "local index, sizes, base = KEYS[1], KEYS[2], ARGV[2]\n",
    TIME,
    _ENTRY,
    _INDEX,
    """
purge(1000)
local found = {ARGV[1], 'ok'}
for _, part in ipairs(redis.call('HGETALL', sizes)) do found[#found + 1] = part end
return found
""",
)
