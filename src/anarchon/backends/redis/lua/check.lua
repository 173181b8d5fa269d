-- check: which commands the scripts may not call as this user, tried in a way that writes nothing.
--
-- KEYS  1 the format key (a string) for `types`; a key that never exists for `delete`
-- ARGV  1 types or delete  2 the format that this version writes, should the key be gone by now
--
-- Answers  {ok, (command, error) for each that is refused}
--
-- Called on a string, a command of another type answers WRONGTYPE if the user may call it, and an
-- error of another kind if not. DEL would delete there, so it is tried on a key that never exists.

-- HDEL first, so that what follows is let through when memory is full; then SET, so that a format key
-- that vanished meanwhile is a string again before a command of another type would make it one.
local TYPES = {
  {'HDEL', KEYS[1], 'f'}, {'SET', KEYS[1], ARGV[2], 'NX'},
  {'HGET', KEYS[1], 'f'}, {'HMGET', KEYS[1], 'f'}, {'HGETALL', KEYS[1]},
  {'HSET', KEYS[1], 'f', 'v'},
  {'SADD', KEYS[1], 'm'}, {'SREM', KEYS[1], 'm'}, {'SMEMBERS', KEYS[1]},
  {'SRANDMEMBER', KEYS[1], '1'},
  {'ZADD', KEYS[1], '1', 'm'}, {'ZCARD', KEYS[1]}, {'ZRANGE', KEYS[1], '0', '0'},
  {'ZREVRANGE', KEYS[1], '0', '0'}, {'ZRANGEBYSCORE', KEYS[1], '0', '0'}, {'ZREM', KEYS[1], 'm'},
  {'ZREMRANGEBYRANK', KEYS[1], '0', '0'},
  {'XADD', KEYS[1], '*', 'f', 'v'}, {'XRANGE', KEYS[1], '-', '-'},
  {'XREVRANGE', KEYS[1], '-', '-'}, {'XDEL', KEYS[1], '1-1'},
  {'GET', KEYS[1]}, {'TIME'},
}
local DELETE = {{'DEL', KEYS[1]}}

local out = {'ok'}
for _, call in ipairs(ARGV[1] == 'delete' and DELETE or TYPES) do
  local reply = redis.pcall(unpack(call))
  if type(reply) == 'table' and reply.err and not string.find(reply.err, 'WRONGTYPE', 1, true) then
    out[#out + 1] = call[1]
    out[#out + 1] = reply.err
  end
end
return out
