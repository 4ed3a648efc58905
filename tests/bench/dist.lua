-- SPDX-License-Identifier: Apache-2.0
-- Null steps: each worker reads the shard's value and returns it to be added. With push=1 it only
-- pushes: `batch` rows at once.
local shard, worker = "/job:ps/task:0", "/job:worker/task:*"
local n, rows, batch = D.n or 1, D.rows or 0, D.batch or 32
local shape = rows > 0 and {rows, n} or {n}

device(shard, function()
  v = Variable{dtype = float32, shape = shape}
  local first = Assign(v, Fill(Const(shape), Const(0.0)))
  entry.init = group{first}
  entry.ready = IsVariableInitialized(v)
end)

local ids = rows > 0 and device(worker, function()
  return RandomUniformInt(Const{batch}, Const(0), Const(rows), {seed = 1})
end)
local pulled = not D.push and device(shard, function()
  return rows > 0 and Gather(v, ids) or Identity(v)
end)
local pushed = device(worker, function()
  return D.push and Fill(Const{batch, n}, Const(1.0)) or Identity(pulled)
end)
device(shard, function()
  entry.step = group{rows > 0 and ScatterAdd(v, ids, pushed) or AssignAdd(v, pushed)}
end)
