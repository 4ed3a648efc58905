-- SPDX-License-Identifier: Apache-2.0
-- Normalization of each row separately, with a scale and an offset per channel.
local tf = ...

-- Normalizes to mean 0 and variance 1 over axes.
local function normalized(x, axes, epsilon)
  local wide = tf.wide(x)
  local apart = wide - Mean(wide, axes, {keep_dims = true})
  local variance = Mean(Square(apart), axes, {keep_dims = true})
  return tf.cast(apart * Rsqrt(variance + (epsilon or 1e-5)), x.dtype)
end

local function scaled(y, channels, o)
  local function make(name, value)
    return variable{name = name, shape = {channels}, dtype = y.dtype, init = value,
                    trainable = o.trainable}
  end
  return y * make("scale", 1) + make("offset", 0)
end

-- Ba, Kiros & Hinton 2016: over the last axis.
function nn.layer_norm(x, o)
  o = tf.options("nn.layer_norm", o, "name epsilon trainable?")
  local size = tf.dim("nn.layer_norm", x, x.rank or 1)
  return scope(o.name or "layer_norm", function()
    return scaled(normalized(x, {x.rank - 1}, o.epsilon), size, o)
  end)
end

-- Wu & He 2018: over all axes of a row, separately for each group of channels (the last axis).
local function by_groups(where, x, groups, o)
  o = tf.options(where, o, "name epsilon trainable?")
  if not x.rank or x.rank < 2 then tf.fail("%s: the rank of %s is too low", where, tostring(x)) end
  local channels = tf.dim(where, x, x.rank)
  groups = tf.number(where .. ": groups", groups or channels)
  if channels % groups ~= 0 then
    tf.fail("%s: %d groups do not divide %d channels", where, groups, channels)
  end
  return scope(o.name or where:sub(4), function()
    local apart = Reshape(x, tf.shape_with(x, 1, {groups, channels // groups}))
    local axes = tf.axes(1, x.rank)
    table.remove(axes, x.rank - 1)
    local y = Reshape(normalized(apart, axes, o.epsilon), tf.shape_with(x, 1, {channels}))
    return scaled(y, channels, o)
  end)
end

function nn.group_norm(x, groups, o)
  return by_groups("nn.group_norm", x, tf.number("nn.group_norm: groups", groups), o)
end

-- Ulyanov et al. 2016: each channel is a group.
function nn.instance_norm(x, o) return by_groups("nn.instance_norm", x, nil, o) end
