"""Holds the Lua scripts by which a gateway uses Valkey or Redis: each runs whole or not at all.

They need Redis 7.0 or Valkey. The comment above each script names its `KEYS` and `ARGV`.

Names of keys (`{T}` stands for the tenant, E for the epoch):

    dg1:{T}:epoch           the record of the present epoch, 32 bytes
    dg1:{T}:E:SPACE:K       an entry: `VERSION:` and the sealed value
    dg1:{T}:E:lease:K       the token of a held lease
    dg1:{T}:E:index         sorted set of `SPACE:K:SIZE` by the time of expiry, in milliseconds
    dg1:{T}:E:sizes         hash: bytes as a whole, bytes and entries by space
    dg1:{T}:rate            when the next request of a key is due at an even pace, in microseconds
    dg1:{T}:running         hash of running requests: `COUNT:DEADLINE` by process, in microseconds
    dg1:{T}:counted:P       how many requests of the process P the rate contains, as P counts them
    dg1:{T}:budget:B:START  hash of what is reserved of a budget in a window, by process:
                            `NUMBER:RESERVED:SPENT:MICROSECONDS:SHORT`, with the number and the time of its last call
    dg1:epochs              set of `{T}:E` that have an index

Versions and tokens of leases are the server's time in microseconds, or one more than the previous: they grow even when
the server has lost what it kept.

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
# An entry that the index has lost in the millisecond of its expiry may still be there; it would count nowhere.
EXTEND: Final = script(
    "allow-oom",
    EPOCH,
    TIME,
    _ENTRY,
    """
for i = 4, #KEYS do
  local member = string.sub(KEYS[i], #ARGV[3] + 1) .. ':' .. size(KEYS[i])
  if redis.call('ZSCORE', KEYS[2], member) then
    redis.call('PEXPIRE', KEYS[i], ARGV[4])
    redis.call('ZADD', KEYS[2], 'XX', integer(millis + ARGV[4]), member)
  end
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

# KEYS: epochs of several tenants. ARGV: token. Returns the record of each; empty: there is none.
RECORDS: Final = script(
    "no-writes",
    """
local found = {ARGV[1], 'ok'}
for _, name in ipairs(KEYS) do found[#found + 1] = redis.call('GET', name) or '' end
return found
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

# KEYS: rate, running, counted. ARGV: token, requests a minute (0: no limit), concurrent requests (0: no limit),
# process, running requests of the process, how long it is believed to be alive in microseconds, wanted requests; of the
# requests that the process has admitted, how many were confirmed, how many it has admitted alone since, how many of
# these count, and in how many microseconds the next one is due by its own count. The rules are those of
# `rate_limit.charge` and `rate_limit.grant`. Returns how many of the wanted requests are admitted, the limit that the
# others exceed, and in how many microseconds the next one is due at an even pace; `late` for a call that was given up,
# when another one of the process has counted what it wanted.
ADMIT: Final = script(
    "allow-oom",
    TIME,
    """
local per_minute, most, running = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5])
local confirmed, total = tonumber(ARGV[8]), ARGV[8] + ARGV[9]
local counted = confirmed
if per_minute > 0 then
  local found = redis.pcall('GET', KEYS[3])
  counted = math.max(confirmed, type(found) == 'string' and tonumber(found) or 0)
  if counted > total then return {ARGV[1], 'late'} end
end
if most > 0 then
  local all = redis.call('HGETALL', KEYS[2])
  for i = 1, #all, 2 do
    local number, deadline = string.match(all[i + 1], '^(%d+):(%d+)$')
    if all[i] ~= ARGV[4] then
      if deadline and tonumber(deadline) > micros then running = running + number
      else redis.call('HDEL', KEYS[2], all[i]) end
    end
  end
end
local due, gap = 0, 0
if per_minute > 0 then
  gap = 60000000 / per_minute
  local found = redis.pcall('GET', KEYS[1])
  due = type(found) == 'string' and tonumber(found) or 0
  if due > micros + 61000000 then due = 0 end
  local uncounted = math.min(total - counted, tonumber(ARGV[10]))
  if uncounted > 0 then
    due = math.min(math.max(due + uncounted * gap, micros + ARGV[11]), micros + 60000000)
  end
