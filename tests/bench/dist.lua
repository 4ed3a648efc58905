-- SPDX-License-Identifier: Apache-2.0
-- Null steps: what a shard holds is read by the worker, and given back to be added.
local shard, worker = "/job:ps/task:0", "/job:worker/task:0"
local n, rows = D.n or 1, D.rows or 0

device(shard, function()
  v = Variable{dtype = float32, shape = rows > 0 and {rows, n} or {n}}
  local first = Assign(v, Fill(Const(rows > 0 and {rows, n} or {n}), Const(0.0)))
  entry.init = group{first}
  entry.ready = IsVariableInitialized(v)
end)

local ids = rows > 0 and device(worker, function()
  return RandomUniformInt(Const{32}, Const(0), Const(rows), {seed = 1})
end)
local pulled = device(shard, function() return rows > 0 and Gather(v, ids) or Identity(v) end)
local pushed = device(worker, function() return Identity(pulled) end)
device(shard, function()
  entry.step = group{rows > 0 and ScatterAdd(v, ids, pushed) or AssignAdd(v, pushed)}
end)
