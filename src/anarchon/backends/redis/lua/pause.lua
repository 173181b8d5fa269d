-- pause: hold back a job's scheduled runs for the whole cluster, or let them go on.
--
-- KEYS  1 state  2 active  3 slots  4 runs  5 results
-- ARGV  1 pause or resume  2 until ms, 0 for an open end  3 note  4 now (tests only)
--
-- Answers  {ok, TIME}
--
-- include begin record

if ARGV[1] == 'pause' then
  redis.call('HSET', STATE, 'paused', whole(tonumber(ARGV[2])) .. ' ' .. ARGV[3])
else
  redis.call('HDEL', STATE, 'paused')
end
return {'ok', now}
