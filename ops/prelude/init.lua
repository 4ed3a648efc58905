-- SPDX-License-Identifier: Apache-2.0
-- Initializers: functions from shape and type to a tensor, and from one unit's part of the shape,
-- if that is not all of it. The random ones have no state: a value follows from the script's seed
-- and the node's name.
local tf = ...

init = {}

-- Accepts the part of one unit and ignores it: layers pass it to all initializers.
function init.constant(value)
  return function(shape, dtype, _)
    if #shape == 0 then return Const(value, {dtype = dtype}) end
    return Fill(Const(shape, {dtype = int32}), Const(value, {dtype = dtype}))
  end
end

init.zeros = init.constant(0)
init.ones = init.constant(1)

local function dims(shape) return Const(shape, {dtype = int32, name = "shape"}) end

function init.uniform(o)
  o = tf.options("init.uniform", o, "min max seed")
  local min, max = o.min or -0.05, o.max or 0.05
  if type(min) == "number" and type(max) == "number" and min > max then
    tf.fail("init.uniform: min is %g, above max, which is %g", min, max)
  end
  return function(shape, dtype)
    return RandomUniform(dims(shape), {dtype = dtype, seed = o.seed}) * (max - min) + min
  end
end

local function normal(where, op)
  return function(o)
    o = tf.options(where, o, "mean stddev seed")
    local mean, stddev = o.mean or 0, o.stddev or 0.05
    return function(shape, dtype)
      local x = op(dims(shape), {dtype = dtype, seed = o.seed}) * stddev
      return mean == 0 and x or x + mean
    end
  end
end

init.normal = normal("init.normal", RandomStandardNormal)
init.truncated_normal = normal("init.truncated_normal", TruncatedNormal)

-- Counts inputs and outputs of one unit: a matrix [in, out], or a filter [height, width, in, out],
-- whose window counts for both.
local function fans(shape)
  local window = 1
  for i = 1, #shape - 2 do window = window * shape[i] end
  local n_in = shape[#shape - 1] or shape[1] or 1
  return window * n_in, window * (shape[#shape] or 1)
end

-- The standard deviation of a standard normal distribution truncated at two deviations.
local CUT_DEVIATION = 0.87962566103423978

-- Variance scale / fan, fan being that of the inputs ("in"), the outputs ("out") or their mean
-- ("average"); uniform, or normal truncated at two of its original standard deviations.
function init.variance_scaling(o)
  o = tf.options("init.variance_scaling", o, "scale fan uniform? seed")
  local fan = o.fan or "in"
  if fan ~= "in" and fan ~= "out" and fan ~= "average" then
    tf.fail("init.variance_scaling: fan must be in, out or average, not %s", tostring(fan))
  end
  return function(shape, dtype, part)
    local n_in, n_out = fans(part or shape)
    local n = fan == "out" and n_out or fan == "average" and (n_in + n_out) / 2 or n_in
    local variance = (o.scale or 1) / math.max(n, 1)
    if o.uniform then
      local limit = math.sqrt(3 * variance)
      return init.uniform{min = -limit, max = limit, seed = o.seed}(shape, dtype)
    end
    local stddev = math.sqrt(variance) / CUT_DEVIATION
    return init.truncated_normal{stddev = stddev, seed = o.seed}(shape, dtype)
  end
end

local function scaled(name, scale, fan, uniform)
  init[name] = function(o)
    o = tf.options("init." .. name, o, "seed")
    return init.variance_scaling{scale = scale, fan = fan, uniform = uniform, seed = o.seed}
  end
end

-- Glorot & Bengio 2010; He et al. 2015; LeCun et al. 1998.
scaled("glorot_uniform", 1, "average", true)
scaled("glorot_normal", 1, "average", false)
scaled("he_uniform", 2, "in", true)
scaled("he_normal", 2, "in", false)
scaled("lecun_uniform", 1, "in", true)
scaled("lecun_normal", 1, "in", false)
init.xavier = init.glorot_uniform

-- Saxe et al. 2014: orthonormal columns, or rows if these are fewer; all axes but the last count as
-- rows. They are those of QR with a positive diagonal, by Cholesky: twice, as the first pass loses
-- digits by the square of the condition number.
function init.orthogonal(o)
  o = tf.options("init.orthogonal", o, "gain seed")
  return function(shape, dtype)
    if #shape < 2 then
      tf.fail("init.orthogonal: {%s} is no matrix", table.concat(shape, ", "))
    end
    local rows, columns = 1, shape[#shape]
    for i = 1, #shape - 1 do rows = rows * shape[i] end
    local long, short = math.max(rows, columns), math.min(rows, columns)
    local q = RandomStandardNormal({long, short}, {dtype = float64, seed = o.seed})
    for _ = 1, 2 do
      local l = Cholesky(MatMul(q, q, {transpose_a = true}))
      q = Transpose(MatrixTriangularSolve(l, Transpose(q, {1, 0})), {1, 0})
    end
    if rows < columns then q = Transpose(q, {1, 0}) end
    return Reshape(tf.cast(q * (o.gain or 1), dtype), shape)
  end
end
