-- SPDX-License-Identifier: Apache-2.0
-- Batch normalization (Ioffe & Szegedy 2015). In training the batch's statistics are used, and ops
-- that minimize() runs with every step update moving averages of them; else the averages are used.
local tf = ...

-- The average's update, marked so that minimize() finds it, also in a graph that was read.
local function track(average, value, decay)
  local apart = average - tf.cast(value, average.dtype)
  return AssignSub(average, apart * (1 - decay), {_update = true})
end

local function variables(channels, dtype, o)
  local function make(name, value, trainable)
    return variable{name = name, shape = {channels}, dtype = dtype, init = value,
                    trainable = trainable}
  end
  local trainable = o.trainable ~= false
  return {scale = make("scale", 1, o.scale ~= false and trainable),
          offset = make("offset", 0, o.offset ~= false and trainable),
          mean = make("mean", 0, false), variance = make("variance", 1, false)}
end

-- Statistics of no rows are the averages, which therefore stay, as in Keras.
local function of_rows(x, v, mean, variance)
  local some = Greater(Size(x, {out_type = int64}), 0)
  return Select(some, mean, v.mean), Select(some, variance, v.variance)
end

-- For images, by the fused op; in training it also returns the batch's mean and variance.
local function fused(x, v, training, o, layout)
  local attrs = {epsilon = o.epsilon or 0.001, is_training = training, data_format = layout}
  if not training then
    return (FusedBatchNorm(x, v.scale, v.offset, v.mean, v.variance, attrs))
  end
  local empty = Const({}, {dtype = x.dtype})
  local y, mean, variance = FusedBatchNorm(x, v.scale, v.offset, empty, empty, attrs)
  return y, of_rows(x, v, mean, variance)
end

-- For anything else: over all axes but the last.
local function composed(given, v, training, o)
  local x, wide = tf.wide(given), {}
  for name, of in pairs(v) do wide[name] = tf.wide(of) end
  local mean, variance = wide.mean, wide.variance
  if training then
    local axes = tf.axes(0, x.rank - 2)
    mean = Mean(x, axes)
    mean, variance = of_rows(x, wide, mean, Mean(SquaredDifference(x, mean), axes))
  end
  local y = (x - mean) * (Rsqrt(variance + (o.epsilon or 0.001)) * wide.scale) + wide.offset
  if not training then return tf.cast(y, given.dtype) end
  -- The average is of the unbiased variance, as in the fused op.
  local n = tf.cast(Size(x), x.dtype) / tf.dim("nn.batch_norm", x, x.rank)
  return tf.cast(y, given.dtype), mean, variance * (Maximum(n, 1) / Maximum(n - 1, 1))
end

function nn.batch_norm(x, o)
  o = tf.options("nn.batch_norm", o, "name training decay epsilon layout scale? offset? trainable?")
  if not x.rank then tf.fail("nn.batch_norm: the rank of %s must be known", tostring(x)) end
  local training = o.training ~= false
  if tf.is_tensor(o.training) then
    tf.fail("nn.batch_norm: training is true or false; build the net twice with share()")
  end
  tf.flag("nn.batch_norm", "training", o.training)
  local layout = o.layout or "NHWC"
  local channels = tf.dim("nn.batch_norm", x, layout == "NCHW" and x.rank == 4 and 2 or x.rank)
  return scope(o.name or "batch_norm", function()
    local v = variables(channels, x.dtype, o)
    local y, mean, variance
    if x.rank == 4 then
      y, mean, variance = fused(x, v, training, o, layout)
    else
      y, mean, variance = composed(x, v, training, o)
    end
    if training then
      local decay = o.decay or 0.99
      track(v.mean, mean, decay)
      track(v.variance, variance, decay)
    end
    return y
  end)
end
