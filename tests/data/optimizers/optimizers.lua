-- Optimizers and schedules over eight steps, to be compared with expected.txt (make.py).
local c = Const({{1.0, 3.0, 0.5}, {-1.0, 2.0, 0.25}}, {dtype = float64})
local start = Const({{0.5, -1.25, 2.0}, {1.0, 2.0, 3.0}}, {dtype = float64})
local step, trains = global_step(), {}
local function train(name, optimizer, initial)
  local w = variable{name = name, dtype = float64, init = initial or start}
  local s = Reshape(w, {2, 3})
  trains[#trains + 1] = minimize(Sum(c * s * s / 2 + Sin(s), {0, 1}), optimizer, {variables = {w}})
  _ENV["w_" .. name] = w + 0
end
local adam = {rate = 0.1, beta1 = 0.8, beta2 = 0.9, epsilon = 1e-3, weight_decay = 0.2}
train("adamw", optim.adamw(adam))
train("kept", optim.adamw{rate = 0.1, beta1 = 0.8, beta2 = 0.9, epsilon = 1e-3, weight_decay = 0})
train("radam", optim.radam(adam))
train("lamb", optim.lamb(adam))
adam.momentum_decay = 0.01
train("nadam", optim.nadam(adam))
train("lion", optim.lion{rate = 0.1, beta1 = 0.8, beta2 = 0.7, weight_decay = 0.2})
train("factored", optim.adafactor{rate = 0.5, decay = 0.7, weight_decay = 0.2})
train("adafactor", optim.adafactor{rate = 0.1, least = 2, bound = 1.25}, Reshape(start, {6}))

-- One optimizer of two variables, of which one decays.
local a, b = variable{name = "net/W", init = start}, variable{name = "net/b", init = start}
local loss = 0
for _, w in ipairs{a, b} do loss = loss + Sum(c * w * w / 2 + Sin(w), {0, 1}) end
trains[#trains + 1] = minimize(loss, optim.adamw{rate = 0.1, weight_decay = 0.2, decayed = "/W$"},
                               {variables = {a, b}})
w_decayed, w_plain = a + 0, b + 0

s_cosine = schedule.cosine{step = step, rate = 0.5, steps = 6, last = 0.1}
s_warm_up = schedule.warm_up{step = step, rate = 0.5, steps = 4, start = 0.25}
s_both = schedule.warm_up{step = step, rate = s_cosine, steps = 4}
s_one_cycle = schedule.one_cycle{step = step, rate = 0.5, steps = 9, pct_start = 0.45,
                                 div_factor = 20, final_div_factor = 100}
s_exponential = schedule.exponential{step = step, rate = 0.5, steps = 1, decay = 0.8}
trains[#trains + 1] = AssignAdd(step, 1)
entry.step = trains
