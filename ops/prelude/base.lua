-- SPDX-License-Identifier: Apache-2.0
-- The base that the rest of the prelude uses. `tf` holds internals that scripts do not see.
local tf = ...

nn = {}

-- Keys in the same order in every run: a graph must not depend on addresses of Lua's objects, nor
-- on the seed of its hashes. Tensors come in the order of their creation.
local raw_next, rank = next, {boolean = 1, number = 2, string = 3, userdata = 4}
local order = {function(a, b) return not a and b end,
               function(a, b) return a < b end,
               function(a, b) return a < b end,
               function(a, b) return tf.number_of(a) < tf.number_of(b) end}
local function before(a, b)
  local ra, rb = rank[type(a)] or 5, rank[type(b)] or 5
  if ra ~= rb then return ra < rb end
  if ra == 5 then
    tf.fail("keys that are tables or functions have no order: go through a list of them instead")
  end
  return order[ra](a, b)
end

local function sorted_keys(t)
  local keys, n = {}, 0
  for key in raw_next, t do n = n + 1; keys[n] = key end
  if n > 1 then table.sort(keys, before) end
  return keys
end

-- The keys of tables that next() is iterating over, with their positions.
local walks = setmetatable({}, {__mode = "k"})

function next(t, key)
  if raw_next(t) == nil then return nil end
  local walk = walks[t]
  if key == nil or not walk or not walk.places[key] then
    walk = {keys = sorted_keys(t), places = {}}
    for i, k in ipairs(walk.keys) do walk.places[k] = i end
    walks[t] = walk
  end
  local i = 0
  if key ~= nil then
    i = walk.places[key] or tf.fail("next: the table has no key '%s'", key)
  end
  repeat i = i + 1 until walk.keys[i] == nil or rawget(t, walk.keys[i]) ~= nil
  if walk.keys[i] ~= nil then return walk.keys[i], rawget(t, walk.keys[i]) end
end

function pairs(t)
  if rawequal(t, entry) then t = tf.entries end
  local keys, i = sorted_keys(t), 0
  return function()
    repeat i = i + 1 until keys[i] == nil or t[keys[i]] ~= nil
    if keys[i] ~= nil then return keys[i], t[keys[i]] end
  end
end

-- Numbers of parameters of C functions.
local parameters = {tensor = 1, trainable = 0, updates = 0, variables = 0}

function tf.is_tensor(x) return type(x) == "userdata" end

-- Describes a value's kind, for messages.
function tf.kind(x)
  return x == nil and "nil" or "a " .. (tf.is_tensor(x) and "tensor" or type(x))
end

function tf.show(x)
  if type(x) == "table" or type(x) == "function" then return tf.kind(x) end
  return type(x) == "string" and "'" .. x .. "'" or tostring(x)
end

-- The kinds of arguments of the prelude's functions, by parameter name.
local takes = {
  nn = {x = "floating", q = "floating", anchor = "floating", prediction = "floating",
        logits = "tensor", labels = "tensor", target = "value", ids = "index", layers = "list",
        weight = "number", f = "function"},
  init = {shape = "list"},
  clip = {x = "floating", list = "list"},
  [""] = {w = "tensor", name = "text", f = "function", list = "list"},
}
-- Global functions that are checked, too; scope and the like check their own arguments.
local checked = {slot = true, share = true, tuple = true}
-- Functions whose x may have any type.
local any_type = {["nn.flatten"] = true, ["nn.sequential"] = true, ["nn.residual"] = true,
                  ["nn.max_pool"] = true, ["nn.max_pool1d"] = true,
                  ["nn.global_max_pool"] = true, ["clip.by_value"] = true}
local fits = {
  tensor = tf.is_tensor,
  floating = tf.is_tensor, -- its type is checked, too
  index = tf.is_tensor,    -- likewise
  value = function(x) return ({userdata = true, number = true, table = true})[type(x)] end,
  list = function(x) return type(x) == "table" end,
  text = function(x) return type(x) == "string" end,
  ["function"] = function(x) return type(x) == "function" end,
  number = function(x) return type(x) == "number" or tf.is_tensor(x) end,
  initial = function(x) return type(x) ~= "string" and type(x) ~= "boolean" end,
  layout = function(x) return x == "NHWC" or x == "NCHW" end,
  padding = function(x) return x == "SAME" or x == "VALID" end,
}
local wanted = {tensor = "a tensor", floating = "a tensor", index = "a tensor",
                value = "a tensor or a number",
                list = "a list", text = "text", ["function"] = "a function",
                number = "a number or a tensor", layout = "NHWC or NCHW", padding = "SAME or VALID",
                initial = "an initializer, a number or a list"}

