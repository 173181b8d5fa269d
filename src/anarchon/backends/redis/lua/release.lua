-- release: give a lease back before its end: at shutdown, or because the attempt may not start.
--
-- KEYS  1 state  2 active  3 slots  4 runs  5 results
-- ARGV  1 run  2 token
--       3 kind           r handed back; u not started for want of replicas (the attempt is given
--                        back with it: the number stays used, the limit rises by one)
--       4 delay          ms before it may be taken again (u only)
--       5 last           ms after which an unstarted run is not tried again (u only)
--       6 history size   7 now (tests only)
--
-- Answers  {code, TIME}
--   ok     given back, now or by an earlier copy of this call
--   lost   not this token's to give
--
-- include begin record results

local run, token, kind = ARGV[1], ARGV[2], ARGV[3]
local delay, last, history_size = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

local function letter_after(r)
  if r.cancel then return 'C' end
  if kind == 'u' then return now > last and 'X' or 'W' end
  return r.attempt < r.max and 'W' or 'X'
end

local r = read(run)
if not r or r.token ~= token then return {'lost', now} end
if r.letter ~= 'R' then
  return {(r.outcome == 'r' or r.outcome == 'u') and 'ok' or 'lost', now}
end
r.letter, r.outcome = letter_after(r), kind
if r.letter == 'W' then
  local wait = kind == 'u' and delay or 0
  if kind == 'u' then r.max = r.max + 1 end
  r.finish, r.granted = now + wait, wait
  store_open(run, r)
else
  store_closed(run, r, r.letter, now)
end
add_result(run, r.attempt, STATUS[kind], now, '', r.fence, history_size)
return {'ok', now}
