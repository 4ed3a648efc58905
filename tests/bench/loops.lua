-- Training of a recurrent net over T rows, as a loop in the graph or unrolled.
-- A padded net passes over the last quarter of its rows, by a branch in the loop. "beside" is a net
-- of dense layers next to an unrelated short loop, without async ops or with some, or next to none.
-- tf-graph -D net=NET -D kind=loop|unrolled loops.lua: rnn, lstm, padded_rnn, padded_lstm, beside,
-- beside_points
local sizes = {rnn = {rows = 8, batch = 64, inputs = 8, units = 32},
               lstm = {rows = 20, batch = 32, inputs = 64, units = 128}}
local function cross_entropy(h, batch)
  local labels = {}
  for i = 1, batch do labels[i] = (i * 7919) % 10 end
  return nn.cross_entropy(nn.dense(h, 10, {name = "out"}), Cast(labels, {DstT = int32}))
end

if D.net:match("^beside") then
  local batch, units = 64, 256
  local h = variable{name = "rows", shape = {batch, units}, init = init.normal{stddev = 1},
                     trainable = false}
  for i = 1, 8 do h = nn.dense(h, units, {name = "fc" .. i, activation = Relu}) end
  loss = cross_entropy(h, batch)
  local train, counted = minimize(loss, optim.sgd{rate = 1e-3}), {}
  if D.kind == "loop" then
    local count = variable{name = "count", shape = {4}, trainable = false}
    local _, c = while_loop(function(i) return Less(i, 3) end, function(i, c)
      local found = D.net == "beside" and 1.0 or
        Cast(Sum(Where(Less(c, 2)), {0, 1}), {DstT = float32})
      return i + 1, Tanh(c + found)
    end, {Const(0, {dtype = int32}), count})
    counted = {Assign(count, c)}
  end
  entry.train = group{train, table.unpack(counted)}
  return
end

local padded = D.net:match("^padded_(.*)")
local net = padded or D.net
local size, lstm = sizes[net], net == "lstm"
local n_used = padded and size.rows * 3 // 4 or size.rows
local width = lstm and 4 * size.units or size.units
local rows = variable{name = "rows", shape = {size.rows, size.batch, size.inputs},
                      init = init.normal{stddev = 1}, trainable = false}
local w = variable{name = "W", shape = {size.inputs + size.units, width},
                   init = init.glorot_uniform()}
local b = variable{name = "b", shape = {width}}

local function cell(row, h, c)
  local z = BiasAdd(MatMul(Concat(1, {row, h}), w), b)
  if not lstm then return Tanh(z), c end
  local i, f, o, u = Split(1, z, {num_split = 4})
  c = Sigmoid(f) * c + Sigmoid(i) * Tanh(u)
  return Sigmoid(o) * Tanh(c), c
end

local function row_at(begin)
  return Reshape(Slice(rows, begin, {1, -1, -1}), {size.batch, size.inputs})
end

local h = Fill(Const({size.batch, size.units}, {dtype = int32}), Const(0, {dtype = float32}))
local c = h
if D.kind == "loop" then
  local _
  _, h, c = while_loop(function(i) return Less(i, size.rows) end, function(i, h, c)
    local function step() return cell(row_at(Pack{i, 0, 0}), h, c) end
    if not padded then return i + 1, step() end
    return i + 1, cond(Less(i, n_used), step, function() return h, c end)
  end, {Const(0, {dtype = int32}), h, c})
else
  for t = 0, n_used - 1 do h, c = cell(row_at{t, 0, 0}, h, c) end
end
loss = cross_entropy(h, size.batch)
entry.train = minimize(loss, optim.sgd{rate = 1e-3})
