-- SPDX-License-Identifier: Apache-2.0
-- Learning rates as functions of the step, a scalar tensor such as global_step(). All are float32.
local tf = ...

schedule = {}

-- Defines a schedule: name, options (always with step), formula of the step as a float32 tensor.
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

-- step / steps, rounded down with staircase
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

-- (rate - last) (1 - step / steps)^power + last; with cycle, steps is doubled, tripled, ... each
-- time it has passed
define("polynomial", "rate steps last power cycle?", function(o, step)
  local last, steps = o.last or 1e-4, o.steps
  if o.cycle then
    steps = steps * Maximum(Ceil(step / steps), 1)
  end
  return (o.rate - last) * Pow(Maximum(1 - step / steps, 0), o.power or 1) + last
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

-- From `from` to `to` by half a cosine wave, as t goes from 0 to 1.
local function wave(from, to, t)
  return to + (from - to) * (1 + Cos(math.pi * Minimum(Maximum(t, 0), 1))) / 2
end

-- From rate to last by half a cosine wave (Loshchilov & Hutter 2017), then constant.
define("cosine", "rate steps last", function(o, step)
  return wave(o.rate, o.last or 0, step / o.steps)
end)

-- rate, which may be another schedule, times a factor that grows from `start` to 1.
define("warm_up", "rate steps start", function(o, step)
  local start = o.start or 0
  return o.rate * (start + (1 - start) * Minimum(step / o.steps, 1))
end)

-- Smith & Topin 2019: from rate / div_factor up to rate, in the fraction pct_start of the steps,
-- then down to the first rate / final_div_factor; both by a cosine.
define("one_cycle", "rate steps pct_start div_factor final_div_factor", function(o, step)
  tf.within_bounds("schedule.one_cycle: pct_start", o.pct_start, 0, 1)
  local first, top = o.rate / (o.div_factor or 25), (o.pct_start or 0.3) * o.steps - 1
  local known = type(top) == "number" -- else a tensor
  local up = step * 0 + o.rate
  if not known or top > 0 then up = wave(first, o.rate, step / top) end
  if known and top >= o.steps - 1 then return up end -- there is no decrease
  local down = wave(o.rate, first / (o.final_div_factor or 1e4), (step - top) / (o.steps - 1 - top))
  return Select(Less(step, top), up, down)
end)
