-- SPDX-License-Identifier: Apache-2.0
-- Functions and gradients at singular points: each `is(name, tensor, {values})` is a check, of
-- which `right` has whether it is so: the same values, NaN where it is NaN, a zero of the same
-- sign. The values are TensorFlow's and PyTorch's where these agree, else what docs/language.md
-- says.
local nan, inf = 0 / 0, 1 / 0
local checks = {}

-- What is called below is taken from the functions that no check has tried.
local untried = {}
for space, functions in pairs{clip = clip, init = init, metric = metric, nn = nn, optim = optim,
                              schedule = schedule} do
  untried[space] = {}
  for name, f in pairs(functions) do
    if f ~= init.zeros and f ~= init.ones then -- which are given as they are
      untried[space][name] = true
      functions[name] = function(...)
        untried[space][name] = nil
        return f(...)
      end
    end
  end
end

local function is(name, x, want)
  local e = Const(want, {dtype = x.dtype})
  local nans = LogicalAnd(IsNan(x), IsNan(e))
  local same = LogicalAnd(Equal(x, e), Equal(1 / x, 1 / e))
  if x.dtype == float16 then same = LessEqual(Abs(x - e), Abs(e) * 0.01) end
  checks[#checks + 1] = All(Reshape(LogicalOr(nans, same), {-1}), 0)
  print("check", name)
end

local function f16(x) return Const(x, {dtype = float16}) end
local function slope(f, x)
  if type(x) == "table" or type(x) == "number" then x = Const(x) end
  return gradients(f(x), x)
end

-- ---- clipping ----
for _, v in ipairs{0.0, 1e-23, 1e-40} do
  is("clip.by_norm at " .. v, slope(function(x) return clip.by_norm(x, 1) end, {v, v}), {1.0, 1})
  is("clip.by_average_norm at " .. v,
     slope(function(x) return clip.by_average_norm(x, 1) end, {v, v}), {1.0, 1})
  is("clip.by_global_norm at " .. v,
     slope(function(x) return clip.by_global_norm({x}, 1)[1] end, {v, v}), {1.0, 1})
  is("clip.global_norm at " .. v,
     Floor(slope(function(x) return clip.global_norm{x} end, {v, v})), {0.0, 0})
end
is("clip.by_norm", clip.by_norm(Const{0.3, 0.4}, 0.5), {0.3, 0.4})
is("clip.by_norm of inf", clip.by_norm(Const{inf, 1.0}, 1), {nan, 0})
is("clip.by_norm of one", clip.by_norm(Const{-8.0}, 2), {-2.0})
is("clip.by_norm of many in 16 bits", Max(clip.by_norm(Fill({100000}, f16(2)), 632.456), 0), 2)
is("clip.by_average_norm in 16 bits",
   Max(clip.by_average_norm(Fill({70000}, f16(1)), 1), 0), 1)
-- |x| is 632.456, the bound half of it: 1 / 2 - x / 2 sum(x) / |x|^2
local steep = slope(function(x) return clip.by_norm(x, 316.228) end,
                    Concat(0, {Fill({40000}, f16(1)), Fill({40000}, f16(3))}))
is("clip.by_norm's slope in 16 bits", Pack{Max(steep, 0), Min(steep, 0)}, {0.3, -0.1})
is("clip.by_value at its ends",
   slope(function(x) return clip.by_value(x, -1, 1) end, {-1.0, 1.0, 2.0}), {1.0, 1, 0})

-- ---- losses ----
local two, none = Const{1.0, 2.0}, {weights = Const{0.0, 0.0}}
local answers = Const{{1.0, 2.0}, {3.0, 4.0}}
for name, loss in pairs{
  mse = function(x, w) return nn.mse(x, Const{0.5, 0.0}, w) end,
  mae = function(x, w) return nn.mae(x, Const{0.5, 0.0}, w) end,
  huber = function(x, w) return nn.huber(x, Const{0.5, 0.0}, w) end,
  hinge = function(x, w) return nn.hinge(x, Const{0.0, 1.0}, w) end,
  sigmoid = function(x, w) return nn.sigmoid_cross_entropy(x, Const{0.0, 1.0}, w) end,
  softmax = function(x, w)
    return nn.cross_entropy(answers * x, Const({0, 1}, {dtype = int32}), w)
  end,
} do
  is(name .. ", weights of 0", loss(two, none), 0.0)
  is(name .. ", weights of 0, its gradient", Abs(slope(function(x) return loss(x, none) end, two)),
     {0.0, 0})
end
for _, gamma in ipairs{0, 0.25, 0.5, 1, 2} do
  local of_classes = function(x)
    return nn.focal(x, Const({0}, {dtype = int32}), {gamma = gamma})
  end
  local of_answers = function(x) return nn.focal(x, Const{1.0, 0.0}, {gamma = gamma}) end
  is("focal of classes where all is right, gamma " .. gamma,
     Abs(slope(of_classes, {{200.0, -200.0}})), {{0.0, 0}})
  is("focal of answers where all is right, gamma " .. gamma,
     Abs(slope(of_answers, {200.0, -200.0})), {0.0, 0})
end
is("mse, no rows", nn.mse(Const({}, {dtype = float32}), Const({}, {dtype = float32})), nan)
is("mse of many in 16 bits, weighted",
   nn.mse(Fill({70000}, f16(1)), Fill({70000}, f16(0)), {weights = Fill({70000}, f16(1))}), 1)
is("mse of many in 16 bits, its gradient",
   Max(slope(function(x) return nn.mse(x, ZerosLike(x)) end, Fill({70000}, f16(1))), 0), 2 / 70000)
is("r2 of a constant", nn.r2(Const{1.0, 1.0}, Const{1.0, 1.0}), nan)
is("r2 of many in 16 bits", nn.r2(Fill({70000}, f16(1)), Tile(f16{0, 2}, {35000})), 0)
is("mae at 0", slope(function(x) return nn.mae(x, Const{0.0}) end, {0.0}), {0.0})
is("sigmoid_cross_entropy at 0",
   slope(function(x) return nn.sigmoid_cross_entropy(x, Const{1.0}) end, {0.0}), {-0.5})

-- ---- layers ----
local dropped = nn.dropout(Fill({64}, inf), 0.5, {training = true, seed = 1})
is("dropout of inf", Sum(Cast(IsNan(dropped), {DstT = float32}), 0), 0.0)
is("dropout of nan", Cast(Less(Sum(Cast(IsNan(nn.dropout(Fill({64}, nan), 0.5,
   {training = true, seed = 1})), {DstT = float32}), 0), 64), {DstT = float32}), 1.0)
is("dropout, gradient of what it drops", Sum(slope(function(x)
     return nn.dropout(x, 0.5, {training = true, seed = 1, name = "d"}) - 0
   end, Fill({64}, inf)) * 0, 0), 0.0)
is("flatten of nothing", Cast(Shape(nn.flatten(Fill({5, 0, 3}, 1.0))), {DstT = float32}), {5.0, 0})
is("rows of nothing, flattened",
   Cast(Shape(Reshape(Fill({0, 4, 3}, 1.0), {0, -1})), {DstT = float32}), {0.0, 12})

-- ---- counts ----
local many = Fill({70000}, f16(1))
is("gradient of Mean in 16 bits", Max(slope(function(x) return Mean(x, 0) end, many), 0), 1 / 70000)
is("gradient of Max in 16 bits", Max(slope(function(x) return Max(x, 0) end, many), 0), 1 / 70000)
local unknown = Reshape(many, Cast(Floor(Sum(Fill({1}, 70000.0), 0)), {DstT = int32}) * Const{1})
is("gradient of Mean in 16 bits, a shape not known",
   Max(slope(function(x) return Mean(x, 0) end, unknown), 0), 1 / 70000)

-- ---- elements ----
is("gradient of x^0", slope(function(x) return Pow(x, 0) end, {0.0, 1e-40, 2.0}), {0.0, 0, 0})
is("gradient of x^y where y is 0",
   slope(function(x) return Pow(x, Const{0.0, 0, 1, 2}) end, {0.0, 2.0, 0.0, 0.0}), {0.0, 0, 1, 0})
is("gradient of y where x is not above 0",
   slope(function(y) return Pow(Const{0.0, 0.0, -1.0, 1.0}, y) end, {-1.0, 0.0, 0.5, 2.0}),
   {0.0, 0, 0, 0})
is("square vectors of Pow", slope(function(y) return Pow(Const{1.0, -1.0}, Reshape(y, {2, 1})) end,
   {2.0, 2.0}), {0.0, 0})
is("gradient of 0 / y for small y", slope(function(y) return Const{0.0, 0.0} / y end, {1e-40, 1.0}),
   {-0.0, -0.0})
is("gradient of 0 / y in 16 bits",
   slope(function(y) return f16{0} / y end, f16{1e-6}), {0})
is("gradient of Abs at 0", slope(Abs, {0.0}), {0.0})
is("gradient of Sqrt at 0", slope(Sqrt, {0.0}), {inf})
is("gradient of Relu at 0", slope(Relu, {0.0, nan}), {0.0, 0})
is("gradient of Max of equals", slope(function(x) return Max(x, 0) end, {2.0, 2, 1}), {0.5, 0.5, 0})
is("gradient of Prod with a 0", slope(function(x) return Prod(x, 0) end, {0.0, 2, 3}), {6.0, 0, 0})
is("gradient of Cumprod with a 0", slope(function(x) return Cumprod(x, 0) end, {0.0, 2, 3}),
   {9.0, 0, 0})
is("gradient of Cumprod with two", slope(function(x) return Cumprod(x, 0) end, {2.0, 0, 3, 0}),
   {1.0, 8, 0, 0})
is("gradient of Cumprod of nothing",
   Cast(Shape(slope(function(x) return Cumprod(x, 0) end, Fill({0, 3}, 1.0))), {DstT = float32}),
   {0.0, 3})
for name, op in pairs{Tanh = Tanh, Log1p = Log1p, Sin = Sin, Erf = Erf, Elu = Elu, Floor = Floor,
                      Ceil = Ceil, Round = Round, Sqrt = Sqrt, Identity = Identity} do
  is(name .. " of -0", op(Const{-0.0, 0.0}), {-0.0, 0.0})
  is(name .. " of -0, in float64", op(Const({-0.0, 0.0}, {dtype = float64})), {-0.0, 0.0})
end
is("Tanh at its ends", Tanh(Const{inf, -inf, nan, 1e-40}), {1.0, -1, nan, 1e-40})
is("gradient of Tanh at its ends", slope(Tanh, {inf, -inf}), {0.0, 0})
is("gradient of Sigmoid at its ends", Abs(slope(Sigmoid, {inf, -inf})), {0.0, 0})
is("Softplus at its ends", Softplus(Const{inf, -inf}), {inf, 0.0})
is("gradient of Softplus at its ends", slope(Softplus, {inf, -inf}), {1.0, 0})
is("gradient of Erf at its ends", slope(Erf, {inf, -inf}), {0.0, 0})
is("% and //", Const{-7.0, 7.0, 1.0, -6.0} % Const{3.0, -3.0, 0.1, 3.0} * 0 +
   Const{-7.0, 7.0, 1.0, -6.0} // Const{3.0, -3.0, 0.25, 3.0}, {-3.0, -3, 4, -2})
is("% of floats", Const{-7.0, 7.0, 6.0, -6.0, inf, 5.0, 5.0, -5.0} %
   Const{3.0, -3.0, -3.0, 3.0, 1.0, 0.0, inf, inf}, {2.0, -2, -0.0, 0.0, nan, nan, 5, inf})
is("// of floats", Const{6.0, -1.0, 1.0, inf, 1.0, 0.0} // Const{-4.0, inf, 0.0, 1.0, -inf, -1.0},
   {-2.0, -1, inf, nan, -1, -0.0})

-- ---- updates: a weight that has had no gradient stays ----
local last = {}
local function trained(name, optimizer, dtype)
  scope(name, function()
    local w = variable{name = "w", shape = {3}, dtype = dtype, init = {1.0, 1.0, 1.0}}
    local loss = Sum(w * Const({1.0, 0.0, 1e-30}, {dtype = dtype}), 0)
    local t = minimize(loss, optimizer, {variables = {w}})
    last[#last + 1] = t
    control({t}, function() is(name, Slice(w + 0, {1}, {2}), {1.0, 1.0}) end)
  end)
end
for _, dtype in ipairs{float32, float16} do
  trained("adagrad/" .. dtype, optim.adagrad{initial = 0}, dtype)
  trained("adadelta/" .. dtype, optim.adadelta{epsilon = 0}, dtype)
  trained("rmsprop/" .. dtype, optim.rmsprop{epsilon = 0, rho = 0, rate = 1e-3}, dtype)
  trained("adam/" .. dtype, optim.adam{epsilon = 0}, dtype)
end

-- ---- averages in 16 bits ----
local ema_of = variable{name = "averaged", shape = {}, dtype = float16, init = 1}
local average = ema(0.9, {steps = Const(100000, {dtype = int64})})
last[#last + 1] = average.apply(ema_of)
control({last[#last]}, function() is("ema after 100,000 steps", average.average(ema_of) + 0, 1) end)
local far = variable{name = "far", shape = {}, dtype = float16, init = 1}
local slow = ema(0.9999, {steps = Const(100000, {dtype = int64})})
last[#last + 1] = control({Assign(far, f16(10000))}, function() return slow.apply(far) end)
control({last[#last]}, function() is("ema by a small share", slow.average(far) + 0, 2) end)
is("nn.embedding_bag of many in 16 bits",
   nn.embedding_bag(Fill({1, 70000}, Const(0)), 1, 1,
                    {dtype = float16, init = init.ones, lengths = Const{69000}}), {{1.0}})
-- The slope of y for gradients dy = x is x' / s - x' / s^3, with x' = x - 1 and s^2 = 1.001.
local twos = Reshape(Concat(0, {Fill({40000}, f16(0)), Fill({40000}, f16(2))}), {80000, 1})
is("nn.batch_norm's slope in 16 bits",
   Max(gradients(nn.batch_norm(twos, {name = "twos"}), twos, {grad_ys = twos}), {0, 1}), 0.0009985)

local x = RandomStandardNormal({1000, 128}, {dtype = float16, seed = 1})
local y = nn.batch_norm(x, {name = "norm"})
last[#last + 1] = minimize(Mean(y * y, {0, 1}), optim.sgd{rate = 0})
control({last[#last]}, function()
  is("batch_norm's variance in 16 bits", Mean(tensor "norm/variance" + 0, 0), 1)
end)
