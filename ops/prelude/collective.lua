-- SPDX-License-Identifier: Apache-2.0
-- What workers have of each other within a step. Rows are parts along dimension 0; a worker alone
-- has what it brings. Gradients go back to where values came from. `group` parts the workers into
-- groups, each for itself: a number of neighbours, or {size = g, stride = s}, g workers whose ranks
-- are s apart; a root is a place in the group.
local tf = ...

collective = {}

local function root_of(what, root)
  root = root or 0
  if math.type(root) ~= "integer" or root < 0 then
    tf.fail("collective." .. what .. ": the root is the rank of a worker, not " .. tostring(root))
  end
  return root
end

local function is_count(x) return math.type(x) == "integer" and x > 0 end

-- The attributes with those of the group.
local function among(what, group, attrs)
  if group == nil then return attrs end
  local size = type(group) == "table" and group.size or group
  local stride = type(group) == "table" and group.stride or 1
  if not (is_count(size) and is_count(stride)) then
    tf.fail("collective." .. what .. ": a group is a number of workers, or {size = g, stride = s}")
  end
  attrs.group_size, attrs.group_stride = size, stride
  return attrs
end

-- The root's value, for all.
function collective.broadcast(x, root, group)
  return CollectiveBroadcast(x, among("broadcast", group, {root = root_of("broadcast", root)}))
end

-- All rows, for the root; the others get none.
function collective.gather(x, root, group)
  return CollectiveGather(x, among("gather", group, {root = root_of("gather", root)}))
end

-- The root's rows, a part for each.
function collective.scatter(x, root, group)
  return CollectiveScatter(x, among("scatter", group, {root = root_of("scatter", root)}))
end

-- The sum, or with "mean" the mean, of all values, a part of its rows for each.
function collective.reduce_scatter(x, reduction, group)
  return CollectiveReduceScatter(x, among("reduce_scatter", group,
                                          {reduction = reduction or "sum"}))
end

-- The sum, or with "mean" the mean, of all values, for all.
function collective.all_reduce(x, reduction, group)
  return AllReduce({x}, among("all_reduce", group, {reductions = {reduction or "sum"}}))
end

-- All rows, for all.
function collective.all_gather(x, group)
  return CollectiveAllGather(x, among("all_gather", group, {}))
end

-- A part of everybody's rows for each.
function collective.all_to_all(x, group)
  return CollectiveAllToAll(x, among("all_to_all", group, {}))
end

-- The worker's place in the group.
function collective.rank(group)
  return Reshape(CollectiveRank(among("rank", group, {})), {})
end
