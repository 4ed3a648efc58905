-- SPDX-License-Identifier: Apache-2.0
-- Decisions and loops at run time, lowered to Switch, Merge and frames. Tensors from outside are
-- brought into a function's context when it uses them.
local tf = ...

-- One branch: returns f's results as tensors of the branch. An op becomes a token that it has run.
local function branch(pred, pivot, side, f, where)
  local context = tf.context{kind = "cond", pred = pred, branch = side, pivot = pivot}
  return tf.within(context, function()
    local results = table.pack(f())
    for i = 1, results.n do
      local r = results[i]
      if r == nil then tf.fail("%s: result %d of a branch is nil", where, i) end
      if tf.is_tensor(r) and r.n_outputs == 0 then
        r = Identity(pivot, {control = r})
      elseif tf.is_tensor(r) then
        r = tf.route(r)
      else
        r = Const(r)
      end
      results[i] = r
    end
    return context, results
  end)
end

local function check_results(where, yes, no)
  if yes.n ~= no.n then
    tf.fail("%s: one branch returns %d values, the other %d", where, yes.n, no.n)
  end
  if yes.n == 0 then tf.fail("%s: the branches must return something", where) end
  for i = 1, yes.n do
    if yes[i].dtype ~= no[i].dtype then
      tf.fail("%s: result %d is %s in one branch, %s in the other", where, i, yes[i].dtype,
              no[i].dtype)
    end
  end
end

-- cond(pred, f, g): f() if pred is true, else g(). Only nodes made inside of f and g are
-- conditional. Each returns as many values of the same types: tensors, numbers, or ops.
function cond(pred, f, g, o)
  o = tf.options("cond", o, "name")
  pred = tf.tensor("cond: pred", pred, bool)
  if pred.dtype ~= bool then tf.fail("cond: pred must be bool, not %s", tostring(pred)) end
  if type(f) ~= "function" or type(g) ~= "function" then
    tf.fail("cond takes a tensor and two functions")
  end
  return scope(o.name or "cond", function()
    local no_side, yes_side = Switch(pred, pred)
    local yes_pivot = Identity(yes_side, {name = "switch_t"})
    local no_pivot = Identity(no_side, {name = "switch_f"})
    local chosen = Identity(pred, {name = "pred_id"})
    local _, yes = branch(chosen, yes_pivot, 1, f, "cond")
    local _, no = branch(chosen, no_pivot, 0, g, "cond")
    check_results("cond", yes, no)
    local out = {}
    for i = 1, yes.n do
      out[i] = tf.gate(tf.current(), "Merge", {no[i], yes[i]})
    end
    return table.unpack(out, 1, yes.n)
  end)
end

local function text(shape)
  if not shape then return "?" end
  local dims = {}
  for i, d in ipairs(shape) do dims[i] = d < 0 and "?" or tostring(d) end
  return "[" .. table.concat(dims, ",") .. "]"
end

-- Returns whether shape a covers every value of shape b.
local function fits(a, b)
  if not a then return true end
  if not b or #a ~= #b then return false end
  for i = 1, #a do
    if a[i] >= 0 and a[i] ~= b[i] then return false end
  end
  return true
end

local function check_next(i, first, next)
  if first.dtype ~= next.dtype then
    tf.fail("while_loop: variable %d starts as %s, but the body makes it %s", i, first.dtype,
            next.dtype)
  end
  if not fits(first.shape, next.shape) then
    tf.fail("while_loop: variable %d changes its shape from %s to %s; say what stays by " ..
            "shapes = {...}", i, text(first.shape), text(next.shape))
  end
end

-- The loop variables as tensors, with the shapes that hold in every iteration.
local function start_values(vars, shapes)
  local values = {}
  for i, v in ipairs(vars) do
    values[i] = tf.is_tensor(v) and v or Const(v)
    if shapes and shapes[i] then
      values[i] = PlaceholderWithDefault(values[i], {shape = shapes[i]})
    end
    values[i] = tf.current() == 0 and values[i] or Identity(values[i])
  end
  return values
end

local function call(f, values, where, n)
  local results = table.pack(f(table.unpack(values)))
  if results.n == 1 and type(results[1]) == "table" then
    results = table.pack(table.unpack(results[1]))
  end
  if results.n ~= n then
    tf.fail("while_loop: the %s returns %d values, not %d", where, results.n, n)
  end
  return results
end

-- Runs the body; returns its results as tensors of the loop.
local function run_body(context, body, merges, heads, values)
  local results = call(body, heads, "body", #heads)
  for i, v in ipairs(values) do
    local r = results[i]
    r = tf.route(tf.is_tensor(r) and r or Const(r, {dtype = v.dtype}))
    check_next(i, v, r)
    -- A value from outside exists even when the loop is over; the next value must not.
    r = Identity(r, {control = heads[1]})
    tf.close(merges[i], 1, (tf.gate(context, "NextIteration", {r})))
  end
end

-- while_loop(condition, body, vars): as long as condition(...) is true, body(...) replaces the loop
-- variables; returns them. Options: shapes (the parts of shapes that stay, by position),
-- parallel_iterations, back_prop = false (no gradient through the loop), name.
function while_loop(condition, body, vars, o)
  o = tf.options("while_loop", o, "name parallel_iterations back_prop? shapes")
  if type(condition) ~= "function" or type(body) ~= "function" or type(vars) ~= "table" or
     #vars == 0 then
    tf.fail("while_loop takes two functions and a list of loop variables")
  end
  local parallel = tf.number("while_loop: parallel_iterations", o.parallel_iterations or 10)
  return scope(o.name or "while", function()
    local values = start_values(vars, o.shapes)
    local outside = tf.current()
    local frame = tf.scope_current()
    local context = tf.context{kind = "loop", frame = frame, parallel_iterations = parallel}
    local merges, exits = {}, {}
    for i, v in ipairs(values) do
      local enter = tf.gate(context, "Enter", {v}, {frame_name = frame, is_constant = false,
                                                    parallel_iterations = parallel})
      if i == 1 then tf.pivot(context, enter, enter) end
      merges[i] = tf.within(context, tf.gate, context, "Merge", {enter, false})
    end
    tf.pivot(context, merges[1])
    tf.within(context, function()
      local go = call(condition, merges, "condition", 1)[1]
      if not tf.is_tensor(go) then go = Const(go) end
      if go.dtype ~= bool or (go.rank or 0) ~= 0 then
        tf.fail("while_loop: the condition must be a scalar bool, not %s", tostring(go))
      end
      local more = tf.gate(context, "LoopCond", {tf.route(go)})
      local heads = {}
      for i, merge in ipairs(merges) do
        local done, on = tf.gate(context, "Switch", {merge, more})
        exits[i] = tf.gate(outside, "Exit", {done})
        heads[i] = tf.gate(context, "Identity", {on})
      end
      tf.pivot(context, heads[1])
      run_body(context, body, merges, heads, values)
    end)
    if o.back_prop == false then
      for i, exit in ipairs(exits) do exits[i] = StopGradient(exit) end
    end
    return table.unpack(exits)
  end)
end
