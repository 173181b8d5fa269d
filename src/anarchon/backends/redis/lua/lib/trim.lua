-- Trimming, with each new record: among the oldest beyond history_size (or older than history_ttl),
-- at most ten a call of at most 128 looked at. Open runs are passed over, and nothing goes that a
-- late claim could still ask for. What goes raises a floor, at or below which an unknown run is done.
local TRIMMED, LOOKED, CHUNK = 10, 128, 16

local function victims_of(t)
  local excess = redis.call('ZCARD', SLOTS) - t.history_size
  local victims, rank = {}, 0
  while rank < LOOKED do
    local rows = redis.call('ZRANGE', SLOTS, rank, rank + CHUNK - 1, 'WITHSCORES')
    for i = 1, #rows, 2 do
      local run, score = rows[i], tonumber(rows[i + 1])
      local expired = t.history_ttl > 0 and score + t.history_ttl < now
      if #victims == TRIMMED or not (#victims < excess or expired) or score + t.keep >= now then
        return victims
      end
      local r, bad = read(run)
      if not bad and not (r and r.open) then victims[#victims + 1] = {run = run, score = score} end
    end
    if #rows < 2 * CHUNK then return victims end
    rank = rank + CHUNK
  end
  return victims
end

local function raise_floor(field, to)
  if to > number_in(redis.call('HGET', STATE, field)) then redis.call('HSET', STATE, field, whole(to)) end
end

local function drop_expired_history(history_ttl)
  if history_ttl == 0 then return end
  local oldest = whole(math.max(now - history_ttl, 0))
  for _, entry in ipairs(redis.call('XRANGE', RUNS, '-', oldest, 'COUNT', TRIMMED)) do
    redis.call('XDEL', RUNS, entry[1])
  end
  local old = redis.call('ZRANGEBYSCORE', RESULTS, '-inf', oldest, 'LIMIT', 0, TRIMMED)
  for _, member in ipairs(old) do redis.call('ZREM', RESULTS, member) end
end

-- t: keep, history_size, history_ttl
local function trim(t)
  for _, victim in ipairs(victims_of(t)) do
    raise_floor(string.sub(victim.run, 1, 1) == 'm' and 'floor:manual' or 'floor', victim.score)
    redis.call('HDEL', STATE, victim.run)
    redis.call('ZREM', SLOTS, victim.run)
  end
  drop_expired_history(t.history_ttl)
end
