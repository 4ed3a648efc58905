-- SPDX-License-Identifier: Apache-2.0
-- What workers have of each other within a step. Rows are parts along dimension 0; a worker alone
-- has what it brings. Gradients go back to where values came from.
local tf = ...

collective = {}

local function root_of(what, root)
  root = root or 0
  if math.type(root) ~= "integer" or root < 0 then
    tf.fail("collective." .. what .. ": the root is the rank of a worker, not " .. tostring(root))
  end
  return root
end

-- The root's value, for all.
function collective.broadcast(x, root)
  return CollectiveBroadcast(x, {root = root_of("broadcast", root)})
end

-- All rows, for the root; the others get none.
function collective.gather(x, root)
  return CollectiveGather(x, {root = root_of("gather", root)})
end

-- The root's rows, a part for each.
function collective.scatter(x, root)
  return CollectiveScatter(x, {root = root_of("scatter", root)})
end

-- The sum, or with "mean" the mean, of all values, a part of its rows for each.
function collective.reduce_scatter(x, reduction)
  return CollectiveReduceScatter(x, {reduction = reduction or "sum"})
end

-- The sum, or with "mean" the mean, of all values, for all.
function collective.all_reduce(x, reduction)
  return AllReduce({x}, {reductions = {reduction or "sum"}})
end

-- All rows, for all.
function collective.all_gather(x) return CollectiveAllGather(x) end

-- A part of everybody's rows for each.
function collective.all_to_all(x) return CollectiveAllToAll(x) end
