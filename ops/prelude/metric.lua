-- SPDX-License-Identifier: Apache-2.0
-- Scores over all rows of a feed. Each is a function of totals, marked tensors that a step computes
-- from its batch: tf-exec sums them over the steps of an evaluation ("sum"), or concatenates their
-- rows ("rows"), and computes the score from the result. Within one step it is the batch's.
local tf = ...

metric = {}

local function wide(x) return tf.cast(x, float64) end

-- x [...], summed over the steps; for custom scores.
function metric.total(x, o)
  o = tf.options("metric.total", o, "name")
  return Identity(wide(x), {name = o.name, _total = "sum"})
end

-- x [n, ...], whose rows are all kept until the end.
function metric.rows(x, o)
  o = tf.options("metric.rows", o, "name")
  return Identity(x, {name = o.name, _total = "rows"})
end

local function total(x) return metric.total(tf.reduce(Sum, wide(x))) end

-- a / b, but 0 where b is 0
local function ratio(a, b)
  local nothing = Equal(b, 0)
  return Select(nothing, ZerosLike(a), a / Select(nothing, OnesLike(b), b))
end

-- Makes a score and its nodes, named after the function unless another name is given, or later a
-- global's.
local function score(name, o, f)
  name = tf.unique(o.name or name)
  local y = Identity(scope("/" .. name, f), {name = "/" .. name})
  return o.name and y or tf.nameless(y)
end

-- Weights for values with one number per row or element: ones if none are given.
local function weights_of(where, each, weights)
  if not weights then return OnesLike(wide(each)) end
  return tf.along_rows(where, wide(tf.tensor(where .. ": weights", weights, float64)), each) *
         OnesLike(wide(each))
end

-- As tf.as_rows, with a weight per row.
local function as_rows(where, logits, labels, weights)
  local x, y = tf.as_rows(logits, labels)
  if y == labels or not weights then return x, y, weights end
  return x, y, Reshape(weights_of(where, labels, weights), {-1})
end

-- The weighted mean: 0 if the weights sum to 0; NaN without rows.
local function mean(where, each, weights)
  local w = weights_of(where, each, weights)
  local sum, n = total(wide(each) * w), total(w)
  return weights and ratio(sum, n) or sum / n
end

-- The mean over all rows, or elements.
function metric.mean(x, o)
  o = tf.options("metric.mean", o, "name weights")
  return score("mean", o, function() return mean("metric.mean", x, o.weights) end)
end

-- ---- classes ----

-- The classes [n] from scores [n, classes], from probabilities [n] of class 1, or from classes;
-- scores may have more axes: [n, ..., classes] with labels [n, ...].
local function class_of(where, x, threshold)
  if x.rank == 2 then return ArgMax(x, 1) end
  tf.rank(where, x, 1)
  if x.dtype:find("float", 1, true) then x = Greater(x, threshold or 0.5) end
  return tf.cast(x, int64)
end

-- Share of rows whose class is that of the label.
function metric.accuracy(prediction, labels, o)
  o = tf.options("metric.accuracy", o, "name weights threshold")
  local x, y, weights = as_rows("metric.accuracy", prediction, labels, o.weights)
  tf.rank("metric.accuracy: labels", y, 1)
  return score("accuracy", o, function()
    local hits = Equal(class_of("metric.accuracy", x, o.threshold), tf.cast(y, int64))
    return mean("metric.accuracy", hits, weights)
  end)
end

-- Share of rows whose label is among the k largest scores.
function metric.top_k(prediction, labels, k, o)
  o = tf.options("metric.top_k", o, "name weights")
  tf.number("metric.top_k: k", k)
  local x, y, weights = as_rows("metric.top_k", prediction, labels, o.weights)
  return score("top_k", o, function()
    return mean("metric.top_k", InTopK(x, y, {k = k}), weights)
  end)
end

