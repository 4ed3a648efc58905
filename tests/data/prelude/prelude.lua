-- SPDX-License-Identifier: Apache-2.0
-- What the prelude computes in four steps, to be compared with expected.txt (make.py).
local f64 = float64
local step = global_step()
local trains = {}

-- ---- optimizers: f(w) = sum(c w^2 / 2 + sin(w)) ----
local c = Const({1.0, 3.0, 0.5}, {dtype = f64})
local function optimize(name, optimizer)
  local w = variable{name = name, shape = {3}, dtype = f64,
                     init = Const({0.5, -1.25, 2.0}, {dtype = f64})}
  local loss = Sum(c * w * w / 2 + Sin(w), {0})
  trains[#trains + 1] = minimize(loss, optimizer, {variables = {w}})
  return w
end
local of = {
  sgd = optim.sgd{rate = 0.1}, momentum = optim.momentum{rate = 0.1, momentum = 0.8},
  nesterov = optim.momentum{rate = 0.1, momentum = 0.8, nesterov = true},
  adagrad = optim.adagrad{rate = 0.2, initial = 0.3},
  adadelta = optim.adadelta{rate = 0.5, rho = 0.9, epsilon = 1e-3},
  rmsprop = optim.rmsprop{rate = 0.05, rho = 0.8, momentum = 0.5, epsilon = 1e-3},
  adam = optim.adam{rate = 0.1, beta1 = 0.8, beta2 = 0.9, epsilon = 1e-3},
  ftrl = optim.ftrl{rate = 0.3, l1 = 0.05, l2 = 0.1, power = -0.6, initial = 0.2},
}
for name, optimizer in pairs(of) do _ENV["w_" .. name] = optimize(name, optimizer) + 0 end

-- Rows, one of them twice; dense for momentum, whose other rows go on moving.
local rows = Const({{0.1, 0.2}, {-0.3, 0.4}, {0.5, -0.6}, {0.7, 0.8}}, {dtype = f64})
for name, optimizer in pairs{sgd = optim.sgd{rate = 0.1}, adagrad = optim.adagrad{rate = 0.1},
                             momentum = optim.momentum{rate = 0.1}} do
  local w = variable{name = "rows_" .. name, shape = {4, 2}, dtype = f64, init = rows}
  local picked = Gather(w, {2, 0, 2})
  local loss = Sum(Sin(picked) * Const({{1.0}, {2.0}, {3.0}}, {dtype = f64}), {0, 1})
  trains[#trains + 1] = minimize(loss, optimizer, {variables = {w}})
  _ENV["r_" .. name] = w + 0
end

-- ---- schedules, of the steps 0 to 3 ----
s_exponential = schedule.exponential{step = step, rate = 0.5, steps = 2, decay = 0.8}
s_staircase = schedule.exponential{step = step, rate = 0.5, steps = 2, decay = 0.8,
                                   staircase = true}
s_natural = schedule.natural_exp{step = step, rate = 0.5, steps = 2, decay = 0.8}
s_inverse = schedule.inverse_time{step = step, rate = 0.5, steps = 2, decay = 0.8}
s_polynomial = schedule.polynomial{step = step, rate = 0.5, steps = 2, last = 0.1, power = 2}
s_cycle = schedule.polynomial{step = step, rate = 0.5, steps = 2, last = 0.1, power = 2,
                              cycle = true}
s_piecewise = schedule.piecewise{step = step, bounds = {0, 2}, values = {1.0, 0.5, 0.25}}

-- ---- averages of a variable that grows ----
local grown = variable{name = "grown", shape = {}, dtype = f64, init = Const(1.0, {dtype = f64}),
                       trainable = false}
local plain, counted = ema(0.9), ema(0.9, {steps = step})
local averages = group{plain.apply{grown}, counted.apply{grown}}
local grow = AssignAdd(grown, 2, {control = {averages}})
e_plain, e_counted = plain.average(grown) + 0, counted.average(grown) + 0

-- ---- clipping ----
local a, b = Const({3.0, -4.0}, {dtype = f64}), Const({{12.0}}, {dtype = f64})
k_value = clip.by_value(a, -1, 2)
k_norm, k_small = clip.by_norm(a, 2.5), clip.by_norm(a, 7)
k_zero = clip.by_norm(a * 0, 2)
k_average = clip.by_average_norm(a, 1)
local both, norm = clip.by_global_norm({a, false, b}, 6.5)
k_first, k_second, k_total = both[1], both[3], norm

-- ---- losses ----
local logits = Const({{1.0, -2.0, 0.5}, {0.0, 0.0, 0.0}, {30.0, -5.0, 2.0}}, {dtype = f64})
local soft = Const({{0.2, 0.3, 0.5}, {1.0, 0.0, 0.0}, {0.0, 0.9, 0.1}}, {dtype = f64})
local weights = {0.5, 2.0, 1.0}
l_sparse = nn.cross_entropy(logits, Const{2, 0, 1})
l_weighted = nn.cross_entropy(logits, Const{2, 0, 1}, {weights = weights})
l_smooth = nn.cross_entropy(logits, Const{2, 0, 1}, {smoothing = 0.1})
l_soft = nn.cross_entropy(logits, soft)
l_sigmoid = nn.sigmoid_cross_entropy(logits, soft)
l_sigmoid_gradient = gradients(nn.sigmoid_cross_entropy(logits, soft), logits)
l_mse, l_mae = nn.mse(logits, soft), nn.mae(logits, soft)
l_mse_weighted = nn.mse(logits, soft, {weights = weights})
l_mse_scalar_weight = nn.mse(logits, soft, {weights = 0.5})
l_huber = nn.huber(logits, soft, {delta = 1.5})
l_hinge = nn.hinge(logits, Round(soft))
l_r2 = nn.r2(logits, soft)
l_accuracy = nn.accuracy(logits, Const{0, 0, 1})
l_top = nn.in_top_k(Cast(logits, {DstT = float32}), Const{2, 0, 1}, 2)

-- ---- losses by sampled classes: 7 of them, of which a row has 2 true ones, or 1 ----
local function table_of(name, rows, columns, shift)
  local values = {}
  for i = 1, rows do
    values[i] = {}
    for k = 1, columns do values[i][k] = math.sin(shift + i * 2.5 + k * 1.75) end
  end
  return variable{name = name, shape = {rows, columns}, dtype = f64, trainable = false,
                  init = Const(values, {dtype = f64})}
end
local inputs, table7 = table_of("q_inputs", 3, 4, 0.5), table_of("q_table", 7, 4, 0.25)
local bias7 = variable{name = "q_bias", shape = {7}, dtype = f64, trainable = false,
                       init = Const({0.5, -0.25, 0.0, 1.5, -1.0, 0.75, 0.1}, {dtype = f64})}
local drawn = Const({5, 0, 2, 0}, {dtype = int64}) -- 0 twice, and a true class of row 2
local how_often = Const({0.25, 1.75, 0.5, 1.75})
for name, o in pairs{
  one = {labels = Const{3, 0, 6}, sampled_values = {drawn, Const({{0.5}, {1.75}, {0.125}}), how_often}},
  two = {labels = Const{{3, 4}, {0, 2}, {6, 6}}, num_true = 2, sampled_values =
         {drawn, Const({{0.5, 0.25}, {1.75, 0.5}, {0.125, 0.125}}), how_often}}} do
  for _, loss in ipairs{"sampled_softmax", "nce"} do
    for _, removes in ipairs{true, false} do
      o.inputs, o.weights, o.biases, o.num_classes = inputs, table7, bias7, 7
      o.remove_accidental_hits = removes
      local mean, more = nn[loss](o)
      local key = "q_" .. loss .. "_" .. name .. (removes and "_removed" or "")
      local g = gradients(mean, {inputs, table7, bias7})
      _ENV[key], _ENV[key .. "_rows"] = mean, more.losses
      _ENV[key .. "_dx"], _ENV[key .. "_dw"], _ENV[key .. "_db"] = g[1], g[2], g[3]
    end
  end
end

-- ---- batch normalization ----
local net = share(function(x, training) return nn.batch_norm(x, {training = training}) end)
local flat = Const({{1.0, -2.0}, {0.5, 4.0}, {3.0, 0.25}, {-1.0, 1.0}}, {dtype = f64})
b_flat, b_flat_eval = net(flat, true), net(flat, false)
local net4 = share(function(x, training) return nn.batch_norm(x, {training = training}) end)
local image = Cast(Reshape(flat, {2, 2, 1, 2}), {DstT = float32})
b_image, b_image_eval = net4(image, true), net4(image, false)

entry.step = {group(trains), group(updates()), grow,
              AssignAdd(step, 1, {control = {averages}}), table.unpack(updates())}
