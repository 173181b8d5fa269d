-- format: the number of the store's format, written by the first who starts.
--
-- KEYS  1 format (string)
-- ARGV  1 the format that this version writes, or empty to leave a new store as it is
--
-- Answers  {ok, TIME, what stands there; the number 0 in a store that nobody has started with}
--
-- The HDEL writes nothing, on a missing key as on a string; it lets the script be refused on a
-- replica, and the SET through when memory is full.

if redis.replicate_commands then redis.replicate_commands() end
local function of_another_type(reply)
  return type(reply) == 'table' and reply.err and string.find(reply.err, 'WRONGTYPE', 1, true)
end

local tried = redis.pcall('HDEL', KEYS[1], '!')
if type(tried) == 'table' and not of_another_type(tried) then return tried end
local found = redis.pcall('GET', KEYS[1])
if of_another_type(found) then found = 'a value of another type' end
if type(found) == 'table' then return found end
if not found and ARGV[1] ~= '' then
  redis.call('SET', KEYS[1], ARGV[1])
  found = ARGV[1]
end
local t = redis.call('TIME')
return {'ok', tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000), found or 0}
