-- SPDX-License-Identifier: Apache-2.0
-- Goes on behind singular.lua, in the same script: each function of the prelude at its singular
-- points, at least at one. Values are by the formula beside them, or as that file says.
local function i32(x) return Const(x, {dtype = int32}) end
local function f64(x) return Const(x, {dtype = float64}) end
local function sizes(x) return Cast(Shape(x), {DstT = float32}) end
local zeros2 = Const{0.0, 0.0}

-- ---- schedules: step 0, the last step, behind it, and far behind it ----
local function at(steps, name, o)
  local values = {}
  for i, step in ipairs(steps) do
    local given = {step = i32(step)}
    for k, v in pairs(o) do given[k] = v end
    values[i] = schedule[name](given)
  end
  return Pack(values)
end
local ends = {0, 10, 11, 2000000000}
is("schedule.exponential, decay 0", at(ends, "exponential", {rate = 2, steps = 10, decay = 0}),
   {2.0, 0, 0, 0})
is("schedule.natural_exp", at({0, 2000000000}, "natural_exp", {rate = 2, steps = 1, decay = 1}),
   {2.0, 0})
is("schedule.inverse_time, decay 0", at(ends, "inverse_time", {rate = 2, steps = 10, decay = 0}),
   {2.0, 2, 2, 2})
for _, power in ipairs{0.25, 1, 2} do
  is("schedule.polynomial, power " .. power,
     at(ends, "polynomial", {rate = 2, steps = 10, last = 0, power = power}), {2.0, 0, 0, 0})
  is("schedule.polynomial that cycles, power " .. power,
     at({0, 10, 20, 16777213}, "polynomial",
        {rate = 2, steps = 1 / 3, last = 0, power = power, cycle = true}), {2.0, 0, 0, 0})
end
is("schedule.polynomial, power 0",
   at(ends, "polynomial", {rate = 2, steps = 10, last = 0, power = 0}), {2.0, 2, 2, 2})
is("schedule.piecewise without bounds", at(ends, "piecewise", {bounds = {}, values = {3}}),
   {3.0, 3, 3, 3})
is("schedule.cosine", at(ends, "cosine", {rate = 2, steps = 10}), {2.0, 0, 0, 0})
is("schedule.cosine of one step", at({0, 1}, "cosine", {rate = 2, steps = 1, last = 1}), {2.0, 1})
is("schedule.warm_up", at(ends, "warm_up", {rate = 2, steps = 10}), {0.0, 2, 2, 2})
is("schedule.one_cycle, all of it up", at({0, 9, 10, 2000000000}, "one_cycle",
   {rate = 2, steps = 10, pct_start = 1, div_factor = 2, final_div_factor = 2}), {1.0, 2, 2, 2})
is("schedule.one_cycle, all of it down", at({9, 10, 2000000000}, "one_cycle",
   {rate = 2, steps = 10, pct_start = 0, div_factor = 2, final_div_factor = 2}), {0.5, 0.5, 0.5})
is("schedule.one_cycle of one step up", at({0, 1}, "one_cycle",
   {rate = 2, steps = 1, pct_start = 1}), {2.0, 2})
is("schedule.one_cycle, its top at step 0", at({0}, "one_cycle",
   {rate = 2, steps = 10, pct_start = 0.1}), {2.0})

