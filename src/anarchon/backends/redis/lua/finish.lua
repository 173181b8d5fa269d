-- finish: tell how an attempt ended.
--
-- KEYS  1 state  2 active  3 slots  4 runs  5 results
-- ARGV  1 run  2 token
--       3 outcome        s succeeded, f failed, t timed out, n failed for good, c cancelled
--       4 error          text, or empty
--       5 delay          ms until the run may be retried
--       6 history size   7 now (tests only)
--
-- Answers  {code, TIME, done or waiting, attempt, rest ms}
--   ok     written, now or by an earlier copy of this call
--   lost   not this token's to end, or not known any more: the attempt that stands is another
--
-- include begin record results

local run, token, outcome, error = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local delay, history_size = tonumber(ARGV[5]), tonumber(ARGV[6])

local function answer_written(r)
  if r.letter == 'W' then return {'ok', now, 'waiting', r.attempt, math.max(r.finish - now, 0)} end
  return {'ok', now, 'done', r.attempt, 0}
end

-- The letter of a run whose attempt ended so; W where it will be tried again.
local function letter_after(r)
  if outcome == 'c' then return 'C' end
  if outcome == 's' or outcome == 'n' then return 'D' end
  if r.cancel then return 'C' end
  if r.attempt >= r.max then return 'D' end
  return 'W'
end

local r = read(run)
if not r or r.token ~= token then return {'lost', now, '', 0, 0} end
if r.letter ~= 'R' then
  if r.letter ~= 'X' and r.letter ~= 'K' and r.outcome == outcome then return answer_written(r) end
  return {'lost', now, '', 0, 0}
end
r.letter, r.outcome = letter_after(r), outcome
if r.letter == 'W' then
  r.finish, r.granted = now + delay, delay
  store_open(run, r)
else
  store_closed(run, r, r.letter, now)
end
add_result(run, r.attempt, STATUS[outcome], now, error, r.fence, history_size)
return answer_written(r)
