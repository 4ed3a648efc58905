-- SPDX-License-Identifier: Apache-2.0
-- Layers with windows sliding over images and sequences: convolutions and pooling.
local tf = ...

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

-- A layer's filter; `unit` is the part of the shape for the initializer, if it is not all of it.
local function filter_of(x, shape, o, unit)
  local initial = o.init or init.glorot_uniform()
  if unit and type(initial) == "function" then
    local f = initial
    initial = function(all, dtype) return f(all, dtype, unit) end
  end
  return variable{name = "W", shape = shape, dtype = x.dtype, init = initial,
                  trainable = o.trainable}
end

-- Finishes a convolution: adds a bias per channel, and applies the activation.
local function finished(where, y, filters, o)
  if o.bias ~= false then
    local b = variable{name = "b", shape = {filters}, dtype = y.dtype, init = o.bias_init,
                       trainable = o.trainable}
    y = BiasAdd(y, b, {data_format = o.layout or "NHWC"})
  end
  return tf.activate(where, y, o.activation)
end

local function convolved(where, x, w, o)
  local layout = o.layout or "NHWC"
  return Conv2D(x, w, {strides = window(where .. ": stride", o.stride or 1, layout),
                       dilations = window(where .. ": dilation", o.dilation or 1, layout),
                       padding = o.padding or "SAME", data_format = layout})
end

