/* SPDX-License-Identifier: Apache-2.0
 */
#include "collective/group.h"

static bool has_all_members(const struct collective_group *group)
{
    return group->size < 1;
}

int collective_check_group(const struct collective_group *group, int n, struct error *err)
{
    int64_t span = (int64_t)group->size * group->stride;
    if (has_all_members(group))
        return 0;
    if (group->stride < 1 || n % span)
        return error_set(err, ERR_DATA, "%d workers are not parted into groups of %d, %d apart", n,
                         group->size, group->stride);
    return 0;
}

int64_t collective_group_rank(const struct collective_group *group, int rank, int64_t place)
{
    if (has_all_members(group))
        return place;
    int own = collective_group_place(group, rank);
    return rank + (place - own) * group->stride;
}

int collective_group_place(const struct collective_group *group, int rank)
{
    return has_all_members(group) ? rank : rank / group->stride % group->size;
}

int collective_group_size(const struct collective_group *group, int n)
{
    return has_all_members(group) ? n : group->size;
}

bool collective_group_has(const struct collective_group *group, int rank, int other)
{
    if (has_all_members(group))
        return true;
    int64_t span = (int64_t)group->size * group->stride;
    return rank / span == other / span && rank % group->stride == other % group->stride;
}
