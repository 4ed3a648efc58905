-- SPDX-License-Identifier: Apache-2.0
-- Layers. Each makes its variables and nodes in a scope of its name.
local tf = ...

local function activate(where, x, activation)
  if not activation then return x end
  if type(activation) ~= "function" then
    tf.fail("%s: activation must be a function of a tensor, as Relu, not %s", where,
            tostring(activation))
  end
  return activation(x)
end

-- x [n, inputs] -> [n, units]: activation(x W + b)
function nn.dense(x, units, o)
  o = tf.options("nn.dense", o, "name activation bias? init bias_init trainable?")
  units = tf.number("nn.dense: units", units)
  tf.rank("nn.dense", x, 2)
  local inputs = tf.dim("nn.dense", x, 2)
  return scope(o.name or "dense", function()
    local w = variable{name = "W", shape = {inputs, units}, dtype = x.dtype,
                       init = o.init or init.glorot_uniform(), trainable = o.trainable}
    local y = MatMul(x, w)
    if o.bias ~= false then
      local b = variable{name = "b", shape = {units}, dtype = x.dtype, init = o.bias_init,
                         trainable = o.trainable}
      y = BiasAdd(y, b)
    end
    return activate("nn.dense", y, o.activation)
  end)
end

-- A window or stride: a number, or {height, width}; as an attribute in the layout's order.
local function pair(where, value)
  if type(value) == "number" then value = {value, value} end
  if type(value) ~= "table" or #value ~= 2 then
    tf.fail("%s must be a number or {height, width}", where)
  end
  return {tf.number(where, value[1]), tf.number(where, value[2])}
end

local function window(where, value, layout)
  local p = pair(where, value)
  return layout == "NCHW" and {1, 1, p[1], p[2]} or {1, p[1], p[2], 1}
end

-- x [n, height, width, channels] (or layout "NCHW") -> filters channels
function nn.conv2d(x, filters, size, o)
  o = tf.options("nn.conv2d", o,
                 "name stride dilation padding layout activation bias? init bias_init trainable?")
  tf.number("nn.conv2d: filters", filters)
  tf.rank("nn.conv2d", x, 4)
  local layout = o.layout or "NHWC"
  local channels = tf.dim("nn.conv2d", x, layout == "NCHW" and 2 or 4)
  local kernel = pair("nn.conv2d: size", size)
  return scope(o.name or "conv2d", function()
    local w = variable{name = "W", shape = {kernel[1], kernel[2], channels, filters},
                       dtype = x.dtype, init = o.init or init.glorot_uniform(),
                       trainable = o.trainable}
    local y = Conv2D(x, w, {strides = window("nn.conv2d: stride", o.stride or 1, layout),
                            dilations = window("nn.conv2d: dilation", o.dilation or 1, layout),
                            padding = o.padding or "SAME", data_format = layout})
    if o.bias ~= false then
      local b = variable{name = "b", shape = {filters}, dtype = x.dtype, init = o.bias_init,
                         trainable = o.trainable}
      y = BiasAdd(y, b, {data_format = layout})
    end
    return activate("nn.conv2d", y, o.activation)
  end)
end

-- How many windows there are along an axis.
local function positions(where, size, window, stride, padding)
  if padding == "SAME" then return (size + stride - 1) // stride end
  if size < window then tf.fail("%s: a window of %d does not fit into %d", where, window, size) end
  return (size - window) // stride + 1
end