-- The kinds of options of the libraries' functions, by name, unless a function checks further.
local options = {}
for kind, names in pairs{
  text = "name",
  layout = "layout",
  padding = "padding",
  value = "weights lengths mask",
  initial = "init bias_init",
  number = "alpha beta bias decay delta div_factor epsilon final_div_factor gain initial keep " ..
           "last margin max mean min pct_start positive power radius rate scale start stddev " ..
           "threshold",
} do
  for name in names:gmatch("[%w_]+") do options[name] = kind end
end

-- Returns the kind that each argument must have, by position.
local function kinds_of(name, names)
  local library, kinds = name:match("^(%w+)%.") or "", {}
  if library == "" and not checked[name] then return kinds end
  for i, parameter in ipairs(names or {}) do
    local kind = (takes[library] or {})[parameter]
    kinds[i] = kind == "floating" and any_type[name] and "tensor" or kind
  end
  return kinds
end

local function check_arguments(name, names, kinds, ...)
  for i = 1, #(names or {}) do
    local kind, x = kinds[i], (select(i, ...))
    local what = name .. (names[i] == "x" and ": the input" or ": argument '" .. names[i] .. "'")
    if kind and not fits[kind](x) then
      tf.fail("%s is %s, not %s", what, tf.kind(x), wanted[kind])
    end
    if kind == "floating" then tf.floating(what, x) end
    if kind == "index" then tf.index(what, x) end
  end
end

-- Wraps a function so that it refuses surplus arguments, and arguments of a wrong kind.
local function refuses_more(name, f)
  local most, names = tf.parameters(f)
  most = parameters[name] or most
  if not most then return f end
  local kinds = kinds_of(name, names)
  return function(...)
    local n = select("#", ...)
    if n > most then
      tf.fail("%s takes %s, not %d", name,
              most == 0 and "no arguments" or most == 1 and "one argument" or most .. " arguments",
              n)
    end
    check_arguments(name, names, kinds, ...)
    return f(...)
  end
end

-- Wraps the functions of a table; errors name them with the prefix.
function tf.refuse_more(t, prefix)
  for _, key in ipairs(sorted_keys(t)) do
    local value = rawget(t, key)
    if type(value) == "function" then rawset(t, key, refuses_more(prefix .. key, value)) end
  end
end

-- Wraps all functions of the prelude, once defined; `next` and `pairs` stay like Lua's.
function tf.seal(globals)
  local own_next, own_pairs = globals.next, globals.pairs
  for _, name in ipairs(sorted_keys(globals)) do
    local value = rawget(globals, name)
    if type(value) == "table" and value ~= globals then tf.refuse_more(value, name .. ".") end
  end
  tf.refuse_more(globals, "")
  globals.next, globals.pairs = own_next, own_pairs
end

-- Checks for true, false or nil.
function tf.flag(where, name, value)
  if value ~= nil and type(value) ~= "boolean" then
    tf.fail("%s: %s must be true or false, not %s", where, name, tf.show(value))
  end
end

-- Checks a number to be in [least, most]; accepts nil, and tensors, whose values are not known.
function tf.within_bounds(where, value, least, most)
  if value == nil or tf.is_tensor(value) then return end
  if type(value) ~= "number" or not (value >= least and value <= most) then
    tf.fail("%s must be between %g and %g, not %s", where, least, most, tf.show(value))
  end
end

-- Checks that the value is not a function of a library that should have been called.
function tf.not_called(where, what, value, library, prefix, call)
  for name in pairs(library) do
    if value == rawget(library, name) then
      name = prefix .. name
      tf.fail("%s: %s makes %s when it is called: %s%s", where, name, what, name, call)
    end
  end
end

function tf.positive(where, value)
  if tf.is_tensor(value) then return end
  if type(value) ~= "number" or not (value > 0) then
    tf.fail("%s must be above 0, not %s", where, tf.show(value))
  end
end