-- [classes, classes]: rows by label, columns by prediction.
local function confusion(where, prediction, labels, o)
  local weights
  prediction, labels, weights = as_rows(where, prediction, labels, o.weights)
  tf.rank(where .. ": labels", labels, 1)
  local k = o.classes or prediction.rank == 2 and tf.dim(where, prediction, 2) or 2
  tf.number(where .. ": classes", k)
  local class, label = class_of(where, prediction, o.threshold), tf.cast(labels, int64)
  local there = LogicalAnd(GreaterEqual(class, 0), Less(class, k)) -- else no place: an error
  local place = Select(there, label * k + class, OnesLike(class) * -1)
  local sums = UnsortedSegmentSum(weights_of(where, label, weights), place, k * k)
  return metric.total(Reshape(sums, {k, k})), k
end

function metric.confusion(prediction, labels, o)
  o = tf.options("metric.confusion", o, "name weights classes threshold")
  return score("confusion", o, function()
    return (confusion("metric.confusion", prediction, labels, o))
  end)
end

-- One number for all classes, as scikit-learn's average=...: of one class, the mean over existing
-- classes, the same weighted by their rows, or over all decisions together.
local averages = {
  binary = function(f, hit, predicted, true_, o)
    return Reshape(Gather(f(hit, predicted, true_), {o.positive or 1}), {})
  end,
  macro = function(f, hit, predicted, true_)
    local there = wide(Greater(predicted + true_, 0))
    return ratio(Sum(f(hit, predicted, true_) * there, {0}), Sum(there, {0}))
  end,
  weighted = function(f, hit, predicted, true_)
    return ratio(Sum(f(hit, predicted, true_) * true_, {0}), Sum(true_, {0}))
  end,
  micro = function(f, hit, predicted, true_)
    return f(Sum(hit, {0}), Sum(predicted, {0}), Sum(true_, {0}))
  end,
}

local function of_classes(name, f)
  local where = "metric." .. name
  metric[name] = function(prediction, labels, o)
    o = tf.options(where, o, "name weights classes threshold average positive")
    return score(name, o, function()
      local c, k = confusion(where, prediction, labels, o)
      local average = o.average or k == 2 and "binary" or "macro"
      if not rawget(averages, average) then
        tf.fail("%s: average must be binary, macro, micro or weighted, not %s", where,
                tf.show(average))
      end
      local identity = OneHot(Range(0, k, 1), k, Const(1, {dtype = float64}),
                              Const(0, {dtype = float64}))
      return averages[average](f, Sum(c * identity, {1}), Sum(c, {0}), Sum(c, {1}), o)
    end)
  end
end

of_classes("precision", function(hit, predicted) return ratio(hit, predicted) end)
of_classes("recall", function(hit, _, true_) return ratio(hit, true_) end)
of_classes("f1", function(hit, predicted, true_) return ratio(2 * hit, predicted + true_) end)

-- ---- curves ----

local function but_first(x) return StridedSlice(x, {1}, {0}, {1}, {end_mask = 1}) end
local function but_last(x) return StridedSlice(x, {0}, {-1}, {1}) end
local function last(x) return StridedSlice(x, {-1}, {0}, {1}, {end_mask = 1}) end

-- For each distinct score, counts the true and false rows with at least that score, and with at
-- least the next higher one, from 0 on.
local function counts(scores, is_true, w)
  local sorted, order = TopKV2(scores, Size(scores))
  is_true, w = Gather(is_true, order), Gather(w, order)
  local ends = Concat(0, {NotEqual(but_first(sorted), but_last(sorted)),
                          Greater(OnesLike(last(sorted)), 0)})
  local at = Reshape(Where(ends), {-1})
  local function upto(x)
    local n = Gather(Cumsum(x, 0), at)
    return n, Concat(0, {Const({0}, {dtype = float64}), but_last(n)})
  end
  local t, t0 = upto(is_true * w)
  local f, f0 = upto((1 - is_true) * w)
  return t, t0, f, f0
end

local function all_of(counts) return Maximum(Max(counts, {0}), 0) end -- 0 without rows

local curves = {
  roc = function(t, t0, f, f0)
    return Sum((f - f0) * (t + t0), {0}) / (2 * all_of(t) * all_of(f))
  end,
  pr = function(t, t0, f) return Sum((t - t0) * ratio(t, t + f), {0}) / all_of(t) end,
}

