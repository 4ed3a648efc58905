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
