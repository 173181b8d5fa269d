-- The job's other open runs: which of them are live, and which can still be had.
--
-- With `overlap` allow there may be many, and none of them forbids anything: a random 32 are looked
-- at. Otherwise all of them are: the rule itself keeps them few.
local LOOKED_AT = 32
local NAMED = 10

-- Whether a run is over for good: nobody may take it again.
local function used_up(r, reach)
  return r.finish <= now and (r.cancel or r.attempt >= r.max or now > r.finish + reach)
end

-- Until when a run forbids another one: its end, and for an older run that can still be had a short
-- grace after it, so that its backups come first. 0 where it forbids nothing.
local function forbids_until(r, older, grace)
  local till = r.finish
  if older and r.attempt < r.max and not r.cancel then till = till + grace end
  if till > now then return till end
  return 0
end

local function open_members(overlap)
  if overlap == 'allow' then return redis.call('SRANDMEMBER', ACTIVE, LOOKED_AT) end
  return redis.call('SMEMBERS', ACTIVE)
end

-- t: run, overlap, grace, lease; and, to close what is used up and to drop members of `active` that
-- are not open: sweep = true, reach, history_size.
-- Answers until when others forbid this run (0: they do not), and the runs that can still be had, as
-- a flat list of run, attempt, rest; attempt 0 stands for a record that makes no sense, which counts
-- as live.
local function look_at_others(t)
  local till, open = 0, {}
  local order = order_of(t.run)
  for _, run in ipairs(open_members(t.overlap)) do
    if run ~= t.run then
      local r, bad = read(run)
      if bad then
        till = math.max(till, now + t.lease)
        open[#open + 1] = {run = run, order = order_of(run), attempt = 0, rest = t.lease}
      elseif not r or not r.open then
        if t.sweep then redis.call('SREM', ACTIVE, run) end
      elseif t.sweep and used_up(r, t.reach) then
        close_abandoned(run, r, t.history_size)
      else
        till = math.max(till, forbids_until(r, order_of(run) < order, t.grace))
        if r.attempt < r.max then
          open[#open + 1] = {
            run = run, order = order_of(run), attempt = r.attempt, rest = math.max(r.finish - now, 0),
          }
        end
      end
    end
  end
  if t.overlap == 'allow' then till = 0 end
  table.sort(open, function(a, b)
    if a.order ~= b.order then return a.order < b.order end
    return a.run < b.run
  end)
  local named = {}
  for i = 1, math.min(#open, NAMED) do
    named[#named + 1] = open[i].run
    named[#named + 1] = open[i].attempt
    named[#named + 1] = open[i].rest
  end
  return till, named
end
