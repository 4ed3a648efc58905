-- SPDX-License-Identifier: Apache-2.0
-- Exponential moving averages of variables: s -= (1 - d)(s - v).
local tf = ...

-- ema(decay, {steps =}): steps, the count n of updates so far, makes the decay min(decay, (1 + n) /
-- (10 + n)). apply(variables) returns the op that updates; average(w) is the average, a variable.
-- After a training op: control({train}, function() return e.apply(trainable()) end); in a group
-- with it, the average would use the values before the step.
function ema(decay, o)
  o = tf.options("ema", o, "steps")
  if decay == nil then tf.fail("ema: the decay is nil") end
  tf.within_bounds("ema: the decay", decay, 0, 1)
  local shadows = {}
  local self = {}
  function self.average(w)
    return shadows[w.id] or tf.fail("ema: %s is not averaged", tostring(w))
  end
  local function update(w)
    local s = slot(w, "average", w.initial or 0)
    shadows[w.id] = s
    local share = 1 - decay
    if o.steps then
      local n = tf.cast(o.steps, tf.count_type(w.dtype))
      share = tf.cast(1 - Minimum((1 + n) / (10 + n), decay), w.dtype)
    end
    return AssignSub(s, (s - w) * share)
  end
  function self.apply(variables)
    return scope("ema", function()
      local updates = {}
      for i, w in ipairs(tf.list(variables)) do updates[i] = update(w) end
      return group(updates)
    end)
  end
  tf.refuse_more(self, "ema: ")
  return self
end
