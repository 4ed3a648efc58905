-- Two layers and a bias, in float64; what each starts with is a formula, as in intervals.py.
-- tf-graph -D opt=sgd|adam|fed
local x = Placeholder{dtype = float64, shape = {-1, 6}, name = "x"}
local y = Placeholder{dtype = float64, shape = {-1, 3}, name = "y"}

local function matrix(name, m, n)
  local v = {}
  for i = 1, m do
    v[i] = {}
    for k = 1, n do v[i][k] = ((i * 5 + k * 3) % 7 - 3) / 10 end
  end
  return variable{name = name, shape = {m, n}, dtype = float64, init = v}
end

local h = Tanh(MatMul(x, matrix("one/W", 6, 4)))
local b = variable{name = "two/b", shape = {3}, dtype = float64, init = 0}
loss = nn.mse(MatMul(h, matrix("two/W", 4, 3)) + b, y)

local optimizers = {
  sgd = function() return optim.sgd{rate = 0.1} end,
  adam = function() return optim.adam{rate = 0.1} end,
  fed = function() return optim.sgd{rate = Mean(y * y, {0, 1}) * 0.2} end, -- of the step's rows
}
local steps = variable{name = "steps", shape = {}, dtype = int64, init = 0, trainable = false}
entry.train = {minimize(loss, optimizers[D.opt or "sgd"](), {global_step = steps}), loss}
