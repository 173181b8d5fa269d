-- history: what is known of a job's newest runs, in one reading.
--
-- KEYS  1 state  2 active  3 slots  4 runs  5 results
-- ARGV  1 how many attempts to read  2 now (tests only)
--
-- Answers  {ok, TIME, number of attempts, (run, attempt, fence, start, trigger, runner) x that,
--           number of results, (member, score) x that, number of records, (run, record) x that};
--          newest first; a record for each run named in the attempts or results.
--
-- include begin

local limit = tonumber(ARGV[1])
local out = {'ok', now, 0}
local seen, wanted = {}, {}

local function want(run)
  if run and not seen[run] then
    seen[run] = true
    wanted[#wanted + 1] = run
  end
end

for _, entry in ipairs(redis.call('XREVRANGE', RUNS, '+', '-', 'COUNT', limit)) do
  local row = {}
  for i = 1, #entry[2], 2 do row[entry[2][i]] = entry[2][i + 1] end
  for _, name in ipairs({'run', 'attempt', 'fence', 'start', 'trigger', 'runner'}) do
    out[#out + 1] = row[name] or ''
  end
  out[3] = out[3] + 1
  want(row.run)
end
local results = redis.call('ZREVRANGE', RESULTS, 0, limit - 1, 'WITHSCORES')
out[#out + 1] = #results / 2
for i = 1, #results do out[#out + 1] = results[i] end
for i = 1, #results, 2 do want(string.match(results[i], '^(%S+) ')) end
out[#out + 1] = #wanted
for _, run in ipairs(wanted) do
  out[#out + 1] = run
  out[#out + 1] = redis.call('HGET', STATE, run) or ''
end
return out
