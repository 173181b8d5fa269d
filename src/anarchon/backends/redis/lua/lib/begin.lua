-- How every script of a job begins.
--
-- Effects replication is asked for where it is not the default (Redis 5 and 6 with
-- lua-replicate-commands off). The HDEL of a field that cannot exist writes nothing, and makes the
-- server refuse the script on a replica (whose answer would be stale) and lets the writes below
-- through when memory is full: a heartbeat or finish must not fail for want of memory.
if redis.replicate_commands then redis.replicate_commands() end
local STATE, ACTIVE, SLOTS, RUNS, RESULTS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
redis.call('HDEL', STATE, '!')

-- The server's clock in milliseconds. A test may pass the time as the script's last argument.
local function server_time(given)
  if given and given ~= '' then return tonumber(given) end
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end
local now = server_time(ARGV[#ARGV])
