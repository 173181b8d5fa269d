-- cancel: end a run for the whole cluster. A live holder learns it at its next heartbeat.
--
-- KEYS  1 state  2 active  3 slots  4 runs  5 results
-- ARGV  1 run  2 history size  3 now (tests only)
--
-- Answers  {code, TIME}
--   ok     asked for, or done at once where nobody holds the run
--   done   the run is over, or not known
--
-- include begin record results

local run, history_size = ARGV[1], tonumber(ARGV[2])

local r = read(run)
if not r or not r.open then return {'done', now} end
r.cancel = true
if r.letter == 'R' and r.finish > now then
  store_open(run, r)
else
  close_abandoned(run, r, history_size)
end
return {'ok', now}
