-- register: tell the store of a job and its schedule, when an instance starts. Open runs that nobody
-- may take any more are closed; those that can still be had are named.
--
-- KEYS  1 state  2 active  3 slots  4 runs  5 results
-- ARGV  1 schedule key  2 overlap  3 reach ms  4 lease ms  5 history size  6 now (tests only)
--
-- Answers  {ok, TIME, since, 1 if the job is new or its schedule changed,
--           pause in force (`until note`, or empty), n, (run, attempt, rest) x n}
--
-- include begin record results others pause

local key = ARGV[1]

local function since_of_schedule()
  local fields = redis.call('HMGET', STATE, 'schedule', 'since')
  local since = number_in(fields[2])
  if fields[1] == key and since > 0 then return since, 0 end
  redis.call('HSET', STATE, 'schedule', key, 'since', whole(now))
  return now, 1
end

local _, named = look_at_others({
  run = '', overlap = ARGV[2], grace = 0, lease = tonumber(ARGV[4]), sweep = true,
  reach = tonumber(ARGV[3]), history_size = tonumber(ARGV[5]),
})
local since, changed = since_of_schedule()
local out = {'ok', now, since, changed, pause_in_force() or '', #named / 3}
for i = 1, #named do out[#out + 1] = named[i] end
return out
