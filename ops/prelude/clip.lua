-- SPDX-License-Identifier: Apache-2.0
-- Clipping.
local tf = ...

clip = {}

function clip.by_value(x, min, max)
  return Minimum(Maximum(x, min), max)
end

local function half_square(x) return L2Loss(tf.wide(x)) end

-- The root of 2 * half. Where that is 0, the gradient is 0, though the root's slope is infinite.
local function norm_of(half)
  local square = 2 * half
  local positive = Greater(square, 0)
  return Select(positive, Sqrt(Select(positive, square, OnesLike(square))), square)
end

-- c / max(norm, c), which is 1 up to a norm of c
local function factor_of(norm, c)
  if tf.is_tensor(c) then c = tf.cast(c, norm.dtype) end
  return c / Maximum(norm, c)
end

local function scaled(x, factor) return tf.cast(tf.wide(x) * factor, x.dtype) end

function clip.by_norm(x, c)
  tf.positive("clip.by_norm: the bound", c)
  return scope("clip_by_norm", function()
    return scaled(x, factor_of(norm_of(half_square(x)), c))
  end)
end

-- Clips by the mean instead of the sum: |x| / count.
function clip.by_average_norm(x, c)
  tf.positive("clip.by_average_norm: the bound", c)
  return scope("clip_by_average_norm", function()
    local norm = norm_of(half_square(x))
    return scaled(x, factor_of(norm / Cast(Size(x), {DstT = norm.dtype}), c))
  end)
end

-- The norm of all tensors taken as one vector, in float32 for 16-bit tensors; false in the list is
-- skipped.
function clip.global_norm(list)
  return scope("global_norm", function()
    local squares = {}
    for _, x in ipairs(list) do
      if x then squares[#squares + 1] = half_square(tf.tensor("clip.global_norm", x)) end
    end
    if #squares == 0 then tf.fail("clip.global_norm: the list has no tensor") end
    return norm_of(AddN(squares))
  end)
end

-- Scales all tensors by one factor, to a global norm of at most c. Returns the list and the norm. A
-- norm that is infinite or not a number makes every result NaN: scaling by 0 would hide it.
function clip.by_global_norm(list, c)
  tf.positive("clip.by_global_norm: the bound", c)
  return scope("clip_by_global_norm", function()
    local total = clip.global_norm(list)
    local factor = factor_of(total, c) + (total - total)
    local out = {}
    for i, x in ipairs(list) do out[i] = x and scaled(x, factor) end
    return out, total
  end)
end
