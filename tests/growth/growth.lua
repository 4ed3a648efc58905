-- SPDX-License-Identifier: Apache-2.0
-- Graphs of many kinds, each of which has some n of something: what a tool does with one of 10 n
-- is 10 times as much. tf-graph -D k=KIND -D n=N growth.lua; what is to be run is the entry go.
local n = D.n
local kinds = {}

-- Not known before it runs, and not fed.
local number
function number(...)
  if select("#", ...) == 0 then return Sum(number(1), 0) end
  return RandomUniform({...}, {dtype = float32})
end

local function each(f)
  local list = {}
  for i = 1, n do list[i] = f(i) end
  return list
end

local function repeated(x, f)
  for i = 1, n do x = f(x, i) end
  return x
end

local function on(i, f) return device("/device:CPU:" .. i % 2, f) end

local function loop(x, body)
  local _, s = while_loop(function(a) return Less(a, 3) end,
                          function(a, s) return a + 1, body(s) end, {0, x})
  return s
end

---- data ----

function kinds.chain() return repeated(number(4), function(t) return Tanh(t) end) end
function kinds.wide() return group(each(function() return Tanh(number(4)) end)) end
function kinds.indep() return group(each(function(i) return Const(i, {name = "c" .. i}) end)) end
function kinds.concat()
  local x = number(4)
  return Concat(0, each(function() return Tanh(x) end))
end
function kinds.pack()
  local x = number(4)
  return Pack(each(function() return Tanh(x) end))
end
function kinds.addnsame() local x = number(4); return AddN(each(function() return x end)) end
function kinds.unpack()
  local parts = {Unpack(number(n, 4), {num = n})}
  return AddN(each(function(i) return Tanh(parts[i]) end))
end
function kinds.branch()
  return repeated(number(4), function(t) return Tanh(t) * Sigmoid(t) + t end)
end
function kinds.runsum()
  local x = number(4)
  return repeated(x, function(s) return s + Tanh(x) end)
end
function kinds.consts()
  return AddN(each(function(i) return Const({i, i + 1.5, 3, 4}) end))
end
function kinds.equal() -- all is the same
  local x = number(4)
  return AddN(each(function() return Tanh(x * 2) end))
end
function kinds.handed() -- a shape that is handed on, and asked for each time
  local shape, x = Const({2, 2}), number(4)
  return repeated(x, function(t)
    shape = Identity(shape)
    return Reshape(Reshape(t, shape), {4})
  end)
end
function kinds.gather()
  local x = number(100, 4)
  return AddN(each(function(i) return Gather(x, i % 100) end))
end
function kinds.dropout() return repeated(number(4), function(t) return nn.dropout(t, 0.5) end) end
function kinds.devices()
  return repeated(number(4), function(t, i)
    return on(i, function() return Tanh(t) end)
  end)
end

---- names ----

function kinds.fetches() local x = number(4); return each(function(i) return x + i end) end
function kinds.entries()
  local x = number(4)
  for i = 1, n do entry["e" .. i] = x + i end
  return x
end
function kinds.globals()
  local x = number(4)
  for i = 1, n do _G["g" .. i] = x + i end
  return x
end
function kinds.aliases() -- one op has them all
  local parts = {Unpack(number(n, 4), {num = n})}
  for i = 1, n do _G["part" .. i] = parts[i] end
  return AddN(parts)
end
function kinds.anew() -- one global, again and again
  return repeated(number(4), function(t) again = Tanh(t); return again end)
end
function kinds.asked()
  for i = 1, n do local _ = D["parameter" .. i] end
  return number(4)
end
function kinds.samename()
  local x = number(4)
  return AddN(each(function()
    return scope("layer", function() return Tanh(x, {name = "t"}) end)
  end))
end

---- order ----

function kinds.group() local x = number(4); return group(each(function() return Tanh(x) end)) end
function kinds.groups() return repeated(NoOp(), function(g) return group{g, NoOp()} end) end
function kinds.ctlchain()
  return repeated(NoOp(), function(t) return control({t}, NoOp) end)
end
function kinds.ctlall()
  return control(each(function() return NoOp() end), function() return Const(1) end)
end
function kinds.ctlpairs()
  local before = NoOp()
  return repeated(NoOp(), function(t)
    local both = {before, t}
    before = t
    return control(both, NoOp)
  end)
end
function kinds.colocated()
  local first = Tanh(number(4))
  return repeated(first, function(t)
    return colocate(t, function() return Tanh(t) end)
  end)
end

---- variables ----

local function weight(i, init)
  return variable{name = "w" .. i, shape = {4}, init = init or 0.5}
end

function kinds.vars() return AddN(each(function(i) return Sum(weight(i) * 2, 0) end)) end
function kinds.starts() -- one initial value
  local start = number(4)
  return AddN(each(function(i) return weight(i, start) + 0 end))
