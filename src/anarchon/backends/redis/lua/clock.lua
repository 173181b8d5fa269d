-- clock: the server's time, and this instance's presence.
--
-- KEYS  1 instances (hash: runner -> `last seen ms` and what it tells of itself)
-- ARGV  1 runner, or empty to ask for the time only  2 what it tells; empty to leave
--       3 ms after which a silent instance is dropped  4 now (tests only)
--
-- Answers  {ok, TIME}

if redis.replicate_commands then redis.replicate_commands() end
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
if ARGV[4] and ARGV[4] ~= '' then now = tonumber(ARGV[4]) end
local runner, told, silent = ARGV[1], ARGV[2], tonumber(ARGV[3])
if runner == '' then return {'ok', now} end
redis.call('HDEL', KEYS[1], '!')
if told == '' then
  redis.call('HDEL', KEYS[1], runner)
  return {'ok', now}
end
redis.call('HSET', KEYS[1], runner, string.format('%.0f', now) .. ' ' .. told)
local rows = redis.call('HGETALL', KEYS[1])
for i = 1, #rows, 2 do
  local seen = tonumber(string.match(rows[i + 1], '^(%d+)') or '') or 0
  if seen + silent < now then redis.call('HDEL', KEYS[1], rows[i]) end
end
return {'ok', now}
