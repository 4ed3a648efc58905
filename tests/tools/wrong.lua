-- SPDX-License-Identifier: Apache-2.0
-- Every function of the prelude with values of every kind in every place: prints what is said of
-- the prelude's own lines, or of Lua's kinds, which no script knows.
local x = Placeholder{dtype = float32, shape = {-1, 4}, name = "x"}
local y = Placeholder{dtype = int32, shape = {-1}, name = "y"}
local image = Placeholder{dtype = float32, shape = {2, 8, 8, 3}, name = "image"}
local unknown = Placeholder{dtype = float32, shape = "?", name = "unknown"}
local texts = Placeholder{dtype = "string", shape = {-1}, name = "texts"}
local w = variable{name = "w", shape = {4, 2}}
local values = {false, x, y, image, unknown, texts, w, group{}, 3, 2.5, -1, 0, "text", true, {},
                {1, 2}, {x}, {x, y}, {a = 1}, {name = 5}, {weights = "a"}, function() end,
                function(a) return a end, {"x"}, {step = 3}, {rate = "r"}, {shape = {2}},
                {init = "q"}, {dtype = "float99"}, {name = "a b"}}

local functions = {}
local function add(prefix, t)
  for name, f in pairs(t) do
    if type(f) == "function" then functions[#functions + 1] = {prefix .. name, f} end
  end
end
add("nn.", nn)
add("init.", init)
add("optim.", optim)
add("schedule.", schedule)
add("clip.", clip)
add("collective.", collective)
for _, name in ipairs{"ema", "variable", "slot", "share", "cond", "while_loop", "group", "tuple",
                      "gradients", "minimize", "scope", "device", "control", "colocate",
                      "container", "global_step", "tensor", "trainable", "variables",
                      "updates"} do
  functions[#functions + 1] = {name, _G[name]}
end

local function is_internal(text)
  for _, word in ipairs{"[prelude]", "attempt to", "bad argument", "userdata"} do
    if text:find(word, 1, true) then return true end
  end
  return false
end

local seen = {}
local function try(name, f, ...)
  local ok, said = pcall(f, ...)
  if ok and type(said) == "function" and name:find("^init") then
    ok, said = pcall(said, {2, 2}, float32)
  end
  said = tostring(said)
  if ok or not is_internal(said) or seen[name .. said] then return end
  seen[name .. said] = true
  local arguments = table.pack(...)
  for i = 1, arguments.n do arguments[i] = tostring(arguments[i]) end
  print(name .. "(" .. table.concat(arguments, ", ") .. "): " .. said)
end

for _, pair in ipairs(functions) do
  local name, f = pair[1], pair[2]
  try(name, f)
  for _, a in ipairs(values) do
    try(name, f, a)
    try(name, f, a, a)
    try(name, f, a, 3)
    try(name, f, a, function() return x end)
    try(name, f, x, a)
    try(name, f, image, a)
    try(name, f, x, y, a)
    try(name, f, x, 3, a)
    try(name, f, image, 3, a)
    try(name, f, image, 3, 2, a)
  end
end

-- ---- each option with what is no value of it: the message names the option ----

add("metric.", metric)
local class = Placeholder{dtype = int32, shape = {-1}, name = "class"}
local score = Placeholder{dtype = float32, shape = {-1, 4}, name = "score"}
local number = Placeholder{dtype = float32, shape = {-1}, name = "number"}
local series = Placeholder{dtype = float32, shape = {2, 3, 4}, name = "series"}
local ids = Placeholder{dtype = int32, shape = {2, 3}, name = "ids"}
local calls = {{}, {x}, {x, 3}, {x, x}, {score, class}, {score, class, 2}, {x, x, x}, {image},
               {image, 3}, {image, 3, 3}, {series}, {series, 2}, {series, 2, 1},
               {series, series, series}, {ids, 5, 2}, {number, class}, {0.9}, {{4}},
               {x, function(a) return a end}, {x, {Relu}}, {Const(1.0)}, {{shape = {2}}}, {w}}
local needed = {step = global_step(), rate = 1, steps = 10, decay = 0.5, bounds = {1},
                values = {1, 2}, inputs = x, labels = ids, num_sampled = 2, num_classes = 5,
                shape = {2}}

-- Calls f, and what it returns if that is a function. Whether that is well, and the message.
local function call(name, f, o, ...)
  local arguments = table.pack(...)
  arguments[arguments.n + 1] = o
  local ok, made = pcall(f, table.unpack(arguments, 1, arguments.n + 1))
  if ok and name:find("^init%.") and type(made) == "function" then
    ok, made = pcall(scope, "initial", function() return made({2, 2}, float32) end)
  elseif ok and name:find("^optim%.") then
    ok, made = pcall(minimize, Sum(w * w, {0, 1}), made)
  end
  return ok, tostring(made)
end

-- Whether it can be called with these arguments and no wrong options.
local function try_options(name, f, ...)
  local _, said = call(name, f, {no_such_option = 1}, ...)
  local list = said:match("has no option 'no_such_option' %(it has: ([^)]*)%)")
  if not list then return false end
  local all = {}
  for option in list:gmatch("[%w_]+") do all[option] = needed[option] end
  if not name:find("^schedule") then all.decay = nil end
  if not call(name, f, all, ...) then return false end
  for option in list:gmatch("[%w_]+") do
    for _, value in ipairs{"q", true, function() return 1 end} do
      local o = {}
      for k, v in pairs(all) do o[k] = v end
      o[option] = value
      local ok, text = call(name, f, o, ...)
      if not ok and not text:find(option:match("init$") or option, 1, true) then
        print(name .. "{" .. option .. " = " .. tostring(value) .. "}: " .. text)
      end
    end
  end
  return true
end
-- Those that have no options, or options that are of no kind.
local without = {}
for name in ("init.constant init.ones init.zeros nn.gelu nn.silu"):gmatch("%S+") do
  without[name] = true
end
for _, pair in ipairs(functions) do
  local name, f = pair[1], pair[2]
  local tried = not name:find("%.") or name:find("^cl") or name:find("^coll") or without[name]
  for _, arguments in ipairs(calls) do
    tried = try_options(name, f, table.unpack(arguments)) or tried
  end
  if not tried then print(name .. ": its options were not tried") end
end

-- ---- whole numbers where a type has to be floating: the function is named, no node of it ----

local whole = {Placeholder{dtype = int32, shape = {2, 4}},
               Placeholder{dtype = int32, shape = {2, 4, 4}},
               Placeholder{dtype = int32, shape = {2, 8, 8, 3}}}
for _, pair in ipairs(functions) do
  local name, f = pair[1], pair[2]
  for _, a in ipairs(whole) do
    for _, arguments in ipairs{{a}, {a, a}, {a, a, a}, {a, 3}, {a, 3, 3}, {a, 0.5}} do
      local ok, said = pcall(f, table.unpack(arguments))
      if not ok and name:find("^nn%.") and said:find("node '", 1, true) then
        print(name .. " of int32: " .. said)
      end
    end
  end
end
