-- forget: delete all that is stored of a job, unless a run of it is live.
--
-- KEYS  1 state  2 active  3 slots  4 runs  5 results
-- ARGV  1 now (tests only)
--
-- Answers  {code, TIME}
--   ok       deleted
--   refused  a run is live, or its record makes no sense
--
-- include begin record

for _, run in ipairs(redis.call('SMEMBERS', ACTIVE)) do
  local r, bad = read(run)
  if bad or (r and r.open and r.finish > now) then return {'refused', now} end
end
redis.call('DEL', STATE, ACTIVE, SLOTS, RUNS, RESULTS)
return {'ok', now}