-- Scores of classes as chances: logits through Softmax; rows that add up to 1 are chances already.
local function chances(x)
  local none_below = All(GreaterEqual(x, 0), {0, 1})
  local all_one = All(Less(Abs(Sum(x, {1}) - 1), 0.01), {0})
  return cond(LogicalAnd(none_below, all_one), function() return x end,
              function() return Softmax(x) end)
end

-- The area under the ROC curve, or (curve = "pr") the average precision; for more than two classes,
-- the mean over each against the rest. All rows are kept until the end, as sums do not suffice.
function metric.auc(prediction, labels, o)
  o = tf.options("metric.auc", o, "name weights curve")
  local curve = curves[o.curve or "roc"] or
                tf.fail("metric.auc: curve must be roc or pr, not %s", tf.show(o.curve))
  local weights
  prediction, labels, weights = as_rows("metric.auc", prediction, labels, o.weights)
  tf.rank("metric.auc: labels", labels, 1)
  local k = prediction.rank == 2 and tf.dim("metric.auc", prediction, 2) or 1
  return score("auc", o, function()
    local x = metric.rows(wide(prediction))
    if k > 2 then x = chances(x) end
    local label = metric.rows(tf.cast(labels, int64))
    local w = weights and metric.rows(weights_of("metric.auc", labels, weights)) or
              OnesLike(wide(label))
    local function column(i) return Reshape(Slice(x, {0, i}, {-1, 1}), {-1}) end
    local function against_rest(scores, class)
      return curve(counts(scores, wide(Equal(label, class)), w))
    end
    if k <= 2 then return against_rest(k == 2 and column(1) - column(0) or x, 1) end
    local areas = {}
    for i = 1, k do areas[i] = against_rest(column(i - 1), i - 1) end
    return AddN(areas) / k
  end)
end

-- ---- losses ----

local function log_loss(where, logits, labels, weights)
  logits, labels, weights = as_rows(where, logits, labels, weights)
  local x = wide(logits)
  if x.rank == 1 then return mean(where, tf.yes_or_no(x, wide(labels)), weights) end
  local loss = labels.rank == 1 and SparseSoftmaxCrossEntropyWithLogits or
               SoftmaxCrossEntropyWithLogits
  return mean(where, (loss(x, labels.rank == 1 and labels or wide(labels))), weights)
end

-- Logits [n, ..., classes], or [n] of class 1; labels [n, ...], or distributions [n, classes].
function metric.log_loss(logits, labels, o)
  o = tf.options("metric.log_loss", o, "name weights")
  return score("log_loss", o, function()
    return log_loss("metric.log_loss", logits, labels, o.weights)
  end)
end

function metric.perplexity(logits, labels, o)
  o = tf.options("metric.perplexity", o, "name weights")
  return score("perplexity", o, function()
    return Exp(log_loss("metric.perplexity", logits, labels, o.weights))
  end)
end

local function of_errors(name, f)
  local where = "metric." .. name
  metric[name] = function(prediction, target, o)
    o = tf.options(where, o, "name weights")
    tf.check_ranks(where, prediction, target)
    return score(name, o, function()
      return f(where, wide(prediction), wide(tf.tensor(where, target, float64)), o.weights)
    end)
  end
end

local function mse(where, x, target, weights)
  return mean(where, SquaredDifference(x, target), weights)
end

of_errors("mse", mse)
of_errors("rmse", function(...) return Sqrt(mse(...)) end)
of_errors("mae", function(where, x, target, weights)
  return mean(where, Abs(x - target), weights)
end)

-- 1 - (squared error) / (squared distance from the target's mean), for several columns the mean.
-- The targets are kept: sums of squares alone lose precision if the mean is far from 0.
of_errors("r2", function(where, x, target, weights)
  local w = weights_of(where, target, weights)
  local error = metric.total(Sum(w * SquaredDifference(x, target), {0}))
  local all, n = metric.rows(target), metric.rows(w)
  local middle = Sum(n * all, {0}) / Sum(n, {0})
  local spread = Sum(n * SquaredDifference(all, middle), {0})
  local unexplained = Select(Equal(spread, 0), wide(Greater(error, 0)), ratio(error, spread))
  return tf.reduce(Mean, 1 - unexplained)
end)
