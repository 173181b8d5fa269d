-- look: what is known of a job, and of one run of it, in one reading; writes nothing.
--
-- KEYS  1 state  2 active  3 slots  4 runs  5 results
-- ARGV  1 run, or empty for none  2 now (tests only)
--
-- Answers  {ok, TIME, schedule key, since, floor, last fence, pause in force (`until note`, or empty),
--           n, (open run) x n, the run's record or empty,
--           n, (run, attempt, fence, start, trigger, runner) x n, n, (member, score) x n}
--
-- Of the attempts and results only those of the run are told, among the first thousand of each since
-- the moment that it stands for; of open runs at most a hundred.
--
-- include begin record pause

local run = ARGV[1]
local SEARCHED, NAMED = 1000, 100

local function is_open(other)
  local r = unpacked(redis.call('HGET', STATE, other) or '')
  return r and r.open
end

local function open_runs(out)
  local count = #out + 1
  out[count] = 0
  for _, other in ipairs(redis.call('SMEMBERS', ACTIVE)) do
    if out[count] < NAMED and is_open(other) then
      out[count] = out[count] + 1
      out[#out + 1] = other
    end
  end
end

local function attempts_of(out, from)
  local count = #out + 1
  out[count] = 0
  for _, entry in ipairs(redis.call('XRANGE', RUNS, from, '+', 'COUNT', SEARCHED)) do
    local row = {}
    for i = 1, #entry[2], 2 do row[entry[2][i]] = entry[2][i + 1] end
    if row.run == run then
      out[count] = out[count] + 1
      for _, name in ipairs({'run', 'attempt', 'fence', 'start', 'trigger', 'runner'}) do
        out[#out + 1] = row[name] or ''
      end
    end
  end
end

local function results_of(out, from)
  local count = #out + 1
  out[count] = 0
  local rows = redis.call('ZRANGEBYSCORE', RESULTS, from, '+inf', 'WITHSCORES', 'LIMIT', 0, SEARCHED)
  for i = 1, #rows, 2 do
    if string.sub(rows[i], 1, #run + 1) == run .. ' ' then
      out[count] = out[count] + 1
      out[#out + 1] = rows[i]
      out[#out + 1] = rows[i + 1]
    end
  end
end

local fields = redis.call('HMGET', STATE, 'schedule', 'since', 'floor', 'fence')
local out = {
  'ok', now, fields[1] or '', number_in(fields[2]), number_in(fields[3]), number_in(fields[4]),
  pause_in_force() or '',
}
open_runs(out)
if run == '' then
  for _, nothing in ipairs({'', 0, 0}) do out[#out + 1] = nothing end
  return out
end
out[#out + 1] = redis.call('HGET', STATE, run) or ''
local from = whole(order_of(run))
attempts_of(out, from)
results_of(out, from)
return out