-- x [n, height, width, channels] (or layout "NCHW") -> filters channels, by a filter and a bias of
-- its own for each position.
function nn.locally_connected2d(x, filters, size, o)
  local where = "nn.locally_connected2d"
  o = tf.options("nn.locally_connected2d", o,
                 "name stride padding layout activation bias? init bias_init trainable?")
  tf.number(where .. ": filters", filters)
  tf.rank(where, x, 4)
  local layout, padding = o.layout or "NHWC", o.padding or "SAME"
  local first = layout == "NCHW" and 3 or 2
  local channels = tf.dim(where, x, layout == "NCHW" and 2 or 4)
  local kernel = pair(where .. ": size", size)
  local stride = pair(where .. ": stride", o.stride or 1)
  local out = {}
  for i = 1, 2 do
    out[i] = positions(where, tf.dim(where, x, first + i - 1), kernel[i], stride[i], padding)
  end
  return scope(o.name or "locally_connected2d", function()
    local one = {kernel[1], kernel[2], channels, filters}
    local initial = o.init or init.glorot_uniform()
    if type(initial) == "function" then
      local f = initial
      initial = function(shape, dtype) return f(shape, dtype, one) end
    end
    local w = variable{name = "W", shape = {out[1], out[2], table.unpack(one)}, dtype = x.dtype,
                       init = initial, trainable = o.trainable}
    local y = LocallyConnected2D(x, w, {strides = window(where .. ": stride", stride, layout),
                                        padding = padding, data_format = layout})
    if o.bias ~= false then
      local shape = first == 3 and {filters, out[1], out[2]} or {out[1], out[2], filters}
      y = y + variable{name = "b", shape = shape, dtype = x.dtype, init = o.bias_init,
                       trainable = o.trainable}
    end
    return activate(where, y, o.activation)
  end)
end

local function pool(where, op)
  return function(x, size, o)
    o = tf.options(where, o, "name stride padding layout")
    local layout = o.layout or "NHWC"
    return op(x, {ksize = window(where .. ": size", size, layout),
                  strides = window(where .. ": stride", o.stride or size, layout),
                  padding = o.padding or "VALID", data_format = layout, name = o.name})
  end
end

nn.max_pool = pool("nn.max_pool", MaxPool)
nn.avg_pool = pool("nn.avg_pool", AvgPool)

-- [n, a, b, ...] -> [n, a b ...]
function nn.flatten(x, o)
  o = tf.options("nn.flatten", o, "name")
  local size = 1
  for axis = 2, x.rank or tf.fail("nn.flatten: the rank of %s must be known", tostring(x)) do
    size = size * tf.dim("nn.flatten", x, axis)
  end
  -- What is open beside a 0 would not be the number of rows.
  local rows = size == 0 and Slice(Shape(x), {0}, {1})
  return Reshape(x, rows and Concat(0, {rows, {0}}) or {-1, size}, {name = o.name})
end

-- Keeps each element with probability `keep` and scales it by 1/keep; of others, which may be
-- infinite, 0 remains. training = false: x itself;
-- a bool tensor decides at run time.
function nn.dropout(x, keep, o)
  o = tf.options("nn.dropout", o, "name training seed")
  if type(o.training) ~= "boolean" and o.training ~= nil and not tf.is_tensor(o.training) then
    tf.fail("nn.dropout: training must be true or false or a tensor, not %s", tf.show(o.training))
  end
  if o.training == false or keep == 1 then return x end
  if type(keep) == "number" and not (keep > 0 and keep <= 1) then
    tf.fail("nn.dropout: keep must be in (0, 1], not %s", tostring(keep))
  end
  local function drop()
    local noise = RandomUniform(Shape(x), {dtype = x.dtype, seed = o.seed})
    -- A mask, not a factor, as 0 inf is NaN; row by row, which Select is not.
    return ReluGrad(x / keep, Floor(noise + keep))
  end
  return scope(o.name or "dropout", function()
    if tf.is_tensor(o.training) then
      return cond(o.training, drop, function() return x end)
    end
    return drop()
  end)
end

-- ids -> rows of a table [n, size], which may be cut into partitions
function nn.embedding(ids, n, size, o)
  o = tf.options("nn.embedding", o, "name init dtype trainable? partitions")
  tf.number("nn.embedding: n", n)
  tf.number("nn.embedding: size", size)
  return scope(o.name or "embedding", function()
    local w = variable{name = "W", shape = {n, size},
                       dtype = o.dtype, init = o.init or init.uniform{min = -1, max = 1},
                       trainable = o.trainable, partitions = o.partitions}
    return Gather(w, ids)
  end)
end

-- Local response normalization across channels (Krizhevsky et al. 2012).
function nn.lrn(x, o)
  o = tf.options("nn.lrn", o, "name radius bias alpha beta")
  return LRN(x, {depth_radius = o.radius, bias = o.bias, alpha = o.alpha, beta = o.beta,
                 name = o.name})
end
