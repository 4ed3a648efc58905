/* SPDX-License-Identifier: Apache-2.0
 */
#include "collective/by_schedule.h"

#include "collective/rows.h"
#include "collective/sum.h"

bool collective_goes_by_schedule(const struct collective_schedule *schedule,
                                 enum collective_kind kind, bool has_root,
                                 const struct tensor *value)
{
    bool whole = kind == COLLECTIVE_SUM || kind == COLLECTIVE_MEAN;
    return schedule->kind != SCHEDULE_DIRECT && whole && !has_root &&
           collective_can_add(kind, value->type) && value->type != FLOAT16 &&
           value->type != BFLOAT16 && (int64_t)tensor_bytes(value) > COLLECTIVE_SMALL_BYTES;
}

/* Those of a host have its number, as ranks have it. */
static struct schedule_request request_of(const struct collective_schedule *schedule,
                                          const int *ranks, int n, int *hosts)
{
    for (int k = 0; k < n && schedule->hosts; k++)
        hosts[k] = (int)schedule->hosts[ranks[k]];
    return (struct schedule_request){
        .kind = schedule->kind, .n_members = n, .hosts = schedule->hosts ? hosts : NULL};
}

int collective_schedule_parts(const struct collective_schedule *schedule,
                              const struct collective_group *group, int size, int rank)
{
    int ranks[SCHEDULE_MEMBERS_MAX], hosts[SCHEDULE_MEMBERS_MAX];
    int n = collective_group_size(group, size);
    BUG_ON(n > SCHEDULE_MEMBERS_MAX);
    for (int k = 0; k < n; k++)
        ranks[k] = (int)collective_group_rank(group, rank, k);
    const struct schedule_request request = request_of(schedule, ranks, n, hosts);
    return schedule_pieces(&request);
}

void collective_schedule_make(const struct collective_schedule *schedule, const int *ranks, int n,
                              struct sum_schedule *made)
{
    struct error err = ERROR_INIT;
    int hosts[SCHEDULE_MEMBERS_MAX];
    const struct schedule_request request = request_of(schedule, ranks, n, hosts);
    int code = schedule_make(&request, made, &err);
    BUG_ON(code);
}
