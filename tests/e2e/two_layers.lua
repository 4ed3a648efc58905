-- Two layers and a bias; what each starts with is a formula, as in two_layers.py.
-- tf-graph -D opt=sgd|momentum|adam|fed -D units=4 -D type=float64
local inputs, units = 6, D.units or 4
local dtype = D.type == "float32" and float32 or float64
local x = Placeholder{dtype = dtype, shape = {-1, inputs}, name = "x"}
local y = Placeholder{dtype = dtype, shape = {-1, 3}, name = "y"}

local function matrix(name, m, n)
  local v = {}
  for i = 1, m do
    v[i] = {}
    for k = 1, n do v[i][k] = ((i * 5 + k * 3) % 7 - 3) / 10 end
  end
  return variable{name = name, shape = {m, n}, dtype = dtype, init = v}
end

local h = Tanh(MatMul(x, matrix("one/W", inputs, units)))
local b = variable{name = "two/b", shape = {3}, dtype = dtype, init = 0}
loss = nn.mse(MatMul(h, matrix("two/W", units, 3)) + b, y)

local optimizers = {
  sgd = function() return optim.sgd{rate = 0.4 / units} end,
  momentum = function() return optim.momentum{rate = 0.4 / units, momentum = 0.5} end,
  adam = function() return optim.adam{rate = 0.4 / units} end,
  fed = function() return optim.sgd{rate = Mean(y * y, {0, 1}) * 0.2} end, -- of the step's rows
}
local steps = variable{name = "steps", shape = {}, dtype = int64, init = 0, trainable = false}
entry.train = {minimize(loss, optimizers[D.opt or "sgd"](), {global_step = steps}), loss}
