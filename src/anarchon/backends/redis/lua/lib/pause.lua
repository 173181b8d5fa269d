-- The pause of a job: `until note`, until 0 for an open end. The field where it is in force, or nil:
-- an expired pause is none.
local function pause_in_force()
  local field = redis.call('HGET', STATE, 'paused') or ''
  local till = string.match(field, '^(%d+) ')
  if till and exact(till) and (tonumber(till) == 0 or tonumber(till) > now) then return field end
  return nil
end
