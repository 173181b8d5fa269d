-- instances: which instances have shown themselves; writes nothing.
--
-- KEYS  1 instances (hash: runner -> `last seen ms` and what it tells of itself)
-- ARGV  1 now (tests only)
--
-- Answers  {ok, TIME, (runner, value) for each}

if redis.replicate_commands then redis.replicate_commands() end
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
if ARGV[1] and ARGV[1] ~= '' then now = tonumber(ARGV[1]) end
redis.call('HDEL', KEYS[1], '!')
local out = {'ok', now}
for _, part in ipairs(redis.call('HGETALL', KEYS[1])) do out[#out + 1] = part end
return out
