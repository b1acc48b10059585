"""Holds the scripts that count the usage of API keys."""

from typing import Final

from gateway.server.state.valkey.scripts.script import TIME, script

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
