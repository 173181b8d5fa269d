-- claim: ask for a run, as the first to ask or as a backup. The first row that matches decides.
--
-- KEYS  1 state  2 active  3 slots  4 runs  5 results
-- ARGV  1 run              the slot, or m<asked ms>-<random> of a manual run
--       2 token            this asker's, the same in each repeat
--       3 seen             the attempt the asker was last told of; 0 asks for the first
--       4 slot             ms; 0 for a manual run
--       5 deadline         ms: later than this wins nothing
--       6 last             ms: the last moment at which anybody may still ask for this slot
--       7 lease            ms
--       8 runner
--       9 trigger          s schedule, c catch-up, m manual
--      10 since applies    1 for a look-back or catch-up: not at or below the job's since
--      11 overlap          skip, wait, allow
--      12 max attempts     stored with the first attempt
--      13 reach            ms after a lease end in which the run may still be taken over
--      14 grace            ms
--      15 keep             ms after its slot for which a record stays
--      16 history size     17 history ttl in ms, 0 for none
--      18 now              tests only; empty for the server's clock
--
-- Answers  {code, TIME, letter, outcome, attempt, rest ms, 1 if an attempt is left, max attempts,
--           fence, trigger, n, (run, attempt, rest) x n}; what does not apply is 0 or empty. The n
--          runs are the job's other open ones that can still be had.
--   early    before the slot: rest is how long to wait
--   won      attempt, max attempts, fence; outcome is that of the attempt before, if the run waited
--            for this one: a retry, no takeover; a repeat by the same token renews the lease
--   running, waiting    somebody else's: attempt, rest of the lease or of the retry wait
--   overlap  another run of the job forbids this one for rest
--   done     letter and outcome tell how; outcome floor or since where nothing is stored
--   gone     asked as a backup for a run that the store does not know
--   late     after the deadline
--   paused   the job is paused
--   bad      the record makes no sense
--
-- include begin record results others trim pause

local run, token, seen, slot = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local deadline, last, lease = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local runner, trigger, since_applies = ARGV[8], ARGV[9], ARGV[10] == '1'
local overlap, max_attempts, reach = ARGV[11], tonumber(ARGV[12]), tonumber(ARGV[13])
local grace, keep = tonumber(ARGV[14]), tonumber(ARGV[15])
local history_size, history_ttl = tonumber(ARGV[16]), tonumber(ARGV[17])
local manual = trigger == 'm'
local kept = {keep = keep, history_size = history_size, history_ttl = history_ttl}

local forbidden_until, named = look_at_others({
  run = run, overlap = overlap, grace = grace, lease = lease, sweep = true, reach = reach,
  history_size = history_size,
})

local function answer(code, t)
  local out = {
    code, now, t.letter or '', t.outcome or '', t.attempt or 0, t.rest or 0, t.left and 1 or 0,
    t.max or 0, t.fence or 0, t.trigger or '', #named / 3,
  }
  for i = 1, #named do out[#out + 1] = named[i] end
  return out
end

local function answer_record(code, r, rest)
  return answer(code, {
    letter = r.letter, outcome = r.outcome, attempt = r.attempt, rest = rest,
    left = r.open and r.attempt < r.max, max = r.max, fence = r.fence, trigger = r.trigger,
  })
end

local function next_fence()
  return math.max(number_in(redis.call('HGET', STATE, 'fence')) + 1, now)
end

-- `active` first, so that a script that stops in the middle hides no open run.
local function grant(attempt, max, with_trigger, outcome_before)
  local r = {
    letter = 'R', open = true, attempt = attempt, max = max, finish = now + lease, granted = lease,
    fence = next_fence(), trigger = with_trigger, token = token, outcome = outcome_before, cancel = false,
    runner = runner,
  }
  redis.call('SADD', ACTIVE, run)
  store_open(run, r)
  redis.call('HSET', STATE, 'fence', whole(r.fence))
  return r
end

local function record_attempt(r)
  redis.call('XADD', RUNS, 'MAXLEN', history_size, '*', 'run', run, 'attempt', whole(r.attempt),
    'fence', whole(r.fence), 'start', whole(now), 'trigger', r.trigger, 'runner', runner)
end

-- Remembers that a slot will not run. What was merely missed leaves no record: nobody can win it.
local function record_skip(outcome, status)
  local r = {attempt = 0, fence = 0, trigger = trigger, token = '-', outcome = outcome}
  store_closed(run, r, 'K', now)
  redis.call('ZADD', SLOTS, order_of(run), run)
  add_result(run, 0, status, now, '', now, history_size)
  trim(kept)
end

-- At or below a floor the record was trimmed; at or below since the schedule was not known yet.
local function settled_before()
  local fields = redis.call('HMGET', STATE, manual and 'floor:manual' or 'floor', 'since')
  if order_of(run) <= number_in(fields[1]) then return 'floor' end
  if since_applies and not manual and slot <= number_in(fields[2]) then return 'since' end
  return nil
end

local function ask_first()
  if seen > 0 then return answer('gone', {}) end
  local settled = settled_before()
  if settled then return answer('done', {outcome = settled}) end
  if now > deadline then
    if now > last then add_result(run, 0, 'missed', 0, '', now, history_size) end
    return answer('late', {})
  end
  if not manual and pause_in_force() then
    if trigger == 's' then record_skip('p', 'paused') end
    return answer('paused', {})
  end
  if forbidden_until > 0 then
    if trigger == 's' and overlap == 'skip' then record_skip('o', 'skipped') end
    return answer('overlap', {rest = forbidden_until - now})
  end
  local r = grant(1, max_attempts, trigger, '-')
  redis.call('ZADD', SLOTS, order_of(run), run)
  record_attempt(r)
  trim(kept)
  return answer_record('won', r, lease)
end

local function renew(r)
  if r.finish <= now and (forbidden_until > 0 or now > deadline) then
    return answer_record('running', r, 0)
  end
  r.finish, r.granted = now + lease, lease
  store_open(run, r)
  return answer_record('won', r, lease)
end

local function take_over(r)
  if used_up(r, reach) then
    close_abandoned(run, r, history_size)
    return answer_record('done', unpacked(redis.call('HGET', STATE, run)), 0)
  end
  if seen ~= r.attempt then return answer_record('running', r, 0) end
  if now > deadline then return answer_record('late', r, 0) end
  if forbidden_until > 0 then return answer_record('overlap', r, forbidden_until - now) end
  local won = grant(r.attempt + 1, r.max, r.trigger, r.letter == 'W' and r.outcome or '-')
  if r.letter == 'R' then
    add_result(run, r.attempt, 'interrupted', r.finish, '', r.fence, history_size)
  end
  record_attempt(won)
  return answer_record('won', won, lease)
end

local r, bad = read(run)
if not manual and now < slot then return answer('early', {rest = slot - now}) end
if bad then return answer('bad', {}) end
if not r then return ask_first() end
if r.letter == 'R' and r.token == token then return renew(r) end
if not r.open then return answer_record('done', r, 0) end
if r.finish > now then
  return answer_record(r.letter == 'R' and 'running' or 'waiting', r, r.finish - now)
end
return take_over(r)
