-- heartbeat: keep a lease. Also after its end, as long as nobody else was given anything.
--
-- KEYS  1 state  2 active  3 slots  4 runs  5 results
-- ARGV  1 run  2 token  3 lease ms  4 overlap  5 grace ms  6 now (tests only)
--
-- Answers  {code, TIME, 1 if cancelling was asked for}
--   ok     the lease ends a lease from now
--   lost   not this token's to keep: stop, and write nothing
--
-- include begin record results others

local run, token, lease = ARGV[1], ARGV[2], tonumber(ARGV[3])

local r = read(run)
if not r or r.letter ~= 'R' or r.token ~= token then return {'lost', now, 0} end
if r.finish <= now then
  local forbidden_until = look_at_others({
    run = run, overlap = ARGV[4], grace = tonumber(ARGV[5]), lease = lease, sweep = false,
  })
  if forbidden_until > 0 then return {'lost', now, 0} end
end
r.finish, r.granted = now + lease, lease
store_open(run, r)
return {'ok', now, r.cancel and 1 or 0}
