-- SPDX-License-Identifier: Apache-2.0
-- Optimizers. Each is a function from parameters to an optimizer: `update(w, g)` makes the op that
-- changes w, `rows(w, g)` the same for a gradient of some rows (g.values, g.indices), if that
-- equals the dense update, `finish()` makes what comes after all updates. A plain function is an
-- `update`. A rule for all variables together has `update_all(ws, gs, each)` in place of `update`:
-- it returns their ops, and makes a variable's nodes within each(f), which returns a list of what
-- f(i) returns.
local tf = ...

optim = {}

-- Parameters that must be between 0 and this.
local most = {momentum = math.huge, epsilon = math.huge, beta1 = 1, beta2 = 1, rho = 1}

-- A parameter as a constant of the wanted type, "adam/rate", made once per type; or a tensor, such
-- as a schedule's, cast.
local function parameter(kind, where, name, value)
  if not tf.is_tensor(value) and type(value) ~= "number" then
    tf.fail("%s: %s must be a number or a tensor, not %s", where, name, tf.show(value))
  end
  if most[name] then tf.within_bounds("optim." .. kind .. ": " .. name, value, 0, most[name]) end
  local made = {}
  return function(dtype)
    if tf.is_tensor(value) then return tf.cast(value, dtype) end
    if not made[dtype] then
      made[dtype] = tf.outside(false, function()
        return Const(value, {dtype = dtype, name = "/" .. tf.unique("/" .. where .. "/" .. name)})
      end)
    end
    return made[dtype]
  end
end

-- The parameters of an optimizer: defaults is a list of {name, value}; `more` are other options.
local function parameters(kind, o, defaults, more)
  local known = more or ""
  for _, d in ipairs(defaults) do known = known .. " " .. d[1] end
  o = tf.options("optim." .. kind, o, (known:gsub("^ ", "")))
  local where, p = tf.scope_unique(kind), {}
  for _, d in ipairs(defaults) do
    local value = o[d[1]]
    if value == nil then value = d[2] end
    p[d[1]] = parameter(kind, where, d[1], value)
  end
  return p, where, o
end

tf.optimizer_parameters = parameters -- for optimizers in files of their own

-- w -= rate g
function optim.sgd(o)
  local p = parameters("sgd", o, {{"rate", 0.01}})
  return {
    update = function(w, g) return ApplyGradientDescent(w, p.rate(w.dtype), g) end,
    rows = function(w, g) return ScatterSub(w, g.indices, g.values * p.rate(w.dtype)) end,
  }
end

-- a = momentum a + g; w -= rate a; Nesterov's: w -= rate (g + momentum a)
function optim.momentum(o)
  local p, _, given = parameters("momentum", o, {{"rate", 0.01}, {"momentum", 0.9}}, "nesterov?")
  return {update = function(w, g)
    return ApplyMomentum(w, slot(w, "momentum", 0), p.rate(w.dtype), g, p.momentum(w.dtype),
                         {use_nesterov = given.nesterov})
  end}
end

-- a += g^2; w -= rate g / sqrt(a)
function optim.adagrad(o)
  local p, _, given = parameters("adagrad", o, {{"rate", 0.01}}, "initial")
  local function accumulator(w) return slot(w, "adagrad", given.initial or 0.1) end
  return {
    update = function(w, g) return ApplyAdagrad(w, accumulator(w), p.rate(w.dtype), g) end,
    rows = function(w, g)
      local a = accumulator(w)
      g = tf.unique_rows(g)
      local sum = Gather(a, g.indices) + Square(g.values)
      local per_root = ReluGrad(Rsqrt(sum), sum) -- 0 for a sum of 0; row by row, unlike Select
      return group{ScatterUpdate(a, g.indices, sum),
                   ScatterSub(w, g.indices, p.rate(w.dtype) * g.values * per_root)}
    end,
  }
end

-- Zeiler 2012
function optim.adadelta(o)
  local p = parameters("adadelta", o, {{"rate", 0.001}, {"rho", 0.95}, {"epsilon", 1e-8}})
  return {update = function(w, g)
    local t = w.dtype
    return ApplyAdadelta(w, slot(w, "adadelta/accum", 0), slot(w, "adadelta/update", 0),
                         p.rate(t), p.rho(t), p.epsilon(t), g)
  end}
end

-- Tieleman & Hinton 2012; the mean square starts at one
function optim.rmsprop(o)
  local p = parameters("rmsprop", o,
                       {{"rate", 0.001}, {"rho", 0.9}, {"momentum", 0}, {"epsilon", 1e-10}})
  return {update = function(w, g)
    local t = w.dtype
    return ApplyRMSProp(w, slot(w, "rmsprop/ms", 1), slot(w, "rmsprop/momentum", 0), p.rate(t),
                        p.rho(t), p.momentum(t), p.epsilon(t), g)
  end}
end

-- Kingma & Ba 2014; epsilon is not scaled by the bias correction
function optim.adam(o)
  local p, where = parameters("adam", o, {{"rate", 0.001}, {"beta1", 0.9}, {"beta2", 0.999},
                                          {"epsilon", 1e-8}})
  local powers = {} -- beta1^t and beta2^t of the types in use
  local function power(name, beta, dtype)
    return variable{name = "/" .. where .. "/" .. name, shape = {}, dtype = dtype, init = beta,
                    trainable = false}
  end
  local function powers_of(dtype)
    if not powers[dtype] then
      powers[dtype] = tf.outside(false, function()
        return {power("beta1_power", p.beta1(dtype), dtype),
                power("beta2_power", p.beta2(dtype), dtype)}
      end)
    end
    return powers[dtype][1], powers[dtype][2]
  end
  return {
    update = function(w, g)
      local t = w.dtype
      local power1, power2 = powers_of(t)
      return ApplyAdam(w, slot(w, "adam/m", 0), slot(w, "adam/v", 0), power1, power2, p.rate(t),
                       p.beta1(t), p.beta2(t), p.epsilon(t), g)
    end,
    finish = function()
      local last = {}
      for dtype, both in pairs(powers) do
        last[#last + 1] = Assign(both[1], both[1] * p.beta1(dtype))
        last[#last + 1] = Assign(both[2], both[2] * p.beta2(dtype))
      end
      return group(last)
    end,
  }
end

-- McMahan et al. 2013: follows the regularized leader; l1 makes weights exactly zero
function optim.ftrl(o)
  local p, _, given = parameters("ftrl", o, {{"rate", 0.001}, {"l1", 0}, {"l2", 0},
                                             {"power", -0.5}}, "initial")
  return {update = function(w, g)
    local t = w.dtype
    return ApplyFtrl(w, slot(w, "ftrl/accum", given.initial or 0.1), slot(w, "ftrl/linear", 0), g,
                     p.rate(t), p.l1(t), p.l2(t), p.power(t))
  end}
end
