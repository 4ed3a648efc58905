-- SPDX-License-Identifier: Apache-2.0
-- Ops that are bound by memory or by a function of each element, one entry `all`; peer_elements.py
-- has the same by the same names. tf-graph -D n=ROWS elements.lua
local n = D.n or 2048

local function data(name, shape, init)
  return variable{name = name, shape = shape, init = init, trainable = false}
end

local x = data("x", {n, n}, init.normal{stddev = 1})
local y = data("y", {n, n}, init.uniform{min = 0.5, max = 2})
local g = data("g", {n, n}, init.normal{stddev = 1})
local image = data("image", {16, 64, 64, 64}, init.normal{stddev = 1})
local whole = Cast(y * 100, {DstT = int32})
local rows = Cast(Range(0, n, 1), {DstT = int32})
local positive, half = Greater(x, 0.0), Slice(x, {0, 0}, {n, n // 2})
local row, column = Slice(y, {0, 0}, {1, n}), Slice(y, {0, 0}, {n, 1})

local ops = {
  abs = function() return Abs(x) end,
  add = function() return x + y end,
  add_row = function() return x + row end,
  add_column = function() return x + column end,
  add_n = function() return AddN{x, y, g} end,
  all = function() return All(positive, {1}) end,
  argmax_column = function() return ArgMax(x, 0) end,
  argmax_row = function() return ArgMax(x, 1) end,
  average_pool = function()
    return AvgPool(image, {ksize = {1, 3, 3, 1}, strides = {1, 2, 2, 1}, padding = "SAME"})
  end,
  cast_bfloat16 = function() return Cast(x, {DstT = bfloat16}) end,
  cast_float16 = function() return Cast(x, {DstT = float16}) end,
  cast_from_int32 = function() return Cast(whole, {DstT = float32}) end,
  cast_int32 = function() return Cast(x, {DstT = int32}) end,
  clip = function() return Minimum(Maximum(x, -1), 1) end,
  concat = function() return Concat(1, {x, y}) end,
  cumsum_column = function() return Cumsum(x, 0) end,
  cumsum_row = function() return Cumsum(x, 1) end,
  div = function() return x / y end,
  elu = function() return Elu(x) end,
  elu_grad = function() return EluGrad(g, x) end,
  erf = function() return Erf(x) end,
  exp = function() return Exp(x) end,
  floor = function() return Floor(x) end,
  floor_div = function() return FloorDiv(x, y) end,
  gather = function() return Gather(x, rows) end,
  greater = function() return Greater(x, y) end,
  int_div = function() return FloorDiv(whole, 7) end,
  l2_loss = function() return L2Loss(x) end,
  log = function() return Log(y) end,
  log1p = function() return Log1p(y) end,
  log_softmax = function() return LogSoftmax(x) end,
  max_all = function() return Max(x, {0, 1}) end,
  max_column = function() return Max(x, {0}) end,
  max_row = function() return Max(x, {1}) end,
  max_pool = function()
    return MaxPool(image, {ksize = {1, 3, 3, 1}, strides = {1, 2, 2, 1}, padding = "SAME"})
  end,
  mean_all = function() return Mean(x, {0, 1}) end,
  mod = function() return Mod(x, y) end,
  normal = function() return RandomStandardNormal({n, n}, {dtype = float32}) end,
  one_hot = function() return OneHot(rows, n, 1.0, 0.0) end,
  pad = function() return Pad(x, {{1, 1}, {1, 1}}) end,
  pow = function() return Pow(y, x) end,
  prod_row = function() return Prod(x, {1}) end,
  relu = function() return Relu(x) end,
  relu_grad = function() return ReluGrad(g, x) end,
  rsqrt = function() return Rsqrt(y) end,
  segment_sum = function() return UnsortedSegmentSum(x, rows, n) end,
  select = function() return Select(positive, x, y) end,
  sigmoid = function() return Sigmoid(x) end,
  sin = function() return Sin(x) end,
  softmax = function() return Softmax(x) end,
  softplus = function() return Softplus(x) end,
  softplus_grad = function() return SoftplusGrad(g, x) end,
  sqrt = function() return Sqrt(y) end,
  sum_all = function() return Sum(x, {0, 1}) end,
  sum_column = function() return Sum(x, {0}) end,
  sum_row = function() return Sum(x, {1}) end,
  tanh = function() return Tanh(x) end,
  tanh_grad = function() return TanhGrad(x, g) end,
  tile = function() return Tile(half, {1, 2}) end,
  top_k = function() return (TopKV2(x, 5)) end,
  transpose = function() return Transpose(x, {1, 0}) end,
  transpose_image = function() return Transpose(image, {0, 3, 1, 2}) end,
  truncated_normal = function() return TruncatedNormal({n, n}, {dtype = float32}) end,
  uniform = function() return RandomUniform({n, n}, {dtype = float32}) end,
}

local results = {}
for name in pairs(ops) do results[#results + 1] = name end
table.sort(results)
for i, name in ipairs(results) do results[i] = scope(name, ops[name]) end
entry.all = group(results)
