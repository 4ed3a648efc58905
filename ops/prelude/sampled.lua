-- SPDX-License-Identifier: Apache-2.0
-- Losses of an output layer with many classes, where a few sampled classes represent all: sampled
-- softmax (Jean et al. 2015) and noise contrastive estimation (Gutmann, Hyvärinen 2010).
local tf = ...

local known = "weights biases labels inputs num_sampled num_classes num_true sampled_values " ..
              "remove_accidental_hits? partitions init bias_init name"

local function check(where, o)
  o = tf.options(where, o, known)
  for _, name in ipairs{"inputs", "labels"} do
    if not tf.is_tensor(o[name]) then
      tf.fail("%s: %s must be a tensor, not %s", where, name, tostring(o[name]))
    end
  end
  tf.rank(where .. ": inputs", o.inputs, 2)
  tf.number(where .. ": num_classes", o.num_classes)
  if o.num_true then tf.number(where .. ": num_true", o.num_true) end
  if not o.sampled_values then tf.number(where .. ": num_sampled", o.num_sampled) end
  for _, name in ipairs{"init", "bias_init", "partitions"} do
    if o.weights and o[name] then
      tf.fail("%s: %s is of weights that are made here, but they are given", where, name)
    end
  end
  if o.biases and not o.weights then tf.fail("%s: biases go with weights", where) end
  return o
end

-- The layer has a row for each class.
local function layer(where, o)
  if o.weights then return o.weights, o.biases end
  local t, size = o.inputs.dtype, tf.dim(where .. ": inputs", o.inputs, 2)
  local w = variable{name = "W", shape = {o.num_classes, size}, dtype = t,
                     init = o.init or init.glorot_uniform(), partitions = o.partitions}
  local b = variable{name = "b", shape = {o.num_classes}, dtype = t, init = o.bias_init,
                     partitions = o.partitions}
  return w, b
end

-- The sampled classes, and the expected counts of true and sampled classes.
local function samples(where, o, labels, num_true)
  local drawn = o.sampled_values
  if not drawn then
    return LogUniformCandidateSampler(labels, {num_true = num_true, num_sampled = o.num_sampled,
                                               unique = true, range_max = o.num_classes})
  end
  if type(drawn) ~= "table" or #drawn ~= 3 then
    tf.fail("%s: sampled_values must be what a sampler returns, as " ..
            "{nn.learned_samples(...)}", where)
  end
  return tf.cast(drawn[1], int64), drawn[2], drawn[3]
end

-- Classes drawn by how often they were true. The counts are a variable, to which the update adds:
-- true classes of all workers count, in the same order in each run.
function nn.learned_samples(labels, o)
  o = tf.options("nn.learned_samples", o, "name num_sampled num_classes num_true")
  local n = tf.number("nn.learned_samples: num_classes", o.num_classes)
  tf.number("nn.learned_samples: num_sampled", o.num_sampled)
  local num_true = tf.number("nn.learned_samples: num_true", o.num_true or 1)
  return scope(o.name or "learned_samples", function()
    local counts = variable{name = "counts", shape = {n}, dtype = int64, init = 1,
                            trainable = false}
    local all = Reshape(tf.cast(labels, int64), {-1})
    local seen = Identity(all, {_gradient = counts.name, _gradient_role = "indices"})
    ScatterAdd(counts, seen, OnesLike(seen), {_update = true})
    return colocate(counts, function()
      return CountedCandidateSampler(counts, Reshape(all, {-1, num_true}), {
          num_true = num_true, num_sampled = o.num_sampled, unique = true, range_max = n})
    end)
  end)
end

-- Rows `from` to `from + n` of all that were looked up; n of -1: the rest.
local function rows(x, from, n)
  if x.rank == 1 then return Slice(x, {from}, {n}) end
  return Slice(x, {from, 0}, {n, -1})
end

-- The least finite numbers, as a cast to 16 bits would make larger ones infinite.
local least = {[float16] = -65504, [bfloat16] = -3.3895313892515355e38}

-- The least finite number for each sample that is a true class of its row, else 0.
local function masks(logits, labels, sampled, num_true)
  local row, place, weight = ComputeAccidentalHits(labels, sampled, {num_true = num_true})
  local n = tf.dim("sampled classes", sampled, 1)
  local mask = UnsortedSegmentSum(weight, Cast(row, {DstT = int64}) * n + place, Size(logits))
  mask = Reshape(mask, Shape(logits))
  local bound = least[logits.dtype]
  return tf.cast(bound and Maximum(mask, bound) or mask, logits.dtype)
end

-- Logits of the true classes [n, num_true] and of the sampled ones [n, num_sampled]. One lookup
-- gets the rows of both, so there is one row-wise gradient.
local function logits_of(where, o, w, b, removes)
  local x, num_true = o.inputs, o.num_true or 1
  local t, size = x.dtype, tf.dim(where .. ": inputs", x, 2)
  local labels = Reshape(tf.cast(o.labels, int64), {-1, num_true})
  local sampled, expected_true, expected_sampled = samples(where, o, labels, num_true)
  local n = tf.dim(where .. ": sampled_values", sampled, 1)
  local ids = Concat(0, {sampled, Reshape(labels, {-1})})
  local function correct(logits, expected)
    local log = Log(tf.cast(expected, tf.count_type(t)))
    return logits - StopGradient(tf.cast(log, t))
  end
  local looked_up = Gather(w, ids)
  local theirs = Reshape(rows(looked_up, n, -1), {-1, num_true, size})
  local is_true = Sum(ExpandDims(x, 1) * theirs, {2})
  local is_sampled = MatMul(x, rows(looked_up, 0, n), {transpose_b = true})
  if b then
    looked_up = Gather(b, ids)
    is_true = is_true + Reshape(rows(looked_up, n, -1), {-1, num_true})
    is_sampled = is_sampled + rows(looked_up, 0, n)
  end
  if removes then is_sampled = is_sampled + masks(is_sampled, labels, sampled, num_true) end
  return correct(is_true, expected_true), correct(is_sampled, expected_sampled)
end

-- f(true logits, sampled logits): the losses of the rows. Returns their mean, and a table of them,
-- the weights and the biases.
local function sampled_loss(where, removes, f)
  return function(o)
    o = check("nn." .. where, o)
    local hits = removes
    if o.remove_accidental_hits ~= nil then hits = o.remove_accidental_hits end
    return scope(o.name or where, function()
      local w, b = layer("nn." .. where, o)
      local losses = f(logits_of("nn." .. where, o, w, b, hits))
      return tf.reduce(Mean, losses), {losses = losses, weights = w, biases = b}
    end)
  end
end

-- Each class' share of the truth.
local function shares(is_true, is_sampled)
  return Concat(1, {OnesLike(is_true) / tf.dim("num_true", is_true, 2), ZerosLike(is_sampled)})
end

-- The softmax of the true and the sampled classes.
nn.sampled_softmax = sampled_loss("sampled_softmax", true, function(is_true, is_sampled)
  local logits = Concat(1, {is_true, is_sampled})
  if tf.dim("num_true", is_true, 2) > 1 then
    return (SoftmaxCrossEntropyWithLogits(logits, shares(is_true, is_sampled)))
  end
  local first = tf.cast(ZerosLike(Reshape(is_true, {-1})), int32)
  return (SparseSoftmaxCrossEntropyWithLogits(logits, first))
end)

-- Distinguishes true from sampled classes, each class independently.
nn.nce = sampled_loss("nce", false, function(is_true, is_sampled)
  local logits = Concat(1, {is_true, is_sampled})
  return Sum(tf.yes_or_no(logits, shares(is_true, is_sampled)), {1})
end)
