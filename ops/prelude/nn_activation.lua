-- SPDX-License-Identifier: Apache-2.0
-- Activations without an op of their own, or with options. Each is a function of a tensor, as
-- needed for {activation = nn.gelu}.
local tf = ...

-- x Phi(x), Phi by the error function
function nn.gelu(x) return 0.5 * x * (1 + Erf(x * 2 ^ -0.5)) end

function nn.silu(x) return x * Sigmoid(x) end

-- Exponential linear units (Clevert et al. 2016), down to -alpha.
function nn.elu(x, o)
  o = tf.options("nn.elu", o, "alpha")
  return o.alpha and Relu(x) + o.alpha * Elu(Minimum(x, 0)) or Elu(x)
end

-- log(1 + exp(beta x)) / beta
function nn.softplus(x, o)
  o = tf.options("nn.softplus", o, "beta")
  return o.beta and Softplus(x * o.beta) / o.beta or Softplus(x)
end

-- He et al. 2015: with a slope per channel (the last axis) where x is negative.
function nn.prelu(x, o)
  o = tf.options("nn.prelu", o, "name init trainable?")
  local channels = tf.dim("nn.prelu", x, x.rank or 1)
  return scope(o.name or "prelu", function()
    local slope = variable{name = "slope", shape = {channels}, dtype = x.dtype,
                           init = o.init or 0.25, trainable = o.trainable}
    return Relu(x) - slope * Relu(-x)
  end)
end
