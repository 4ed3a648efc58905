-- SPDX-License-Identifier: Apache-2.0
-- Losses (scalars, means over the batch) and metrics.
local tf = ...

local function is_integer(dtype) return dtype:find("int", 1, true) ~= nil end

-- Weights of rank 1 are for rows, for any rank of the weighted values; others have their shape, or
-- 1 in some dimensions.
function tf.along_rows(where, weights, each)
  local rank, of = weights.rank, each.rank
  if not rank or not of then return weights end
  local shape = {weights.shape[1] or 1}
  for i = 2, of do shape[i] = 1 end
  if rank ~= 1 then shape = weights.shape end
  local fits = #shape == of or rank == 0 or rank < of and rank > 1
  for i = 1, fits and math.min(#shape, of) or 0 do
    local m, n = shape[#shape + 1 - i], each.shape[of + 1 - i]
    fits = fits and (m == n or m == 1 or m < 0 or n < 0)
  end
  if not fits then
    tf.fail("%s: weights %s do not fit what they weigh, %s", where,
            tostring(weights):match("%S+$"), tostring(each):match("%S+$"))
  end
  return rank == 1 and of > 1 and Reshape(weights, shape) or weights
end

-- The mean, or with weights [n] the weighted mean, which is 0 if the weights sum to 0.
local function average(where, each, weights)
  if not weights then return tf.reduce(Mean, each) end
  weights = tf.cast(tf.tensor("weights", weights, each.dtype), each.dtype)
  weights = tf.along_rows(where, weights, each) * OnesLike(each)
  local sum, total = tf.reduce(Sum, tf.wide(each * weights)), tf.reduce(Sum, tf.wide(weights))
  local nothing = Equal(total, 0)
  local mean = sum / Select(nothing, OnesLike(total), total)
  return tf.cast(Select(nothing, ZerosLike(mean), mean), each.dtype)
end

-- [n] with [n, 1] would be broadcast to [n, n] and give a meaningless number.
function tf.check_ranks(where, a, b)
  if tf.is_tensor(a) and tf.is_tensor(b) and a.rank and b.rank and a.rank ~= b.rank and
     a.rank > 0 and b.rank > 0 then
    tf.fail("%s: %s and %s differ in rank; reshape one of them", where, tostring(a), tostring(b))
  end
  for i = 1, tf.is_tensor(a) and tf.is_tensor(b) and a.rank == b.rank and a.rank or 0 do
    local m, n = a.shape[i], b.shape[i]
    if m ~= n and m > 1 and n > 1 then
      tf.fail("%s: %s and %s differ in dimension %d", where, tostring(a), tostring(b), i)
    end
  end
end

-- Operands of a difference must also have one type.
local function check_pair(where, a, b)
  tf.check_ranks(where, a, b)
  if tf.is_tensor(b) and a.dtype ~= b.dtype then
    tf.fail("%s: %s and %s differ in type; Cast one of them", where, tostring(a), tostring(b))
  end
end

-- Flattens logits [n, ..., classes] and integer classes [n, ...] to rows.
function tf.as_rows(logits, labels)
  local rank = is_integer(labels.dtype) and labels.rank or 0
  if rank < 2 or logits.rank ~= rank + 1 then return logits, labels end
  return Reshape(logits, {-1, tf.dim("the logits", logits, logits.rank)}), Reshape(labels, {-1})
end

-- The result for each row, in the shape of the labels.
local function of_labels(f, logits, labels)
  local rows, classes = tf.as_rows(logits, labels)
  local each = (f(rows, classes))
  return classes == labels and each or Reshape(each, Shape(labels))
end

-- Integer classes are one per row of the logits, or per position of a sequence.
local function check_labels(where, logits, labels)
  if not is_integer(labels.dtype) then return tf.same_shape(where, logits, labels) end
  if (labels.rank or 0) > 1 and logits.rank == labels.rank + 1 then return end
  tf.rank(where .. ": logits", logits, 2)
  tf.rank(where .. ": labels", labels, 1)
end

-- logits [n, ..., classes]; labels: integer classes [n, ...], or distributions [n, classes].
function nn.cross_entropy(logits, labels, o)
  o = tf.options("nn.cross_entropy", o, "name weights smoothing")
  tf.within_bounds("nn.cross_entropy: smoothing", o.smoothing, 0, 1)
  tf.floating("nn.cross_entropy: the logits", logits)
  check_labels("nn.cross_entropy", logits, labels)
  return scope(o.name or "cross_entropy", function()
    return average("nn.cross_entropy", of_labels(function(x, y)
      local classes = o.smoothing and tf.dim("nn.cross_entropy", x, 2)
      if is_integer(y.dtype) and o.smoothing then
        y = OneHot(y, classes, Const(1, {dtype = x.dtype}), Const(0, {dtype = x.dtype}))
      end
      if is_integer(y.dtype) then return SparseSoftmaxCrossEntropyWithLogits(x, y) end
      if o.smoothing then y = y * (1 - o.smoothing) + o.smoothing / classes end
      return SoftmaxCrossEntropyWithLogits(x, y)
    end, logits, labels), o.weights)
  end)
end

-- max(x, 0) - x z + log(1 + exp(-|x|)) per answer. Uses Select: at 0, where a net with zero weights
-- starts, the gradients of Relu and Abs do not add up to the true one, 1/2 - z.
function tf.yes_or_no(logits, labels)
  local positive = GreaterEqual(logits, 0)
  local upper = Select(positive, logits, ZerosLike(logits))
  local distance = Select(positive, -logits, logits)
  return upper - logits * labels + Log1p(Exp(distance))
end

-- Defines a loss: the average of each(prediction, target, o).
local function of_pairs(name, options, each)
  local where = "nn." .. name
  nn[name] = function(prediction, target, o)
    o = tf.options(where, o, options)
    check_pair(where, prediction, target)
    return scope(o.name or name, function()
      return average(where, each(prediction, target, o), o.weights)
    end)
  end
end

-- Cross entropy of independent yes-no answers.
function nn.sigmoid_cross_entropy(logits, labels, o)
  o = tf.options("nn.sigmoid_cross_entropy", o, "name weights")
  check_pair("nn.sigmoid_cross_entropy", logits, labels)
  tf.floating("nn.sigmoid_cross_entropy: the logits", logits)
  return scope(o.name or "sigmoid_cross_entropy", function()
    return average("nn.sigmoid_cross_entropy", tf.yes_or_no(logits, labels), o.weights)
  end)
end

-- Lin et al. 2017: cross entropy times (1 - p)^gamma, p being the probability of the truth: for
-- integer classes, or for independent yes-no answers. alpha is the weight of all classes, or of
-- yes, with 1 - alpha for no.
function nn.focal(logits, labels, o)
  o = tf.options("nn.focal", o, "name weights gamma alpha")
  tf.within_bounds("nn.focal: gamma", o.gamma, 0, math.huge)
  tf.within_bounds("nn.focal: alpha", o.alpha, 0, 1)
  tf.floating("nn.focal: the logits", logits)
  local classes = is_integer(labels.dtype)
  check_labels("nn.focal", logits, labels)
  return scope(o.name or "focal", function()
    local each, missed
    if classes then
      each = of_labels(SparseSoftmaxCrossEntropyWithLogits, logits, labels)
      missed = 1 - Exp(-each)
      each = each * (o.alpha or 1)
    else
      each = tf.yes_or_no(logits, labels)
      local p = Sigmoid(logits)
      missed = p + labels - 2 * p * labels
      if o.alpha then each = each * (labels * (2 * o.alpha - 1) + (1 - o.alpha)) end
    end
    -- A root's slope at 0 is infinite, and its product with 0 would be NaN.
    if o.gamma and o.gamma > 0 and o.gamma < 1 then missed = Maximum(missed, 2 ^ -24) end
    return average("nn.focal", Pow(missed, o.gamma or 2) * each, o.weights)
  end)
end

-- max(0, |a - p| - |a - n| + margin) of rows (Schroff et al. 2015), with PyTorch's norm, which has
-- a slope at 0.
function nn.triplet(anchor, positive, negative, o)
  o = tf.options("nn.triplet", o, "name weights margin")
  tf.rank("nn.triplet", anchor, 2)
  tf.same_shape("nn.triplet", anchor, positive)
  tf.same_shape("nn.triplet", anchor, negative)
  return scope(o.name or "triplet", function()
    local function distance(x) return Sqrt(Sum(Square(tf.wide(anchor - x) + 1e-6), {1})) end
    local each = Relu(distance(positive) - distance(negative) + (o.margin or 1))
    return average("nn.triplet", tf.cast(each, anchor.dtype), o.weights)
  end)
end

of_pairs("mse", "name weights", function(x, target) return SquaredDifference(x, target) end)
of_pairs("mae", "name weights", function(x, target) return Abs(x - target) end)

-- Quadratic up to delta, then linear (Huber 1964).
of_pairs("huber", "name weights delta", function(x, target, o)
  local delta, distance = o.delta or 1, Abs(x - target)
  local near = Minimum(distance, delta)
  return 0.5 * Square(near) + delta * (distance - near)
end)

-- max(0, 1 - y x) for labels of 0 and 1, which count as y = -1 and 1.
function nn.hinge(logits, labels, o)
  o = tf.options("nn.hinge", o, "name weights")
  tf.check_ranks("nn.hinge", logits, labels)
  tf.floating("nn.hinge: the logits", logits)
  return scope(o.name or "hinge", function()
    local y = 2 * tf.cast(labels, logits.dtype) - 1
    return average("nn.hinge", Relu(1 - y * logits), o.weights)
  end)
end

-- weight * sum over the tensors of |w|^2 / 2: those of a list, the trained variables whose names
-- match a Lua pattern, or all trained matrices and filters.
function nn.l2(weight, tensors, o)
  o = tf.options("nn.l2", o, "name")
  local by_name = type(tensors) == "string"
  local list = tensors and not by_name and tf.list(tensors) or {}
  for _, w in ipairs((by_name or not tensors) and trainable() or {}) do
    if by_name and w.name:find(tensors) or not by_name and w.rank >= 2 then list[#list + 1] = w end
  end
  if #list == 0 then tf.fail("nn.l2: there is no variable to take the norm of") end
  for _, w in ipairs(list) do tf.floating("nn.l2: what it is of", w) end
  return scope(o.name or "l2", function()
    local terms = {}
    for i, w in ipairs(list) do terms[i] = L2Loss(w) end
    local sum = #terms > 1 and AddN(terms) or terms[1]
    return sum * (tf.is_tensor(weight) and tf.cast(weight, sum.dtype) or weight)
  end)
end

-- Share of rows whose largest logit is that of the label (integer classes).
function nn.accuracy(logits, labels, o)
  o = tf.options("nn.accuracy", o, "name")
  logits, labels = tf.as_rows(logits, labels)
  tf.rank("nn.accuracy: logits", logits, 2)
  tf.rank("nn.accuracy: labels", labels, 1)
  return scope(o.name or "accuracy", function()
    local class = tf.cast(ArgMax(logits, 1), labels.dtype)
    return tf.reduce(Mean, Cast(Equal(class, labels), {DstT = float32}))
  end)
end

-- Share of rows whose label is among the k largest logits.
function nn.in_top_k(logits, labels, k, o)
  o = tf.options("nn.in_top_k", o, "name")
  tf.number("nn.in_top_k: k", k)
  logits, labels = tf.as_rows(logits, labels)
  return scope(o.name or "in_top_k", function()
    return tf.reduce(Mean, Cast(InTopK(logits, labels, {k = k}), {DstT = float32}))
  end)
end

-- 1 - (squared error) / (squared distance from the target's mean)
function nn.r2(prediction, target, o)
  o = tf.options("nn.r2", o, "name")
  tf.check_ranks("nn.r2", prediction, target)
  target = tf.tensor("nn.r2: the target", target, prediction.dtype)
  return scope(o.name or "r2", function()
    local spread = SquaredDifference(target, tf.reduce(Mean, target))
    local error = tf.reduce(Sum, tf.wide(SquaredDifference(prediction, target)))
    return tf.cast(1 - error / tf.reduce(Sum, tf.wide(spread)), prediction.dtype)
  end)
end