end
function kinds.multigraph() -- an initial value with many edges between few nodes
  local c = Const({1.0, 2, 3, 4})
  return weight(1, AddN(each(function() return c end))) + 1
end
function kinds.reads() -- of one variable, each after another node
  local w = weight(1)
  return AddN(each(function() return control({NoOp()}, function() return w + 1 end) end))
end
function kinds.assigns()
  local w, one = weight(1), Const({1.0, 1, 1, 1})
  return repeated(NoOp(), function(t)
    return control({t}, function() return AssignAdd(w, one) end)
  end)
end
function kinds.across() -- writes of two devices, each after the last
  local one = Const({1.0, 1, 1, 1})
  return repeated(NoOp(), function(t, i)
    return on(i, function()
      local w = weight(i)
      return control({t}, function() return AssignAdd(w, one) end)
    end)
  end)
end
function kinds.waits() -- for writes of two devices
  local one = Const({1.0, 1, 1, 1})
  return group(each(function(i)
    return on(i, function() return AssignAdd(weight(i), one) end)
  end))
end
function kinds.updates() return repeated(number(8, 4), function(t) return nn.batch_norm(t) end) end
function kinds.embeddings()
  local table = variable{name = "table", shape = {100, 4}, init = 0.5}
  return AddN(each(function(i) return Gather(table, i % 100) end))
end

---- control flow ----

function kinds.conds()
  local x = number()
  return AddN(each(function(i)
    return cond(Greater(x, i), function() return x * 2 end, function() return x * 3 end)
  end))
end
function kinds.condchain()
  return repeated(number(), function(t, i)
    return cond(Greater(t, i), function() return t * 2 end, function() return t * 3 end)
  end)
end
function kinds.loops()
  local x = number()
  return AddN(each(function() return loop(x, function(s) return s + 1 end) end))
end
function kinds.loopsbeside() -- a branch
  local x = number()
  local sum = AddN(each(function(i) return loop(x + i, function(s) return s * 2 end) end))
  return cond(Greater(x, 0), function() return sum * 2 end, function() return sum * 3 end)
end
function kinds.loopchain()
  return repeated(number(), function(t) return loop(t, function(s) return s * 2 end) end)
end
function kinds.loopbody()
  return loop(number(), function(s) return repeated(s, function(t) return Tanh(t) end) end)
end
function kinds.loopvars()
  local x, start = number(), {0}
  for i = 1, n do start[i + 1] = x + i end
  local last = {while_loop(function(a) return Less(a, 3) end, function(a, ...)
    local v = {...}
    for i = 1, #v do v[i] = v[i] * 2 end
    return a + 1, table.unpack(v)
  end, start)}
  table.remove(last, 1)
  return AddN(last)
end
function kinds.loopcapt()
  local x = number()
  local outside = each(function(i) return x + i end)
  return loop(x, function(s) return s + AddN(outside) end)
end

---- training ----

local function train(loss, optimizer)
  return minimize(loss, optimizer or optim.sgd{rate = 0.01})
end

function kinds.train()
  return train(AddN(each(function(i) return Sum(Square(weight(i)), 0) end)))
end
function kinds.adam()
  local sum = AddN(each(function(i) return Sum(Square(weight(i)), 0) end))
  return train(sum, optim.adam{rate = 0.01})
end
function kinds.layers()
  local h = repeated(number(8, 4), function(t) return nn.dense(t, 4, {activation = Tanh}) end)
  return train(nn.mse(h, 0.5))
end
function kinds.dense()
  local x = number(8, 16)
  local sum = AddN(each(function() return nn.dense(x, 4, {activation = Relu}) end))
  return train(nn.mse(sum, 0.5), optim.adam{rate = 0.01})
end
function kinds.readers() -- of one value, with a gradient
  local w = weight(1)
  return train(Sum(AddN(each(function(i) return Tanh(w * i) end)), 0))
end
function kinds.gradloops()
  local w = variable{name = "w", shape = {}, init = 0.5}
  return train(AddN(each(function() return loop(w + 0, function(s) return s * 2 end) end)))
end
function kinds.rows()
  local table = variable{name = "table", shape = {100, 4}, init = 0.5}
  local found = each(function(i) return Gather(table, Const({i % 100})) end)
  return train(Sum(AddN(found), {0, 1}))
end
function kinds.joined() -- one node has a result for each of what was joined
  return train(Sum(Concat(0, each(function(i) return weight(i) end)), 0))
end
function kinds.clipped()
  local ws = each(function(i) return weight(i) end)
  local loss = AddN(each(function(i) return Sum(Square(ws[i]), 0) end))
  local clipped = clip.by_global_norm(gradients(loss, ws), 1.0)
  return group(each(function(i) return AssignAdd(ws[i], clipped[i]) end))
end

entry.go = (kinds[D.k] or error("there is no kind '" .. tostring(D.k) .. "'"))()
if D.k ~= "entries" then y = Const(0) end
