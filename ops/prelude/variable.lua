-- SPDX-License-Identifier: Apache-2.0
-- Variables: a value that outlives the step, with its initial value and its read.
local tf = ...

-- While a shared function runs: its variables, in order of creation.
local sharing

-- Returns whether x is a number, or a list of them: float32 unless the script gives a type.
local function is_numbers(x)
  if type(x) == "table" then return is_numbers(x[1]) end
  return type(x) == "number"
end

local function initial_value(o, where)
  local init = o.init == nil and 0 or o.init
  if type(init) == "function" then
    if not tf.known(o.shape) then tf.fail("%s: shape must be given and known", where) end
    local value = init(o.shape, o.dtype or float32)
    if not tf.is_tensor(value) then
      tf.fail("%s: init returns %s, not a tensor", where, tf.kind(value))
    end
    return value
  end
  if type(init) == "number" and o.shape and #o.shape > 0 then
    return Fill(Const(o.shape, {dtype = int32}), Const(init, {dtype = o.dtype or float32}))
  end
  return tf.tensor(where, init, o.dtype or (is_numbers(init) and float32 or nil))
end

-- Checks options here, as later errors would name nodes that the script does not know.
local function check(o)
  local where = "variable '" .. tostring(o.name or "Variable") .. "'"
  if o.name ~= nil and (type(o.name) ~= "string" or not o.name:find("^/?[%w.][%w_./-]*$")) then
    tf.fail("variable: %s is not a valid name", tf.show(o.name))
  end
  if o.shape ~= nil and type(o.shape) ~= "table" then
    tf.fail("%s: shape must be a list, as {3, 4}, not %s", where, tf.show(o.shape))
  end
  if type(o.init) == "string" then
    tf.fail("%s: init must be an initializer, a number or a list, not %s", where, tf.show(o.init))
  end
  for _, d in ipairs(o.shape or {}) do tf.number(where .. ": a dimension", d, 0) end
  for _, name in ipairs{"uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal",
                        "he_uniform", "he_normal", "lecun_uniform", "lecun_normal", "orthogonal",
                        "variance_scaling", "constant", "xavier"} do
    tf.not_called(where, "an initializer", o.init, {[name] = init[name]}, "init.", "(...)")
  end
end

local function make(o)
  check(o)
  local name = tf.unique(o.name or "Variable")
  local first = tf.next_id()
  local initial = tf.outside(false, function()
    return scope("/" .. name .. "/initial", initial_value, o, "variable '" .. name .. "'")
  end)
  local shape = o.shape or initial.shape
  if tf.known(initial.shape) and table.concat(initial.shape, ",") ~= table.concat(shape, ",") then
    tf.fail("variable '%s': init has the shape {%s}, not {%s}", name,
            table.concat(initial.shape, ", "), table.concat(shape, ", "))
  end
  if not tf.known(shape) then tf.fail("variable '%s': its shape must be known", name) end
  local trainable = nil -- only untrained variables are marked
  if o.trainable == false then trainable = false end
  local v = Variable{shape = shape, dtype = initial.dtype, name = "/" .. name,
                     _trainable = trainable, _partitions = o.partitions,
                     _partition_axis = o.partition_axis}
  local assign = Assign(v, initial, {name = "/" .. name .. "/Assign"})
  local read = colocate(v, function() return Identity(v, {name = "/" .. name .. "/read"}) end)
  tf.variable(v, read, assign, initial, first, o.name ~= nil)
  return v
end

local function reuse(o)
  local v = sharing.list[sharing.next]
  sharing.next = sharing.next + 1
  if not v then tf.fail("a shared function makes more variables than when it was first called") end
  for i, d in ipairs(o.shape or {}) do
    if v.shape[i] ~= d then
      tf.fail("a shared function asks for another shape of '%s' than at first", v.name)
    end
  end
  return v
end

-- variable{shape =, dtype =, init =, name =, trainable =, partitions =, partition_axis =}. init: a
-- number, a list, a tensor, or a function of shape and dtype (the initializers of `init`); 0 if
-- there is none. partitions: number of slices that tf-place spreads over devices, along rows or
-- along partition_axis (from 0 on).
function variable(o)
  o = tf.options("variable", o, "shape dtype init name trainable? partitions partition_axis")
  if o.partitions then tf.number("variable: partitions", o.partitions) end
  if o.partition_axis then tf.number("variable: partition_axis", o.partition_axis, 0) end
  if sharing and sharing.filled then return reuse(o) end
  local v = tf.outside(true, function() return make(o) end)
  if sharing then sharing.list[#sharing.list + 1] = v end
  return v
end

-- A variable that belongs to w: of its shape unless another is given, on its device, not trained.
-- Its name is appended to w's: "hidden/W/momentum".
function slot(w, name, init, o)
  o = tf.options("slot", o, "shape dtype")
  if not tf.is_tensor(w) or not w.is_variable then
    tf.fail("slot: %s is no variable", tostring(w))
  end
  return colocate(w, function()
    return variable{name = "/" .. w.name .. "/" .. name, shape = o.shape or w.shape,
                    dtype = o.dtype or w.dtype, init = init or 0, trainable = false}
  end)
end

-- share(f): a function like f whose every call uses the variables that the first one made. So a net
-- can be built twice, for example with and without dropout.
function share(f)
  local record = {list = {}, filled = false}
  return function(...)
    local previous = sharing
    record.next = 1
    sharing = record
    local results = table.pack(pcall(f, ...))
    sharing = previous
    record.filled = true
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
  end
end

-- A counter of steps, for schedules: minimize(loss, o, {global_step = global_step()}) counts.
function global_step()
  return variable{name = "global_step", shape = {}, dtype = int64, init = 0, trainable = false}
end
