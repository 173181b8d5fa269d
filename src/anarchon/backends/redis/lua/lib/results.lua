-- Results: one member for each attempt that ended, `run attempt status end error`, scored by fence.
-- Attempt 0 tells of the run itself: skipped, paused, missed, or closed with no attempt under way.
local STATUS = {
  s = 'succeeded', f = 'failed', t = 'timed-out', n = 'failed', c = 'cancelled', r = 'released',
  u = 'released', i = 'interrupted',
}

-- At most ten are dropped a call, so that a smaller history_size costs no long script.
local function drop_oldest_results(history_size)
  local excess = redis.call('ZCARD', RESULTS) - history_size
  if excess > 0 then redis.call('ZREMRANGEBYRANK', RESULTS, 0, math.min(excess, 10) - 1) end
end

local function add_result(run, attempt, status, finish, error, score, history_size)
  local member = table.concat({run, whole(attempt), status, whole(finish), error}, ' ')
  redis.call('ZADD', RESULTS, 'NX', whole(score), member)
  drop_oldest_results(history_size)
end

-- Closes a run whose lease is over and that nobody will end: at its lease end, with the result that
-- its attempt could not write (a waiting run's attempt has one, so there the run itself gets it).
local function close_abandoned(run, r, history_size)
  local status = r.cancel and 'cancelled' or 'interrupted'
  local attempt = 0
  if r.letter == 'R' then
    attempt = r.attempt
    r.outcome = r.cancel and 'c' or 'i'
  end
  store_closed(run, r, r.cancel and 'C' or 'X', r.finish)
  add_result(run, attempt, status, r.finish, '', r.fence, history_size)
end
