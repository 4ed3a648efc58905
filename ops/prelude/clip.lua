-- SPDX-License-Identifier: Apache-2.0
-- Clipping.
local tf = ...

clip = {}

function clip.by_value(x, min, max)
  return Minimum(Maximum(x, min), max)
end

local function norm(x) return Sqrt(2 * L2Loss(x)) end

-- x c min(1/|x|, 1/c): unchanged up to a norm of c
function clip.by_norm(x, c)
  tf.positive("clip.by_norm: the bound", c)
  return scope("clip_by_norm", function() return x * (c * Minimum(1 / norm(x), 1 / c)) end)
end

-- By the mean instead of the sum: |x| / count.
function clip.by_average_norm(x, c)
  tf.positive("clip.by_average_norm: the bound", c)
  return scope("clip_by_average_norm", function()
    local mean = norm(x) / Cast(Size(x), {DstT = x.dtype})
    return x * (c * Minimum(1 / mean, 1 / c))
  end)
end

-- The norm of all tensors taken as one vector; false in the list is passed over.
function clip.global_norm(list)
  return scope("global_norm", function()
    local squares = {}
    for _, x in ipairs(list) do if x then squares[#squares + 1] = L2Loss(x) end end
    if #squares == 0 then tf.fail("clip.global_norm: the list has no tensor") end
    return Sqrt(2 * AddN(squares))
  end)
end

-- All tensors by one factor, so that their global norm is at most c. Returns the list and the norm.
-- A norm that is infinite or not a number makes every result NaN: scaling by 0 would hide it.
function clip.by_global_norm(list, c)
  tf.positive("clip.by_global_norm: the bound", c)
  return scope("clip_by_global_norm", function()
    local total = clip.global_norm(list)
    local factor = c * Minimum(1 / total, 1 / c) + (total - total)
    local out = {}
    for i, x in ipairs(list) do out[i] = x and x * factor end
    return out, total
  end)
end
