-- SPDX-License-Identifier: Apache-2.0
-- Learning rates as functions of the step, a scalar tensor such as global_step(). All are float32.
local tf = ...

schedule = {}

-- Name, options (step is always one), formula of the step as a float32 tensor.
local function define(name, options, formula)
  schedule[name] = function(o)
    o = tf.options("schedule." .. name, o, "step name " .. options)
    if not tf.is_tensor(o.step) then
      tf.fail("schedule.%s: step must be a tensor, as global_step()", name)
    end
    for option in options:gmatch("[%w_]+") do
      if o[option] == nil and (option == "rate" or option == "steps" or option == "decay") then
        tf.fail("schedule.%s: %s must be given", name, option)
      end
    end
    if o.steps ~= nil then tf.positive("schedule." .. name .. ": steps", o.steps) end
    return scope(o.name or name, function() return formula(o, tf.cast(o.step, float32)) end)
  end
end

-- step / steps, in whole steps if wanted
local function progress(o, step)
  local t = step / o.steps
  return o.staircase and Floor(t) or t
end

-- rate decay^(step / steps)
define("exponential", "rate steps decay staircase?", function(o, step)
  return o.rate * Pow(Const(o.decay, {dtype = float32}), progress(o, step))
end)

-- rate exp(-decay step / steps)
define("natural_exp", "rate steps decay staircase?", function(o, step)
  return o.rate * Exp(progress(o, step) * -o.decay)
end)

-- rate / (1 + decay step / steps)
define("inverse_time", "rate steps decay staircase?", function(o, step)
  return o.rate / (1 + o.decay * progress(o, step))
end)

-- (rate - last) (1 - step / steps)^power + last; with cycle, steps is doubled, tripled, ...
-- whenever it has passed
define("polynomial", "rate steps last power cycle?", function(o, step)
  local last, steps = o.last or 1e-4, o.steps
  if o.cycle then
    steps = steps * Maximum(Ceil(step / steps), 1)
  else
    step = Minimum(step, steps)
  end
  return (o.rate - last) * Pow(1 - step / steps, o.power or 1) + last
end)

-- values[1] up to and including step bounds[1], then values[2], ...; one value more than bounds
define("piecewise", "bounds values", function(o, step)
  if type(o.bounds) ~= "table" or type(o.values) ~= "table" or #o.values ~= #o.bounds + 1 then
    tf.fail("schedule.piecewise: bounds and values are lists, values one longer")
  end
  local rate = Const(o.values[#o.values], {dtype = float32})
  for i = #o.bounds, 1, -1 do
    rate = Select(LessEqual(step, o.bounds[i]), Const(o.values[i], {dtype = float32}), rate)
  end
  return rate
end)
