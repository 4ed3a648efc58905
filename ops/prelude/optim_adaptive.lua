-- SPDX-License-Identifier: Apache-2.0
-- Optimizers similar to Adam. All take weight_decay, decoupled from the gradient (Loshchilov &
-- Hutter 2019), for variables whose names match the Lua pattern `decayed`.
local tf = ...

-- Returns the step's number, from 1, as a function of a type; and an op that counts.
local function counter(where)
  local made = {}
  return function(dtype)
    made[dtype] = made[dtype] or tf.outside(false, function()
      return variable{name = "/" .. where .. "/steps", shape = {}, dtype = dtype, init = 1,
                      trainable = false}
    end)
    return made[dtype]
  end, function()
    local list = {}
    for _, steps in pairs(made) do list[#list + 1] = AssignAdd(steps, 1) end
    return group(list)
  end
end

-- step(w, g, p, decay) returns what to subtract from w, or nil, and a list of ops; p are the
-- parameters and p.t, the step's number; decay is weight_decay w, or false. For w of 16 bits all of
-- it is float32.
local function rule(kind, o, defaults, step)
  local of, where, given = tf.optimizer_parameters(kind, o, defaults, "decayed")
  local pattern, found = given.decayed or "", false
  if type(pattern) ~= "string" then
    tf.fail("optim.%s: decayed must be a pattern of names, not %s", kind, tf.show(pattern))
  end
  local steps, count = counter(where)
  return {
    update = function(w, g)
      local dtype, hit = tf.count_type(w.dtype), w.name:find(pattern) ~= nil
      local p = {t = steps(dtype) + 0}
      for name, value in pairs(of) do p[name] = value(dtype) end
      found = found or hit
      local decays = hit and (given.weight_decay or kind == "adamw" and 1 or 0) ~= 0
      local change, ops = step(w, tf.wide(g), p, decays and p.weight_decay * tf.wide(w))
      if change then ops[#ops + 1] = AssignSub(w, tf.cast(change, w.dtype)) end
      return group(ops)
    end,
    finish = function()
      if not found then
        tf.fail("optim.%s: decayed, '%s', finds the name of no variable", kind, pattern)
      end
      return count()
    end,
  }
end

local function plus(u, decay) return decay and u + decay or u end

-- u / d, but 0 where d is
local function over(u, d) return u * ReluGrad(Reciprocal(d), d) end

-- beta s + (1 - beta) x, where s is a slot, and the op that stores it
local function average(w, name, beta, x)
  local s = slot(w, name, 0, {dtype = x.dtype})
  local new = beta * s + (1 - beta) * x
  return new, Assign(s, new)
end

-- Averages of g and of its square, each one's sum of weights so far, and the ops storing them.
local function moments(kind, w, g, p)
  local m, keep_m = average(w, kind .. "/m", p.beta1, g)
  local v, keep_v = average(w, kind .. "/v", p.beta2, Square(g))
  return m, v, 1 - Pow(p.beta1, p.t), 1 - Pow(p.beta2, p.t), {keep_m, keep_v}
end

local function direction(kind, w, g, p)
  local m, v, c1, c2, ops = moments(kind, w, g, p)
  return over(m / c1, Sqrt(v / c2) + p.epsilon), ops
end

local function betas(rate, epsilon, decay)
  return {{"rate", rate}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", epsilon},
          {"weight_decay", decay}}
end

-- By ApplyAdam, which has one type, and adds epsilon before bias correction.
function optim.adamw(o)
  return rule("adamw", o, betas(0.001, 1e-8, 0.01), function(w, g, p, decay)
    if g.dtype ~= w.dtype then
      local u, ops = direction("adamw", w, g, p)
      return p.rate * plus(u, decay), ops
    end
    local power1, power2 = Pow(p.beta1, p.t), Pow(p.beta2, p.t)
    return nil, control(decay and {AssignSub(w, p.rate * decay)} or {}, function()
      return {ApplyAdam(w, slot(w, "adamw/m", 0), slot(w, "adamw/v", 0), power1, power2, p.rate,
                        p.beta1, p.beta2, p.epsilon * Sqrt(1 - power2), g)}
    end)
  end)
end

-- Dozat 2016: Adam with Nesterov's momentum mu, which grows to beta1.
function optim.nadam(o)
  local defaults = betas(0.002, 1e-8, 0)
  defaults[#defaults + 1] = {"momentum_decay", 0.004}
  return rule("nadam", o, defaults, function(w, g, p, decay)
    local m, v, _, c2, ops = moments("nadam", w, g, p)
    local function mu_at(t) return p.beta1 * (1 - 0.5 * Pow(0.96, t * p.momentum_decay)) end
    local product = slot(w, "nadam/mu", 1, {shape = {}, dtype = g.dtype})
    local mu, next_mu = mu_at(p.t), mu_at(p.t + 1)
    local new = product * mu
    local u = g * ((1 - mu) / (1 - new)) + m * (next_mu / (1 - new * next_mu))
    ops[3] = Assign(product, new)
    return p.rate * plus(over(u, Sqrt(v / c2) + p.epsilon), decay), ops
  end)
end

-- Liu et al. 2019: without v until its variance is bounded.
function optim.radam(o)
  return rule("radam", o, betas(0.001, 1e-8, 0), function(w, g, p, decay)
    local m, v, c1, c2, ops = moments("radam", w, g, p)
    local last = 2 / (1 - p.beta2) - 1
    local length = last - 2 * p.t * (1 - c2) / c2
    local known = Greater(length, 5)
    local long = Select(known, length, last) -- avoids roots of negative numbers
    local rectified = Sqrt((long - 4) * (long - 2) * last / ((last - 4) * (last - 2) * long))
    local factor = over(rectified * Sqrt(c2), Sqrt(v) + p.epsilon)
    return p.rate * plus(m / c1 * Select(known, factor, OnesLike(v)), decay), ops
  end)
end

-- The root of `op`, Sum or Mean, of the squares, which could overflow 16 bits.
local function root(op, x) return Sqrt(tf.reduce(op, Square(tf.wide(x)))) end

-- You et al. 2020: a step of Adam scaled to the norm of w, times the rate.
function optim.lamb(o)
  return rule("lamb", o, betas(0.001, 1e-6, 0), function(w, g, p, decay)
    local u, ops = direction("lamb", w, g, p)
    u = plus(u, decay)
    local size, of_step = root(Sum, w), root(Sum, u)
    local ratio = Select(Greater(size * of_step, 0), size / of_step, OnesLike(size))
    return p.rate * ratio * u, ops
  end)
end

-- Chen et al. 2023
function optim.lion(o)
  local defaults = {{"rate", 1e-4}, {"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0}}
  return rule("lion", o, defaults, function(w, g, p, decay)
    local m = slot(w, "lion/m", 0, {dtype = g.dtype})
    local u = Sign(p.beta1 * m + (1 - p.beta1) * g)
    return p.rate * plus(u, decay), {Assign(m, p.beta2 * m + (1 - p.beta2) * g)}
  end)
end

-- Shazeer & Stern 2018: for a matrix, averages of rows and columns in place of those of elements.
-- Steps are relative to w's root mean square, at least `least`, and are clipped at `bound`.
function optim.adafactor(o)
  local defaults = {{"rate", 0.01}, {"decay", 0.8}, {"least", 1e-3}, {"bound", 1},
                    {"weight_decay", 0}}
  return rule("adafactor", o, defaults, function(w, g, p, decay)
    local tiny = ({[float64] = 2 ^ -52, [float32] = 2 ^ -23, [float16] = 2 ^ -10})[w.dtype] or
                 2 ^ -7
    local square, beta, rank, ops, v = Square(g), 1 - Pow(p.t, -p.decay), w.rank, {}, nil
    local function mean_over(name, axis)
      local shape = {table.unpack(w.shape)}
      shape[axis + 1] = 1
      local s = slot(w, "adafactor/" .. name, 0, {shape = shape, dtype = g.dtype})
      local new = beta * s + (1 - beta) * Mean(square, {axis}, {keep_dims = true})
      ops[#ops + 1] = Assign(s, new)
      return new
    end
    if rank < 2 then
      v, ops[1] = average(w, "adafactor/v", beta, square)
    else
      local rows, columns = mean_over("rows", rank - 1), mean_over("columns", rank - 2)
      v = rows * columns / Maximum(Mean(rows, {rank - 2}, {keep_dims = true}), tiny)
    end
    local u = g * Rsqrt(Maximum(v, tiny ^ 2))
    local length = Maximum(root(Mean, w), p.least) * Minimum(p.rate, Rsqrt(p.t))
    local change = u * (length / Maximum(1, root(Mean, u) / p.bound))
    return decay and change + p.rate * decay or change, ops
  end)
end
