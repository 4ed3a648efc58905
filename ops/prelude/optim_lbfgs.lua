-- SPDX-License-Identifier: Apache-2.0
-- L-BFGS as a graph (Nocedal 1980; the two-loop recursion of Nocedal & Wright, algorithm 7.4). Past
-- steps and changes of gradients are slots beside each variable, so each shard has those of its own
-- variables, and only dot products, which are scalars, are exchanged (Dean et al. 2012).
local tf = ...

local function total(x) return Sum(Reshape(x, {-1}), {0}) end

-- Dot products over all variables: each is computed where its variable is, the sum at the first.
local function dot_of(each, ws)
  return function(a, b)
    local parts = each(function(i) return total(a[i] * b[i]) end)
    return colocate(ws[1], function() return AddN(parts) end)
  end
end

-- The history: the m newest steps and changes, newest first, and one over their products.
local function history_of(each, ws, m)
  local kept = {steps = {}, changes = {}}
  for k = 1, m do
    kept.steps[k] = each(function(i) return slot(ws[i], "lbfgs/step" .. k, 0) end)
    kept.changes[k] = each(function(i) return slot(ws[i], "lbfgs/change" .. k, 0) end)
  end
  kept.inverses = slot(ws[1], "lbfgs/inverses", 0, {shape = {m}})
  return kept
end

-- The list with a new first item if `take` (a bool tensor); the oldest is dropped.
local function shifted(each, take, list, newest)
  local new = {}
  for k = 1, #list do
    local before = k == 1 and newest or list[k - 1]
    new[k] = each(function(i) return Select(take, before[i], list[k][i]) end)
  end
  return new
end

-- Makes an op that assigns the list, each item once the next older one was computed from it.
local function keep(each, list, new)
  local all = {}
  for k = 1, #list do
    local last = each(function(i)
      return control(new[k + 1] and {new[k + 1][i]} or {}, function()
        return Assign(list[k][i], new[k][i])
      end)
    end)
    for _, op in ipairs(last) do all[#all + 1] = op end
  end
  return group(all)
end

-- -H g, H the inverse Hessian from the history, whose first estimate is `scale` times the identity.
local function direction(each, dot, kept, scale, gs)
  local m, weights = #kept.steps, {}
  local q = each(function(i) return -gs[i] end)
  for k = 1, m do
    weights[k] = kept.inverse(k) * dot(kept.steps[k], q)
    q = each(function(i) return q[i] - weights[k] * kept.changes[k][i] end)
  end
  q = each(function(i) return q[i] * scale end)
  for k = m, 1, -1 do
    local weight = weights[k] - kept.inverse(k) * dot(kept.changes[k], q)
    q = each(function(i) return q[i] + weight * kept.steps[k][i] end)
  end
  return q
end

-- One over the products of the stored pairs; zero for pairs that do not exist yet.
local function inverses_of(kept, take, product)
  local m = #kept.steps
  local shifted_by_one = ExpandDims(1 / product, 0)
  if m > 1 then
    shifted_by_one = Concat(0, {shifted_by_one, Slice(kept.inverses, {0}, {m - 1})})
  end
  return Select(take, shifted_by_one, kept.inverses)
end

local function same_type(ws)
  for _, w in ipairs(ws) do
    if w.dtype ~= ws[1].dtype then
      tf.fail("optim.lbfgs: '%s' is %s and '%s' is %s: its variables must be of one type",
              ws[1].name, ws[1].dtype, w.name, w.dtype)
    end
  end
  return ws[1].dtype
end

-- optim.lbfgs{rate, history}: w -= rate H g. There is no line search: use whole batches, or large
-- ones. A pair along which the gradient does not grow is not stored, so that H stays positive; the
-- first step is no longer than rate.
function optim.lbfgs(o)
  local p, _, given = tf.optimizer_parameters("lbfgs", o, {{"rate", 1}}, "history")
  local m = given.history or 10
  tf.number("optim.lbfgs: history", m)
  return {update_all = function(ws, gs, each)
    local dtype, dot = same_type(ws), dot_of(each, ws)
    local rate, kept = p.rate(dtype), history_of(each, ws, m)
    local last_gs = each(function(i) return slot(ws[i], "lbfgs/gradient", 0) end)
    local last_step = each(function(i) return slot(ws[i], "lbfgs/last", 0) end)
    local scale = slot(ws[1], "lbfgs/scale", 0, {shape = {}}) -- zero: no step was made

    local change = each(function(i) return gs[i] - last_gs[i] end)
    local product, square = dot(change, last_step), dot(change, change)
    local take = Greater(product, 1e-10 * Sqrt(square * dot(last_step, last_step)))
    local inverses = inverses_of(kept, take, product)
    local new = {
      steps = shifted(each, take, kept.steps, last_step),
      changes = shifted(each, take, kept.changes, change),
      inverse = function(k) return Squeeze(Slice(inverses, {k - 1}, {1})) end,
    }
    local new_scale = Select(take, product / square, Maximum(scale, 1))
    local to = direction(each, dot, new, new_scale, gs)
    local size = AddN(each(function(i) return total(Abs(gs[i])) end))
    local first = Minimum(Const(1, {dtype = dtype}), 1 / size)
    local factor = rate * Select(Equal(scale, 0), first, OnesLike(first))
    local step = each(function(i) return factor * to[i] end)

    local scalars = group{Assign(kept.inverses, inverses), Assign(scale, new_scale)}
    local steps, changes = keep(each, kept.steps, new.steps), keep(each, kept.changes, new.changes)
    return each(function(i)
      local own = {control({new.steps[1][i]}, function() return Assign(last_step[i], step[i]) end),
                   control({change[i]}, function() return Assign(last_gs[i], gs[i]) end),
                   AssignAdd(ws[i], step[i])}
      if i == 1 then own = {scalars, steps, changes, table.unpack(own)} end
      return group(own)
    end)
  end}
end