-- Checks options of a function: a table with only the known names ("name activation bias?"); a
-- question mark means true or false.
function tf.options(where, o, known)
  if o == nil then return {} end
  if type(o) ~= "table" then tf.fail("%s: options are a table, not %s", where, tf.kind(o)) end
  local names, is_flag = {}, {}
  for name, mark in known:gmatch("([%w_]+)(%??)") do
    names[#names + 1] = name
    is_flag[name] = mark == "?"
  end
  for key, value in pairs(o) do
    if type(key) == "number" then
      tf.fail("%s: options have names, but %s has none (there are: %s)", where, tf.show(value),
              table.concat(names, ", "))
    end
    if is_flag[key] == nil then
      local text = tostring(key)
      tf.fail("%s has no option '%s' (it has: %s)%s", where, text, table.concat(names, ", "),
              tf.nearest(text, names))
    end
    local kind = (where:find(".", 1, true) or key == "name") and options[key]
    if is_flag[key] then
      tf.flag(where, key, value)
    elseif kind and not fits[kind](value) then
      tf.fail("%s: %s must be %s, not %s", where, key, wanted[kind], tf.show(value))
    end
  end
  return o
end

function tf.number(where, value, least)
  if math.type(value) ~= "integer" or value < (least or 1) then
    tf.fail("%s must be a whole number of at least %d, not %s", where, least or 1, tf.show(value))
  end
  return value
end

-- Makes a tensor from a tensor, number or list; numbers and lists get `dtype`.
function tf.tensor(where, x, dtype)
  if tf.is_tensor(x) then return x end
  if x == nil then tf.fail("%s is nil, not a tensor", where) end
  return Const(x, {dtype = dtype})
end

local function check_tensor(where, x)
  if not tf.is_tensor(x) then tf.fail("%s: the input is %s, not a tensor", where, tf.kind(x)) end
end

-- Returns the size of an axis, which must be known.
function tf.dim(where, x, axis)
  check_tensor(where, x)
  local shape = x.shape
  if not shape or not shape[axis] or shape[axis] < 0 then
    tf.fail("%s: dimension %d of %s must be known", where, axis, tostring(x))
  end
  return shape[axis]
end

function tf.rank(where, x, rank)
  check_tensor(where, x)
  if x.rank and x.rank ~= rank then
    tf.fail("%s: %s must have rank %d", where, tostring(x), rank)
  end
end

-- Checks that two tensors have the same shape, as far as it is known.
function tf.same_shape(where, a, b)
  check_tensor(where, a)
  check_tensor(where, b)
  local differ = a.rank and b.rank and a.rank ~= b.rank
  for i = 1, not differ and a.rank and b.rank or 0 do
    local m, n = a.shape[i], b.shape[i]
    differ = differ or m ~= n and m >= 0 and n >= 0
  end
  if differ then tf.fail("%s: %s and %s differ in shape", where, tostring(a), tostring(b)) end
end

function tf.known(shape)
  if not shape then return false end
  for _, d in ipairs(shape) do if d < 0 then return false end end
  return true
end

-- Returns the shape of x with its last n axes replaced: a list if all but the rows are known.
function tf.shape_with(x, n, last)
  local list = {-1, table.unpack(x.shape, 2, x.rank - n)}
  if not tf.known{table.unpack(list, 2)} then
    return Concat(0, {Slice(Shape(x), {0}, {x.rank - n}), last})
  end
  return table.move(last, 1, #last, #list + 1, list)
end

function tf.floating(where, x)
  check_tensor(where, x)
  if not x.dtype:find("float", 1, true) then
    tf.fail("%s must be of a floating-point type, not %s", where, tostring(x))
  end
end

-- Checks for row or class numbers.
function tf.index(where, x)
  if x.dtype ~= int32 and x.dtype ~= int64 then
    tf.fail("%s must be int32 or int64, not %s", where, tostring(x))
  end
end

-- Makes a list from a tensor or a list.
function tf.list(x) return type(x) == "table" and x or {x} end

-- Casts only if the type differs.
function tf.cast(x, dtype)
  return x.dtype == dtype and x or Cast(x, {DstT = dtype})
end

-- Returns the type of counts, and of large sums, for values of a type: 16 bits are too few.
function tf.count_type(dtype)
  return (dtype == float16 or dtype == bfloat16) and float32 or dtype
end

function tf.wide(x) return tf.cast(x, tf.count_type(x.dtype)) end

-- {0, 1, ..., n - 1}
function tf.axes(first, last)
  local list = {}
  for i = first, last do list[#list + 1] = i end
  return list
end

-- Reduces over all elements: reduce(Sum, x).
function tf.reduce(op, x, attrs)
  if x.rank == 0 then return x end
  if x.rank then return op(x, tf.axes(0, x.rank - 1), attrs) end
  return op(x, Range(0, Rank(x), 1), attrs)
end

-- Makes an op that runs after all in the list.
function group(list, o)
  o = tf.options("group", o, "name")
  return NoOp{name = o.name, control = list}
end

-- Returns the tensors, each available only once all are.
function tuple(list, o)
  o = tf.options("tuple", o, "name")
  return scope(o.name or "tuple", function()
    local out = {}
    for i, x in ipairs(list) do out[i] = Identity(x, {control = list}) end
    return out
  end)
end
