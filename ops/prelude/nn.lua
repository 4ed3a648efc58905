-- SPDX-License-Identifier: Apache-2.0
-- Layers. Each makes its variables and nodes in a scope of its name.
local tf = ...

function tf.activate(where, x, activation)
  if not activation then return x end
  if type(activation) ~= "function" then
    tf.fail("%s: activation must be a function of a tensor, as Relu, not %s", where,
            tf.show(activation))
  end
  local y = activation(x)
  if not tf.is_tensor(y) then
    tf.fail("%s: activation returns %s, not a tensor", where, tf.kind(y))
  end
  return y
end

-- x [n, ..., inputs] -> [n, ..., units]: activation(x W + b)
function nn.dense(x, units, o)
  o = tf.options("nn.dense", o, "name activation bias? init bias_init trainable?")
  units = tf.number("nn.dense: units", units)
  if (x.rank or 2) < 2 then tf.rank("nn.dense", x, 2) end
  local inputs = tf.dim("nn.dense", x, x.rank or 2)
  return scope(o.name or "dense", function()
    local w = variable{name = "W", shape = {inputs, units}, dtype = x.dtype,
                       init = o.init or init.glorot_uniform(), trainable = o.trainable}
    local y = MatMul(x.rank > 2 and Reshape(x, {-1, inputs}) or x, w)
    if o.bias ~= false then
      local b = variable{name = "b", shape = {units}, dtype = x.dtype, init = o.bias_init,
                         trainable = o.trainable}
      y = BiasAdd(y, b)
    end
    y = tf.activate("nn.dense", y, o.activation)
    return x.rank > 2 and Reshape(y, tf.shape_with(x, 1, {units})) or y
  end)
end

-- [n, a, b, ...] -> [n, a b ...]
function nn.flatten(x, o)
  o = tf.options("nn.flatten", o, "name")
  local size = 1
  for axis = 2, x.rank or tf.fail("nn.flatten: the rank of %s must be known", tostring(x)) do
    size = size * tf.dim("nn.flatten", x, axis)
  end
  -- With a dimension of 0, -1 would not give the number of rows.
  local rows = size == 0 and Slice(Shape(x), {0}, {1})
  return Reshape(x, rows and Concat(0, {rows, {0}}) or {-1, size}, {name = o.name})
end

-- Keeps each element with probability `keep`, scaled by 1/keep; the others, even infinite ones,
-- become 0. training = false: x itself; a bool tensor decides at run time.
function nn.dropout(x, keep, o)
  o = tf.options("nn.dropout", o, "name training seed")
  if type(o.training) ~= "boolean" and o.training ~= nil and not tf.is_tensor(o.training) then
    tf.fail("nn.dropout: training must be true or false or a tensor, not %s", tf.show(o.training))
  end
  if o.training == false or keep == 1 then return x end
  if not tf.is_tensor(keep) and not (type(keep) == "number" and keep > 0 and keep <= 1) then
    tf.fail("nn.dropout: keep must be in (0, 1], not %s", tf.show(keep))
  end
  local function drop()
    local noise = RandomUniform(Shape(x), {dtype = x.dtype, seed = o.seed})
    -- A mask, not a factor, as 0 * inf is NaN; ReluGrad works row by row, Select does not.
    return ReluGrad(x / keep, Floor(noise + keep))
  end
  return scope(o.name or "dropout", function()
    if tf.is_tensor(o.training) then
      return cond(o.training, drop, function() return x end)
    end
    return drop()
  end)
end

-- ids -> rows of a table [n, size], which may be partitioned
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

-- ids [n, most] -> the sum or mean of their rows of a table; per bag only the first `lengths` [n].
function nn.embedding_bag(ids, n, size, o)
  local where = "nn.embedding_bag"
  o = tf.options(where, o, "name mode lengths init dtype trainable? partitions")
  if o.mode ~= nil and o.mode ~= "sum" and o.mode ~= "mean" then
    tf.fail("%s: mode must be sum or mean, not %s", where, tf.show(o.mode))
  end
  tf.rank(where, ids, 2)
  local function embedded()
    return nn.embedding(ids, n, size, {name = o.name or "embedding_bag", init = o.init,
                                       dtype = o.dtype, trainable = o.trainable,
                                       partitions = o.partitions})
  end
  if not o.lengths then return (o.mode == "sum" and Sum or Mean)(embedded(), {1}) end
  tf.rank(where .. ": lengths", o.lengths, 1)
  local rows = embedded()
  local places = Range(0, Squeeze(Slice(Shape(ids), {1}, {1})), 1)
  local there = Less(places, ExpandDims(tf.cast(o.lengths, int32), 1))
  local sum = Sum(tf.wide(Select(ExpandDims(there, 2), rows, ZerosLike(rows))), {1})
  if o.mode ~= "sum" then sum = sum / ExpandDims(tf.cast(Maximum(o.lengths, 1), sum.dtype), 1) end
  return tf.cast(sum, rows.dtype)
end

-- One layer after the other, each a function of a tensor, or a list of a function and its further
-- arguments: nn.sequential(x, {{nn.dense, 64}, Relu, {nn.dense, 10}}).
function nn.sequential(x, layers, o)
  o = tf.options("nn.sequential", o, "name")
  return scope(o.name or "sequential", function()
    for i, layer in ipairs(layers) do
      local call = type(layer) == "table" and layer or {layer}
      if type(call[1]) ~= "function" then
        tf.fail("nn.sequential: layer %d is %s, not a function", i, tf.kind(call[1]))
      end
      x = call[1](x, table.unpack(call, 2))
      if not tf.is_tensor(x) then
        tf.fail("nn.sequential: layer %d returns %s, not a tensor", i, tf.kind(x))
      end
    end
    return x
  end)
end

-- x + f(x) (He et al. 2016)
function nn.residual(x, f, o)
  o = tf.options("nn.residual", o, "name activation")
  return scope(o.name or "residual", function()
    local y = f(x)
    tf.same_shape("nn.residual", x, y)
    return tf.activate("nn.residual", x + y, o.activation)
  end)
end

-- Local response normalization across channels (Krizhevsky et al. 2012).
function nn.lrn(x, o)
  o = tf.options("nn.lrn", o, "name radius bias alpha beta")
  return LRN(x, {depth_radius = o.radius, bias = o.bias, alpha = o.alpha, beta = o.beta,
                 name = o.name})
end
