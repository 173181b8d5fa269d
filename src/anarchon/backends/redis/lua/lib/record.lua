-- The record of a run: one field of the state hash, packed.
--
-- open    letter attempt max end granted fence trigger token outcome[!] runner
-- closed  letter attempt end fence trigger token outcome
--
-- Letters: R running, W waiting (for a retry, or handed back); D done, X interrupted, C cancelled,
-- K never ran. Outcome is the last attempt's own (of an R that of the attempt
-- before, if the run waited for the present one): - none yet, s succeeded, f failed, t timed out,
-- n failed for good, c cancelled, r released, u released unstarted, i interrupted; of a K the
-- reason: o overlap, p paused. `!` marks a run whose cancelling was asked for.
local OPEN = '^([RW]) (%d+) (%d+) (%d+) (%d+) (%d+) ([scm]) (%S+) ([%-sftncrui])(!?) (.*)$'
local CLOSED = '^([DXCK]) (%d+) (%d+) (%d+) ([scm]) (%S+) ([%-sftncruiop])$'

-- Lua's own conversion turns large numbers into 1.79e+15.
local function whole(n) return string.format('%.0f', n) end

-- Digits that a Lua number holds exactly.
local function exact(digits) return #digits <= 15 end

-- The whole number that a field holds; 0 where it holds none, or one so large that its successor
-- could not be kept.
local function number_in(field)
  local digits = string.match(field or '', '^%d+$')
  return digits and #digits <= 14 and tonumber(digits) or 0
end

-- The parts of a packed record; nil where it makes no sense.
local function unpacked(text)
  local s, attempt, max, finish, granted, fence, trigger, token, outcome, flag, runner =
    string.match(text, OPEN)
  if s then
    if not (exact(attempt) and exact(max) and exact(finish) and exact(granted) and exact(fence)) then
      return nil
    end
    local r = {
      letter = s, open = true, attempt = tonumber(attempt), max = tonumber(max),
      finish = tonumber(finish), granted = tonumber(granted), fence = tonumber(fence),
      trigger = trigger, token = token, outcome = outcome, cancel = flag == '!', runner = runner,
    }
    if r.attempt < 1 or r.attempt > r.max then return nil end
    return r
  end
  s, attempt, finish, fence, trigger, token, outcome = string.match(text, CLOSED)
  if not s or not (exact(attempt) and exact(finish) and exact(fence)) then return nil end
  return {
    letter = s, open = false, attempt = tonumber(attempt), max = 0, finish = tonumber(finish),
    granted = 0, fence = tonumber(fence), trigger = trigger, token = token, outcome = outcome,
    cancel = false,
  }
end

local function store_open(run, r)
  redis.call('HSET', STATE, run, table.concat({
    r.letter, whole(r.attempt), whole(r.max), whole(r.finish), whole(r.granted), whole(r.fence),
    r.trigger, r.token, r.outcome .. (r.cancel and '!' or ''), r.runner,
  }, ' '))
end

-- The record first, then `active`: a script that stops between them hides no open run.
local function store_closed(run, r, letter, finish)
  redis.call('HSET', STATE, run, table.concat({
    letter, whole(r.attempt), whole(finish), whole(r.fence), r.trigger, r.token, r.outcome,
  }, ' '))
  redis.call('SREM', ACTIVE, run)
end

-- The record of a run, or nil; and whether there is one that makes no sense. A lease may not last
-- longer from now than it was granted for: that happens when the server's clock jumped back, and is
-- put right before anything is decided.
local function read(run)
  local text = redis.call('HGET', STATE, run)
  if not text then return nil, false end
  local r = unpacked(text)
  if not r then return nil, true end
  if r.open and r.finish > now + r.granted then
    r.finish = now + r.granted
    store_open(run, r)
  end
  return r, false
end

-- When a run stands in the order of the job's runs: its slot, or when a manual run was asked for.
local function order_of(run)
  return tonumber(string.match(run, '^m?(%d+)')) or 0
end
