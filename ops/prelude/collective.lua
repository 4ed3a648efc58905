-- SPDX-License-Identifier: Apache-2.0
-- Exchange of values among workers within a step. Rows are parts along dimension 0; a single worker
-- gets its own contribution. Gradients go back to where values came from. `group` divides the
-- workers into independent groups: a number of neighbours, or {size = g, stride = s}, g workers
-- whose ranks are s apart; a root is a place in the group.
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

-- Adds the group's attributes.
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

-- Gives the root's value to all.
function collective.broadcast(x, root, group)
  return CollectiveBroadcast(x, among("broadcast", group, {root = root_of("broadcast", root)}))
end

-- Gives all rows to the root; the others get none.
function collective.gather(x, root, group)
  return CollectiveGather(x, among("gather", group, {root = root_of("gather", root)}))
end

-- Gives each a part of the root's rows.
function collective.scatter(x, root, group)
  return CollectiveScatter(x, among("scatter", group, {root = root_of("scatter", root)}))
end

-- Gives each a part of the rows of the sum, or with "mean" the mean, of all values.
function collective.reduce_scatter(x, reduction, group)
  return CollectiveReduceScatter(x, among("reduce_scatter", group,
                                          {reduction = reduction or "sum"}))
end

-- Gives the sum, or with "mean" the mean, of all values to all.
function collective.all_reduce(x, reduction, group)
  return AllReduce({x}, among("all_reduce", group, {reductions = {reduction or "sum"}}))
end

-- Gives all rows to all.
function collective.all_gather(x, group)
  return CollectiveAllGather(x, among("all_gather", group, {}))
end

-- Gives each a part of everybody's rows.
function collective.all_to_all(x, group)
  return CollectiveAllToAll(x, among("all_to_all", group, {}))
end

-- The worker's place in the group.
function collective.rank(group)
  return Reshape(CollectiveRank(among("rank", group, {})), {})
end