end
local admitted, refused = 0, ''
while admitted < tonumber(ARGV[7]) do
  if most > 0 and running + admitted >= most then refused = 'concurrent_streams' break end
  if per_minute > 0 then
    if due - (60000000 - gap) - micros > 0 then refused = 'requests_per_minute' break end
    due = math.max(due, micros) + gap
  end
  admitted = admitted + 1
end
if per_minute > 0 and total + admitted > confirmed then
  redis.call('SET', KEYS[1], string.format('%.3f', due), 'PX', 61000)
  redis.call('SET', KEYS[3], integer(total + admitted), 'PX', 61000)
end
if admitted > 0 and most > 0 then
  redis.call('HSET', KEYS[2], ARGV[4], integer(ARGV[5] + admitted) .. ':' .. integer(micros + ARGV[6]))
  redis.call('PEXPIRE', KEYS[2], integer(ARGV[6] / 1000))
end
return {ARGV[1], 'ok', admitted, refused, math.ceil(due - micros)}
""",
)

# KEYS: running. ARGV: token, process, its running requests, how long it is believed to be alive in microseconds.
COUNT: Final = script(
    "allow-oom",
    TIME,
    """
if ARGV[3] == '0' then
  redis.call('HDEL', KEYS[1], ARGV[2])
else
  redis.call('HSET', KEYS[1], ARGV[2], ARGV[3] .. ':' .. integer(micros + ARGV[4]))
  redis.call('PEXPIRE', KEYS[1], integer(ARGV[4] / 1000))
end
return {ARGV[1], 'ok'}
""",
)

# KEYS: budgets of one API key. ARGV: token, process, number of the call, how long a process is believed to be alive in
# microseconds, the part of what is left; then for each budget its limit, what the process has spent, what it keeps
# reserved, what it needs (-1: it begins no more requests), and when the hash expires, in seconds since 1970. The rule
# is that of `budget_store.settle_claim`. Returns for each budget what is reserved now, what is left, and what a process
# may hold unspent; `late` for a call that was given up, behind which another one was made.
RESERVE: Final = script(
    "allow-oom",
    TIME,
    """
local result = {ARGV[1], 'ok'}
for i = 1, #KEYS do
  local found = redis.call('HGET', KEYS[i], ARGV[2])
  local last = found and tonumber(string.match(found, '^(%d+):'))
  if last and last >= tonumber(ARGV[3]) then return {ARGV[1], 'late'} end
end
for i = 1, #KEYS do
  local at = 6 + 5 * (i - 1)
  local limit, spent, kept = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local needs = tonumber(ARGV[at + 3])
  local taken, gone, living, short = 0, 0, 1, false
  local all = redis.call('HGETALL', KEYS[i])
  for j = 1, #all, 2 do
    local reserved, used, stated, lacks = string.match(all[j + 1], '^%d+:(%d+):(%d+):(%d+):(%d)$')
    if all[j] ~= ARGV[2] and reserved then
      taken = taken + reserved
      if math.abs(micros - stated) < tonumber(ARGV[4]) then
        living, gone, short = living + 1, gone + used, short or lacks == '1'
      else
        gone = gone + math.max(reserved, used)
      end
    end
  end
  local free = limit - taken - spent
  local share = short and 0 or math.max(math.floor(free / (ARGV[5] * living)), 0)
  local granted = math.min(free, needs < 0 and 0 or math.max(needs, share))
  local reserved = math.max(kept, spent + math.max(granted, 0))
  local left = limit - gone - spent
  local lacks = reserved - spent < needs and needs <= left
  local held = {ARGV[3], integer(reserved), integer(spent), integer(micros), lacks and '1' or '0'}
  redis.call('HSET', KEYS[i], ARGV[2], table.concat(held, ':'))
  redis.call('EXPIREAT', KEYS[i], ARGV[at + 4])
  result[#result + 1] = reserved
  result[#result + 1] = left
  result[#result + 1] = share
end
return result
""",
)

# KEYS: budgets of one API key. ARGV: token. Returns for each what is spent, and what is reserved beyond that.
USE: Final = script(
    "no-writes",
    """
local result = {ARGV[1], 'ok'}
for i = 1, #KEYS do
  local spent, rest = 0, 0
  for _, held in ipairs(redis.call('HVALS', KEYS[i])) do
    local reserved, used = string.match(held, '^%d+:(%d+):(%d+):')
    if reserved then spent, rest = spent + used, rest + math.max(reserved - used, 0) end
  end
  result[#result + 1] = spent
  result[#result + 1] = rest
end
return result
""",
)
