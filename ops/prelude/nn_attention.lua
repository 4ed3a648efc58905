-- SPDX-License-Identifier: Apache-2.0
-- Transformers (Vaswani et al. 2017), and their parts.
local tf = ...

-- q [n, to, size], k and v [n, from, size]: softmax(q k' / sqrt(size of a head)) v, for each of
-- `heads` parts of the size. causal: no position sees later ones; mask, a bool tensor of what may
-- be seen, is broadcast to [n, heads, to, from].
function nn.attention(q, k, v, o)
  o = tf.options("nn.attention", o, "name heads causal? mask")
  local heads, size = tf.number("nn.attention: heads", o.heads or 1), nil
  for i, name in ipairs{"v", "k", "q"} do
    local x = select(i, v, k, q)
    tf.rank("nn.attention: " .. name, x, 3)
    size = tf.dim("nn.attention", x, 3)
    if size % heads ~= 0 then
      tf.fail("nn.attention: %d heads do not divide a size of %d", heads, size)
    end
  end
  for _, pair in ipairs{{q, k, 3}, {k, v, 2}} do
    local a, b, axis = table.unpack(pair)
    local m, n = a.shape[axis], b.shape[axis]
    if m ~= n and m >= 0 and n >= 0 then
      tf.fail("nn.attention: %s and %s differ in dimension %d", tostring(a), tostring(b), axis)
    end
  end
  return scope(o.name or "attention", function()
    local function parts(x)
      local each = tf.dim("nn.attention", x, 3) // heads
      return Transpose(Reshape(x, tf.shape_with(x, 1, {heads, each})), {0, 2, 1, 3})
    end
    local scores = BatchMatMul(parts(q), parts(k), {adj_y = true}) * (size / heads) ^ -0.5
    local seen = o.mask
    if o.causal then
      local band = MatrixBandPart(OnesLike(scores), -1, 0)
      seen = seen and LogicalAnd(seen, Greater(band, 0)) or Greater(band, 0)
    end
    -- A row that sees nothing sees all equally: the masking value is finite, also in 16 bits.
    local hidden = scores.dtype == float16 and -65504 or -1e9
    if seen then scores = Select(seen, scores, hidden * OnesLike(scores)) end
    local y = Transpose(BatchMatMul(Softmax(scores), parts(v)), {0, 2, 1, 3})
    return Reshape(y, tf.shape_with(q, 1, {tf.dim("nn.attention", v, 3)}))
  end)
end

-- x [n, time, size] -> x plus self-attention, then plus a hidden layer of `units`; each sum is
-- normalized or, with norm_first, each addend's input. Addends keep elements with probability
-- `keep`, as by nn.dropout.
function nn.transformer(x, o)
  local where = "nn.transformer"
  o = tf.options(where, o, "name heads units activation causal? mask keep training norm_first? " ..
                 "epsilon init bias_init trainable?")
  tf.rank(where, x, 3)
  local size = tf.dim(where, x, 3)
  local function dense(h, units, name, activation)
    return nn.dense(h, units, {name = name, activation = activation, init = o.init,
                               bias_init = o.bias_init, trainable = o.trainable})
  end
  local function added(h, name, f)
    local function norm(y)
      return nn.layer_norm(y, {name = name .. "_norm", epsilon = o.epsilon,
                               trainable = o.trainable})
    end
    local y = nn.dropout(f(o.norm_first and norm(h) or h), o.keep or 1, {training = o.training})
    return o.norm_first and h + y or norm(h + y)
  end
  return scope(o.name or "transformer", function()
    local h = added(x, "attention", function(y)
      local q, k, v = Split(2, dense(y, 3 * size, "inputs"), {num_split = 3})
      return dense(nn.attention(q, k, v, {heads = o.heads, causal = o.causal, mask = o.mask}),
                   size, "outputs")
    end)
    return added(h, "dense", function(y)
      return dense(dense(y, o.units or 4 * size, "hidden", o.activation or Relu), size, "output")
    end)
  end)
end

-- Adds position encodings to x [n, time, size]: alternating sines and cosines of wavelengths from 2
-- pi to 10000 times that, or learned ones.
function nn.positions(x, o)
  o = tf.options("nn.positions", o, "name learned? init trainable?")
  tf.rank("nn.positions", x, 3)
  local size = tf.dim("nn.positions", x, 3)
  return scope(o.name or "positions", function()
    if o.learned then
      return x + variable{name = "W", shape = {tf.dim("nn.positions", x, 2), size},
                          dtype = x.dtype, init = o.init or init.normal{stddev = 0.02},
                          trainable = o.trainable}
    end
    local rates, phases = {}, {}
    for i = 0, size - 1 do
      rates[i + 1], phases[i + 1] = 10000 ^ (-2 * (i // 2) / size), i % 2 * math.pi / 2
    end
    local times = Range(0, Squeeze(Slice(Shape(x), {1}, {1})), 1)
    local waves = Sin(ExpandDims(Cast(times, {DstT = tf.count_type(x.dtype)}), 1) * rates + phases)
    return x + tf.cast(waves, x.dtype)
  end)
end