-- x [n, height, width, channels] (or layout "NCHW") -> filters channels, each of them computed from
-- the channels of its group
function nn.conv2d(x, filters, size, o)
  local where = "nn.conv2d"
  o = tf.options(where, o, "name groups stride dilation padding layout activation bias? init " ..
                 "bias_init trainable?")
  tf.number(where .. ": filters", filters)
  tf.rank(where, x, 4)
  local groups = tf.number(where .. ": groups", o.groups or 1)
  local channels = tf.dim(where, x, o.layout == "NCHW" and 2 or 4)
  local kernel = pair(where .. ": size", size)
  if channels % groups ~= 0 or filters % groups ~= 0 then
    tf.fail("%s: %d groups do not divide %d channels and %d filters", where, groups, channels,
            filters)
  end
  return scope(o.name or "conv2d", function()
    local w = filter_of(x, {kernel[1], kernel[2], channels // groups, filters}, o)
    return finished(where, convolved(where, x, w, o), filters, o)
  end)
end

-- Converts options for sequences to those for images of height one.
local function one_high(o, name, stride)
  local images = {}
  for key, value in pairs(o) do images[key] = value end
  images.name, images.stride = o.name or name, {1, o.stride or stride}
  if o.dilation then images.dilation = {1, o.dilation} end
  return images
end

-- x [n, time, channels] -> [n, time, filters]
function nn.conv1d(x, filters, size, o)
  o = tf.options("nn.conv1d", o,
                 "name groups stride dilation padding activation bias? init bias_init trainable?")
  tf.rank("nn.conv1d", x, 3)
  tf.dim("nn.conv1d", x, 3)
  tf.number("nn.conv1d: filters", filters)
  tf.number("nn.conv1d: size", size)
  local y = nn.conv2d(ExpandDims(x, 1), filters, {1, size}, one_high(o, "conv1d", 1))
  return Squeeze(y, {squeeze_dims = {1}})
end

-- The transpose of conv2d, from filters to x's channels: images `stride` times as large or, with
-- padding VALID, as large as all windows together.
function nn.conv2d_transpose(x, filters, size, o)
  local where = "nn.conv2d_transpose"
  o = tf.options(where, o,
                 "name stride padding layout activation bias? init bias_init trainable?")
  tf.number(where .. ": filters", filters)
  tf.rank(where, x, 4)
  local layout, padding, out = o.layout or "NHWC", o.padding or "SAME", {}
  local channels = tf.dim(where, x, layout == "NCHW" and 2 or 4)
  local kernel = pair(where .. ": size", size)
  local stride = pair(where .. ": stride", o.stride or 1)
  for i = 1, 2 do
    local n = tf.dim(where, x, i + (layout == "NCHW" and 2 or 1))
    out[i] = padding == "VALID" and (n - 1) * stride[i] + kernel[i] or n * stride[i]
  end
  return scope(o.name or "conv2d_transpose", function()
    local w = filter_of(x, {kernel[1], kernel[2], filters, channels}, o,
                        {kernel[1], kernel[2], channels, filters})
    local image = layout == "NCHW" and {filters, out[1], out[2]} or {out[1], out[2], filters}
    local y = Conv2DBackpropInput(Concat(0, {Slice(Shape(x), {0}, {1}), image}), w, x, {
        strides = window(where .. ": stride", stride, layout), padding = padding,
        data_format = layout})
    return finished(where, y, filters, o)
  end)
end

-- The number of windows along an axis.
local function positions(where, size, window, stride, padding)
  if padding == "SAME" then return (size + stride - 1) // stride end
  if size < window then tf.fail("%s: a window of %d does not fit into %d", where, window, size) end
  return (size - window) // stride + 1
end

-- x [n, height, width, channels] (or layout "NCHW") -> filters channels, with a separate filter and
-- bias for each position.
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
    local w = filter_of(x, {out[1], out[2], table.unpack(one)}, o, one)
    local y = LocallyConnected2D(x, w, {strides = window(where .. ": stride", stride, layout),
                                        padding = padding, data_format = layout})
    if o.bias ~= false then
      local shape = first == 3 and {filters, out[1], out[2]} or {out[1], out[2], filters}
      y = y + variable{name = "b", shape = shape, dtype = x.dtype, init = o.bias_init,
                       trainable = o.trainable}
    end
    return tf.activate(where, y, o.activation)
  end)
end

-- x [n, height, width, channels] (or layout "NCHW") -> channels * multiplier, each from one channel
function nn.depthwise_conv2d(x, size, o)
  local where = "nn.depthwise_conv2d"
  o = tf.options(where, o, "name multiplier stride dilation padding layout activation bias? " ..
                 "init bias_init trainable?")
  tf.rank(where, x, 4)
  local channels = tf.dim(where, x, o.layout == "NCHW" and 2 or 4)
  local multiplier = tf.number(where .. ": multiplier", o.multiplier or 1)
  local kernel = pair(where .. ": size", size)
  return scope(o.name or "depthwise_conv2d", function()
    local w = filter_of(x, {kernel[1], kernel[2], channels, multiplier}, o,
                        {kernel[1], kernel[2], 1, multiplier})
    local grouped = Reshape(w, {kernel[1], kernel[2], 1, channels * multiplier})
    return finished(where, convolved(where, x, grouped, o), channels * multiplier, o)
  end)
end

-- A depthwise convolution, then a 1x1 convolution of its channels (Chollet 2017).
function nn.separable_conv2d(x, filters, size, o)
  o = tf.options("nn.separable_conv2d", o, "name multiplier stride dilation padding layout " ..
                 "activation bias? init bias_init trainable?")
  tf.number("nn.separable_conv2d: filters", filters)
  return scope(o.name or "separable_conv2d", function()
    local y = nn.depthwise_conv2d(x, size, {
        name = "depthwise", multiplier = o.multiplier, stride = o.stride, dilation = o.dilation,
        padding = o.padding, layout = o.layout, bias = false, init = o.init,
        trainable = o.trainable})
    return nn.conv2d(y, filters, 1, {name = "pointwise", layout = o.layout,
                                     activation = o.activation, bias = o.bias, init = o.init,
                                     bias_init = o.bias_init, trainable = o.trainable})
  end)
end

local function pool(where, op)
  return function(x, size, o)
    o = tf.options(where, o, "name stride padding layout")
    tf.rank(where, x, 4)
    local layout = o.layout or "NHWC"
    return op(x, {ksize = window(where .. ": size", size, layout),
                  strides = window(where .. ": stride", o.stride or size, layout),
                  padding = o.padding or "VALID", data_format = layout, name = o.name})
  end
end

nn.max_pool = pool("nn.max_pool", MaxPool)
nn.avg_pool = pool("nn.avg_pool", AvgPool)

-- Pooling of sequences [n, time, channels].
local function pool1d(where, layer)
  return function(x, size, o)
    o = tf.options(where, o, "name stride padding")
    tf.rank(where, x, 3)
    tf.number(where .. ": size", size)
    local name = o.name or "/" .. tf.unique(where:sub(4))
    local y = layer(ExpandDims(x, 1), {1, size}, one_high(o, name, size))
    return Squeeze(y, {squeeze_dims = {1}})
  end
end

nn.max_pool1d = pool1d("nn.max_pool1d", nn.max_pool)
nn.avg_pool1d = pool1d("nn.avg_pool1d", nn.avg_pool)

-- Sequences or images -> [n, channels]
local function global_pool(where, op)
  return function(x, o)
    o = tf.options(where, o, "name layout")
    if not x.rank or x.rank < 3 then
      tf.fail("%s: %s must have axes between rows and channels", where, tostring(x))
    end
    local first = o.layout == "NCHW" and 2 or 1
    return op(x, tf.axes(first, first + x.rank - 3), {name = o.name})
  end
end

nn.global_max_pool = global_pool("nn.global_max_pool", Max)
nn.global_avg_pool = global_pool("nn.global_avg_pool", Mean)
