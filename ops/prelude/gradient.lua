-- SPDX-License-Identifier: Apache-2.0
-- Gradients, and minimize: gradients, clipping, updates, and the check that the loss is a number.
local tf = ...
local marked = updates

-- gradients(y, x): dy/dx, summed over the elements of y (and over several ys); a list for a list of
-- xs. Row-wise gradients (of Gather) are made dense. A missing path is an error that names the
-- node, unless allow_missing: then the gradient is false.
function gradients(ys, xs, o)
  o = tf.options("gradients", o, "grad_ys allow_missing? colocate?")
  local list = tf.gradients(ys, xs, o.grad_ys,
                            {allow_missing = o.allow_missing, colocate = o.colocate})
  if tf.is_tensor(xs) then return list[1] end
  return list
end

-- The gradient of the loss itself, marked as the place to scale losses (tf-opt --half fp16).
local function start(loss)
  return tf.outside(true, function()
    return Const(1, {dtype = loss.dtype, name = "/" .. tf.unique("gradients/Const"),
                     _loss = loss.name})
  end)
end

-- The existing pairs {variable, gradient}; an error if there are none.
local function trained(loss, variables)
  local found = tf.gradients(loss, variables, loss.rank == 0 and {start(loss)} or nil,
                             {allow_missing = true, rows = true})
  local ws, gs = {}, {}
  for i, g in ipairs(found) do
    if g then
      ws[#ws + 1] = variables[i]
      gs[#gs + 1] = g
    end
  end
  if #ws == 0 then tf.gradients(loss, variables) end -- reports where the path ends
  return ws, gs
end

local function is_rows(g) return type(g) == "table" end

-- A node that hands a gradient to the optimizer, by the variable's name: "hidden/W/gradient". It
-- can be fetched, and tf-replicate splits the graph there, so optimizers keep it. The role tells
-- which part of a row-wise gradient it is.
local function hand_over(w, g, role)
  local name = tf.unique("/" .. w.name .. "/gradient" .. (role and "/" .. role or ""))
  return Identity(g, {name = "/" .. name, _gradient = w.name, _gradient_role = role})
end

local function handed_over(ws, gs)
  local list = {}
  for i, g in ipairs(gs) do
    if is_rows(g) then
      list[i] = {indices = hand_over(ws[i], g.indices, "indices"),
                 values = hand_over(ws[i], g.values, "values")}
    else
      list[i] = hand_over(ws[i], g)
    end
  end
  return list
end

-- Sums equal rows, for rules that are not linear in the gradient.
function tf.unique_rows(g)
  local rows, index = Unique(g.indices)
  return {indices = rows, values = UnsortedSegmentSum(g.values, index, Size(rows))}
end

function tf.dense(g, w)
  if not is_rows(g) then return g end
  return UnsortedSegmentSum(g.values, g.indices, tf.dim("gradient", w, 1))
end

-- Refuses a field of an optimizer whose name is nearly that of a known one.
local function check_field(key, value)
  local known = {"update", "update_all", "rows", "finish"}
  for _, name in ipairs(known) do if key == name then return end end
  local hint = type(key) == "string" and type(value) == "function" and tf.nearest(key, known) or ""
  if hint ~= "" then tf.fail("minimize: the optimizer has no use for '%s'%s", key, hint) end
end

-- Checks the optimizer: a function from variable and gradient to an update, or a table with
-- `update` (that function) or `update_all` (for all variables together), and maybe `rows` (for
-- row-wise gradients) and `finish` (after all updates).
local function check_optimizer(o)
  tf.not_called("minimize", "an optimizer", o, optim, "optim.", "{}")
  if type(o) == "function" then return {update = o} end
  if type(o) == "table" and type(o.update or o.update_all) == "function" then
    for key, value in pairs(o) do check_field(key, value) end
    return o
  end
  tf.fail("minimize: the optimizer is %s; it must be one of optim, as optim.adam{}, or a " ..
          "function of variable and gradient", type(o) == "string" and tf.show(o) or tf.kind(o))
end

local function apply(optimizer, w, g)
  if is_rows(g) and optimizer.rows then return optimizer.rows(w, g) end
  return optimizer.update(w, tf.dense(g, w))
end

-- With a number also checks the norm: if it is not finite, all variables would become NaN.
local function clipped(clip_by, ws, gs)
  if not clip_by then return gs end
  local dense = {}
  for i, g in ipairs(gs) do dense[i] = tf.dense(g, ws[i]) end
  if type(clip_by) == "function" then
    local list = clip_by(dense)
    if type(list) ~= "table" or #list ~= #ws then
      tf.fail("minimize: clip must return as many gradients as it gets, %d", #ws)
    end
    return list
  end
  local list, norm = clip.by_global_norm(dense, clip_by)
  return list, CheckNumerics(norm, {message = "global norm of the gradients"})
end

-- Calls f(i) for each variable on its device, in its scope of the updates; lists the results.
local function each_of(ws)
  return function(f)
    local list = {}
    for i, w in ipairs(ws) do
      scope("/" .. tf.training_scope .. "/" .. w.name, function()
        colocate(w, function() list[i] = f(i) end)
      end)
    end
    return list
  end
end

local function updates_of(optimizer, ws, gs, checks)
  local each, updates = each_of(ws), nil
  tf.after(checks, function()
    if optimizer.update_all then
      updates = optimizer.update_all(ws, each(function(i) return tf.dense(gs[i], ws[i]) end), each)
    else
      updates = each(function(i) return apply(optimizer, ws[i], gs[i]) end)
    end
  end)
  for i = 1, #ws do
    if not tf.is_tensor(updates[i]) then
      tf.fail("minimize: the optimizer must return an op, not %s", tf.kind(updates[i]))
    end
  end
  return updates
end

-- minimize(loss, optimizer, {global_step =, clip =, variables =, name =}): makes an op that does a
-- step. clip: a bound of the gradients' global norm, or a function of the list of gradients.
function minimize(loss, optimizer, o)
  o = tf.options("minimize", o, "global_step clip variables name")
  if not tf.is_tensor(loss) then
    tf.fail("minimize: the loss is %s, not a tensor", tf.kind(loss))
  end
  if (loss.rank or 0) ~= 0 then
    tf.fail("minimize: the loss must be a scalar, not %s", tostring(loss))
  end
  if o.global_step and not (tf.is_tensor(o.global_step) and o.global_step.is_variable) then
    tf.fail("minimize: global_step is %s, not a variable", tf.show(o.global_step))
  end
  for _, w in ipairs(o.variables and tf.list(o.variables) or {}) do
    if not tf.is_tensor(w) then tf.fail("minimize: variables has %s, no tensor", tf.show(w)) end
  end
  optimizer = check_optimizer(optimizer)
  local variables = o.variables and tf.list(o.variables) or trainable()
  if #variables == 0 then tf.fail("minimize: there is no variable to train") end
  local name = tf.unique("/" .. loss.name:gsub(":", "_") .. "/check")
  local check = CheckNumerics(loss, {message = "loss", name = "/" .. name})
  local ws, gs = trained(loss, variables)
  gs = handed_over(ws, gs)
  tf.training_scope = tf.scope_unique("update")
  local norm
  gs, norm = scope("/" .. tf.training_scope, function() return clipped(o.clip, ws, gs) end)
  local updates = updates_of(optimizer, ws, gs, {check, norm})
  local last = {}
  for i, u in ipairs(updates) do last[i] = u end
  for _, u in ipairs(marked()) do last[#last + 1] = u end
  if optimizer.finish then
    scope("/" .. tf.training_scope, function()
      tf.after(updates, function() last[#last + 1] = optimizer.finish() end)
    end)
  end
  if o.global_step then
    control(updates, function() last[#last + 1] = AssignAdd(o.global_step, 1) end)
  end
  return NoOp{name = "/" .. tf.unique(o.name or "train"), control = last}
end