-- ---- initial values: nothing, one, no spread ----
local function initial(make, shape)
  return scope("initial" .. #checks, function() return make(shape, float32) end)
end
for _, name in ipairs{"glorot_uniform", "glorot_normal", "he_uniform", "he_normal",
                      "lecun_uniform", "lecun_normal", "xavier"} do
  is("init." .. name .. " of nothing", sizes(initial(init[name](), {0, 3})), {0.0, 3})
  is("init." .. name .. " of no inputs, a scalar", Abs(initial(init[name](), {}) * 0), 0)
end
is("init.variance_scaling, scale 0", Abs(initial(init.variance_scaling{scale = 0}, {2})), {0.0, 0})
is("init.normal, no spread", initial(init.normal{mean = 3, stddev = 0}, {2}), {3.0, 3})
is("init.truncated_normal, no spread", initial(init.truncated_normal{mean = 3, stddev = 0}, {2}),
   {3.0, 3})
is("init.uniform, no spread", initial(init.uniform{min = 3, max = 3}, {2}), {3.0, 3})
is("init.orthogonal of one", Abs(initial(init.orthogonal(), {1, 1})), {{1.0}})
is("init.orthogonal, gain 0", Abs(initial(init.orthogonal{gain = 0}, {2, 1})), {{0.0}, {0}})
is("init.orthogonal of nothing", sizes(initial(init.orthogonal(), {0, 3})), {0.0, 3})
is("init.constant of nothing", sizes(initial(init.constant(2), {0})), {0.0})
is("init.zeros", initial(init.zeros, {1}), {0.0})
is("init.ones", initial(init.ones, {1}), {1.0})

-- ---- activations ----
is("nn.gelu", nn.gelu(Const{inf, 0.0, nan}), {inf, 0.0, nan}) -- -inf 0 has no value, as in both
is("nn.gelu, its gradient at 0", slope(nn.gelu, {0.0}), {0.5})
is("nn.silu", nn.silu(Const{inf, 0.0, nan}), {inf, 0.0, nan})
is("nn.silu, its gradient at 0", slope(nn.silu, {0.0}), {0.5})
for _, alpha in ipairs{0.5, 1, 2} do
  local function elu(x) return nn.elu(x, {alpha = alpha}) end
  is("nn.elu, alpha " .. alpha, elu(Const{inf, -inf, 0.0, nan}), {inf, -alpha, 0.0, nan})
  is("nn.elu, alpha " .. alpha .. ", its gradient", slope(elu, {inf, -inf, 0.0}), {1, 0, alpha})
end
is("nn.softplus", nn.softplus(Const{inf, -inf, nan}, {beta = 2}), {inf, 0.0, nan})
is("nn.softplus, its gradient",
   slope(function(x) return nn.softplus(x, {beta = 2}) end, {inf, -inf, 0.0}), {1.0, 0, 0.5})
is("nn.prelu, its gradient at 0",
   Abs(slope(function(x) return nn.prelu(x, {name = "prelu", init = 0.25}) end, {0.0})), {0.0})

-- ---- losses that singular.lua has not ----
is("nn.triplet of equals, its gradient", Floor(Abs(slope(function(x)
     return nn.triplet(x, x * 1, x * 1)
   end, {{1.0, 1.0}}))), {{0.0, 0}})
is("nn.triplet, weights of 0", nn.triplet(Const{{1.0}}, Const{{2.0}}, Const{{3.0}},
                                          {weights = Const{0.0}}), 0)
is("nn.focal, weights of 0", nn.focal(zeros2, zeros2, {weights = zeros2}), 0)
is("nn.huber of inf", nn.huber(Const{inf, 0.0}, zeros2), inf)
is("nn.huber, its gradient at inf",
   slope(function(x) return nn.huber(x, zeros2) end, {inf, 0.0}), {0.5, 0})
is("nn.huber at delta", slope(function(x) return nn.huber(x, zeros2) end, {1.0, -1.0}), {0.5, -0.5})
is("nn.hinge at its corner",
   Abs(slope(function(x) return nn.hinge(x, Const{1.0, 0.0}) end, {1.0, -1.0})), {0.0, 0})
is("nn.cross_entropy of equals", slope(function(x) return nn.cross_entropy(x, i32{0}) end,
   {{7.0, 7.0}}), {{-0.5, 0.5}})
is("nn.cross_entropy of what is masked",
   nn.cross_entropy(Const{{-inf, 3.0}}, i32{1}), 0)
is("nn.cross_entropy of what is masked, its gradient",
   Abs(slope(function(x) return nn.cross_entropy(x, i32{1}) end, {{-inf, 3.0}})), {{0.0, 0}})
is("nn.cross_entropy of one class", nn.cross_entropy(Const{{5.0}}, i32{0}), 0)
is("nn.cross_entropy of no rows", nn.cross_entropy(Fill({0, 2}, 1.0), Fill({0}, i32(0))), nan)
is("nn.sigmoid_cross_entropy of large",
   slope(function(x) return nn.sigmoid_cross_entropy(x, Const{1.0, 0.0}) end, {1e30, -1e30}),
   {0.0, 0})
is("nn.l2 at 0", slope(function(x) return nn.l2(1, {x}) end, {0.0, 1e-30}), {0.0, 1e-30})
is("nn.accuracy of equals", nn.accuracy(Const{{1.0, 1.0}}, i32{0}), 1)
is("nn.accuracy of no rows", nn.accuracy(Fill({0, 2}, 1.0), Fill({0}, i32(0))), nan)
is("nn.in_top_k of equals", nn.in_top_k(Const{{1.0, 1.0, 1.0}}, i32{2}, 1), 1) -- as TensorFlow's
is("nn.in_top_k of nan", nn.in_top_k(Const{{nan, 1.0}}, i32{0}, 2), 0)

-- ---- layers ----
local function training(f) return function(x) return f(x, {name = tostring(#checks)}) end end
for _, x in ipairs{{{3.0, 3.0}}, {{0.0, 0.0}}, {{1e-40, 1e-40}}} do
  is("nn.layer_norm of equals", training(nn.layer_norm)(Const(x)), {{0.0, 0}})
  is("nn.layer_norm of equals, its gradient", Abs(slope(training(nn.layer_norm), x)), {{0.0, 0}})
end
is("nn.layer_norm of one", training(nn.layer_norm)(Const{{3.0}}), {{0.0}})
is("nn.layer_norm of large, in 16 bits",
   training(nn.layer_norm)(f16{{60000, -60000}}), {{1, -1}})
is("nn.group_norm of equals",
   nn.group_norm(Const{{3.0, 3.0, 1.0, 1.0}}, 2, {name = "groups"}), {{0.0, 0, 0, 0}})
is("nn.instance_norm of one", training(nn.instance_norm)(Const{{{3.0}}}), {{{0.0}}})
is("nn.batch_norm of one row", training(nn.batch_norm)(Const{{3.0}}), {{0.0}})
local image = Const{{{{3.0}}}}
is("nn.batch_norm of one pixel", training(nn.batch_norm)(image), {{{{0.0}}}})
-- Without rows the averages and the weights stay, as in Keras.
for name, none in pairs{no_rows = Fill({0, 2}, 1.0), no_images = Fill({0, 2, 2, 2}, 1.0)} do
  local y = nn.batch_norm(none, {name = name})
  local axes = Const(y.rank == 2 and {0, 1} or {0, 1, 2, 3}, {dtype = int32})
  last[#last + 1] = minimize(Sum(y * y, axes), optim.sgd{rate = 1})
  control({last[#last]}, function()
    for part, stays in pairs{scale = {1.0, 1}, offset = {0.0, 0}, mean = {0.0, 0},
                             variance = {1.0, 1}} do
      is("nn.batch_norm of " .. name .. ": " .. part, tensor(name .. "/" .. part) + 0, stays)
    end
  end)
end
is("nn.lrn of 0", slope(nn.lrn, {{{{0.0, 0.0}}}}), {{{{1.0, 1}}}})
is("nn.max_pool of -inf", nn.max_pool(image * -inf, 1), {{{{-inf}}}})
is("nn.max_pool over an edge", nn.max_pool(image * -inf, 3, {padding = "SAME"}), {{{{-inf}}}})
is("nn.avg_pool over an edge", nn.avg_pool(image, 3, {padding = "SAME"}), {{{{3.0}}}})
is("nn.max_pool1d over an edge", nn.max_pool1d(Const{{{-3.0}}}, 3, {padding = "SAME"}), {{{-3.0}}})
is("nn.avg_pool1d over an edge", nn.avg_pool1d(Const{{{3.0}}}, 3, {padding = "SAME"}), {{{3.0}}})
is("nn.global_max_pool of equals",
   slope(nn.global_max_pool, {{{{3.0}, {3.0}}}}), {{{{0.5}, {0.5}}}})
is("nn.global_avg_pool of inf", nn.global_avg_pool(Const{{{{inf}, {1.0}}}}), {{inf}})
local ones, none_there = {init = init.ones}, Fill({0, 4, 4, 2}, 1.0)
local function made(o)
  local with = {name = "made" .. #checks}
  for k, v in pairs(o) do with[k] = v end
  return with
end
is("nn.dense of nothing", sizes(nn.dense(Fill({0, 3}, 1.0), 2, made(ones))), {0.0, 2})
is("nn.dense of no inputs", nn.dense(Fill({2, 0}, 1.0), 1, made(ones)), {{0.0}, {0}})
is("nn.conv2d of nothing", sizes(nn.conv2d(none_there, 3, 3, made(ones))), {0.0, 4, 4, 3})
is("nn.conv2d of a pixel", nn.conv2d(image, 1, 3, made(ones)), {{{{3.0}}}})
is("nn.conv1d of a time", nn.conv1d(Const{{{3.0}}}, 1, 3, made(ones)), {{{3.0}}})
is("nn.conv2d_transpose of nothing",
   sizes(nn.conv2d_transpose(none_there, 3, 3, made(ones))), {0.0, 4, 4, 3})
is("nn.depthwise_conv2d of nothing",
   sizes(nn.depthwise_conv2d(none_there, 3, made(ones))), {0.0, 4, 4, 2})
is("nn.separable_conv2d of nothing",
   sizes(nn.separable_conv2d(none_there, 3, 3, made(ones))), {0.0, 4, 4, 3})
is("nn.locally_connected2d of nothing",
   sizes(nn.locally_connected2d(none_there, 3, 3, made(ones))), {0.0, 4, 4, 3})
is("nn.embedding of nothing", sizes(nn.embedding(Fill({0}, i32(0)), 3, 2, made(ones))), {0.0, 2})
is("nn.embedding_bag of an empty one",
   nn.embedding_bag(i32{{0, 1}, {1, 2}}, 3, 1, made{init = init.ones, lengths = i32{0, 2}}),
   {{0.0}, {1}})
for _, dtype in ipairs{float32, float16, float64} do
  local v = Const({{{1.0}, {3.0}}}, {dtype = dtype})
  is("nn.attention that sees nothing, " .. dtype,
     nn.attention(v, v, v, {mask = Const({{{{false, false}, {true, false}}}}, {dtype = bool})}),
     {{{2.0}, {1.0}}})
end
is("nn.attention of one", nn.attention(Const{{{5.0}}}, Const{{{5.0}}}, Const{{{7.0}}},
                                       {causal = true}), {{{7.0}}})
is("nn.positions of one time", nn.positions(Const{{{0.0, 0.0}}}), {{{0.0, 1}}})
is("nn.transformer of nothing", sizes(nn.transformer(Fill({0, 2, 4}, 1.0), {heads = 2})),
   {0.0, 2, 4})
for _, name in ipairs{"rnn", "lstm", "gru"} do
  local y, h = nn[name](Fill({1, 2, 3}, inf), 2, {name = name .. "0", lengths = i32{0}})
  is("nn." .. name .. " of length 0", y, {{{0.0, 0}, {0, 0}}})
  is("nn." .. name .. " of length 0, its state", h, {{0.0, 0}})
end
is("nn.sequential of none", nn.sequential(zeros2, {}), {0.0, 0})
is("nn.residual", nn.residual(Const{inf}, function(x) return x * 0.5 end), {inf})
local drawn = nn.learned_samples(Const({{0}}, {dtype = int64}), {num_sampled = 3, num_classes = 3})
is("nn.learned_samples of all classes, each once", Cast(Sum(drawn, 0), {DstT = float32}), 3)
for _, name in ipairs{"sampled_softmax", "nce"} do
  local loss = nn[name]{name = name .. "1", inputs = Const{{0.0}}, labels = i32{{0}},
                        num_sampled = 1, num_classes = 2}
  is("nn." .. name .. " of two classes", Select(LessEqual(loss * 0, 0), ZerosLike(loss), loss), 0)
end

-- ---- scores: no rows, one row, weights of 0, one class ----
local no_weights = {weights = Const{0.0, 0.0}}
local function score(name, value, ...)
  is("metric." .. name .. ", check " .. #checks, metric[name](...), value)
end
score("mean", 0, Const{5.0, 6.0}, no_weights)
score("mean", nan, Fill({0}, 1.0))
score("accuracy", 0, zeros2, i32{0, 0}, no_weights)
score("top_k", 0, Const{{1.0, 2}, {1, 2}}, i32{0, 0}, 1, no_weights)
for _, name in ipairs{"precision", "recall", "f1"} do
  for _, average in ipairs{"binary", "macro", "weighted", "micro"} do
    local weighted = {average = average, weights = Const{0.0, 0.0}}
    score(name, 0, Const{0.0, 1.0}, i32{0, 1}, weighted)
    score(name, 1, Const{0.0, 1.0}, i32{0, 1}, {average = average})
    score(name, 0, Const{0.0, 0.0}, i32{1, 1}, {average = average})
    score(name, 0, Fill({0}, 1.0), Fill({0}, i32(0)), {average = average})
  end
end
score("confusion", {{0.0, 0}, {0, 0}}, Fill({0}, 1.0), Fill({0}, i32(0)))
for _, curve in ipairs{"roc", "pr"} do
  score("auc", nan, Const{0.5, 0.6}, i32{0, 0}, {curve = curve})
  score("auc", nan, Fill({0}, 1.0), Fill({0}, i32(0)), {curve = curve})
  score("auc", 0.5, Const{0.5, 0.5}, i32{0, 1}, {curve = curve})
end
score("log_loss", 0, zeros2, i32{0, 1}, no_weights)
score("log_loss", 0, Const{-1e30, 1e30}, i32{0, 1})
score("perplexity", 1, zeros2, i32{0, 1}, no_weights)
score("perplexity", 1, Const{-1e30, 1e30}, i32{0, 1})
for _, name in ipairs{"mse", "rmse", "mae"} do
  score(name, 0, Const{5.0, 6.0}, zeros2, no_weights)
  score(name, nan, Fill({0}, 1.0), Fill({0}, 1.0))
  score(name, inf, Const{inf, 0.0}, zeros2)
end
score("r2", 0, Const{5.0, 6.0}, zeros2) -- as scikit-learn: the target is the same everywhere
score("r2", 1, zeros2, zeros2)
score("rows", {0.0, 0}, zeros2)
score("total", inf, Const(inf))

-- ---- rules: gradient 0 from the first step on, a weight of 0, epsilon 0 ----
local function changed(name, o, loss, w0)
  scope("rule_" .. name:gsub("[^%w]", "_") .. #checks, function()
    local w = variable{name = "w", shape = {#w0}, init = w0}
    local t = minimize(loss(w), o, {variables = {w}})
    last[#last + 1] = t
    control({t}, function() is(name, Abs(w + 0), w0) end)
  end)
end
for name, o in pairs{
  sgd = {}, momentum = {nesterov = true}, adagrad = {initial = 0}, adadelta = {epsilon = 0},
  rmsprop = {epsilon = 0}, adam = {epsilon = 0}, adamw = {epsilon = 0, weight_decay = 0},
  nadam = {epsilon = 0}, radam = {epsilon = 0}, lamb = {epsilon = 0}, lion = {}, adafactor = {},
  lbfgs = {},
} do
  changed("optim." .. name .. " without a gradient", optim[name](o),
          function(w) return Sum(w * zeros2, 0) end, {1.0, 0.0})
  changed("optim." .. name .. " in a minimum", optim[name](o),
          function(w) return Sum(Square(w), 0) end, {0.0, 0.0})
end
changed("optim.ftrl in a minimum", optim.ftrl{initial = 0},
        function(w) return Sum(Square(w), 0) end, {0.0, 0.0})
changed("optim.ftrl without a gradient: linear is 0, and so the weight", optim.ftrl{initial = 0},
        function(w) return Sum(w * zeros2, 0) end, {0.0, 0.0})

for space, functions in pairs(untried) do
  for name in pairs(functions) do error(space .. "." .. name .. " has no check") end
end
right = Pack(checks)
entry.train = group(last)
