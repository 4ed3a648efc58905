-- SPDX-License-Identifier: Apache-2.0
-- Layers of transformers (Vaswani et al. 2017), and the activations that come with them.
local tf = ...

-- x Phi(x), Phi by the error function
function nn.gelu(x) return 0.5 * x * (1 + Erf(x * 2 ^ -0.5)) end

function nn.silu(x) return x * Sigmoid(x) end

-- Ba, Kiros & Hinton 2016: over the last axis, with a scale and an offset of each element.
function nn.layer_norm(x, o)
  o = tf.options("nn.layer_norm", o, "name epsilon trainable?")
  local size = tf.dim("nn.layer_norm", x, x.rank or 1)
  return scope(o.name or "layer_norm", function()
    local function make(name, value)
      return variable{name = name, shape = {size}, dtype = x.dtype, init = value,
                      trainable = o.trainable}
    end
    local wide, axis = tf.wide(x), {x.rank - 1}
    local apart = wide - Mean(wide, axis, {keep_dims = true})
    local variance = Mean(Square(apart), axis, {keep_dims = true})
    return tf.cast(apart * Rsqrt(variance + (o.epsilon or 1e-5)), x.dtype) * make("scale", 1) +
           make("offset", 0)
  end)
end

-- q [n, to, size], k and v [n, from, size]: softmax(q k' / sqrt(size of a head)) v, for each of
-- `heads` parts of the size. causal: none sees what comes behind it; mask, bool, what may be seen,
-- is broadcast to [n, heads, to, from].
function nn.attention(q, k, v, o)
  o = tf.options("nn.attention", o, "name heads causal? mask")
  for name, x in pairs{q = q, k = k, v = v} do tf.rank("nn.attention: " .. name, x, 3) end
  local heads, size = o.heads or 1, tf.dim("nn.attention", q, 3)
  tf.number("nn.attention: heads", heads)
  if size % heads ~= 0 then
    tf.fail("nn.attention: %d heads do not divide a size of %d", heads, size)
  end
  return scope(o.name or "attention", function()
    local function parts(x)
      local each = tf.dim("nn.attention", x, 3) // heads
      local shape = Concat(0, {Slice(Shape(x), {0}, {2}), {heads, each}})
      return Transpose(Reshape(x, shape), {0, 2, 1, 3})
    end
    local scores = BatchMatMul(parts(q), parts(k), {adj_y = true}) * (size / heads) ^ -0.5
    local seen = o.mask
    if o.causal then
      local band = MatrixBandPart(OnesLike(scores), -1, 0)
      seen = seen and LogicalAnd(seen, Greater(band, 0)) or Greater(band, 0)
    end
    if seen then scores = Select(seen, scores, -1e9 * OnesLike(scores)) end
    local y = Transpose(BatchMatMul(Softmax(scores), parts(v)), {0, 2, 1, 3})
    return Reshape(y, Concat(0, {Slice(Shape(q), {0}, {2}), {tf.dim("nn.attention", v, 3)}}))
  end)
end
