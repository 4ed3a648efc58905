/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums by a schedule: what goes by it, and what comes of it where all values are.
 */
#include <string.h>

#include "base/memory.h"
#include "collective/combine.h"

#define STRIP 512 /* elements, of which all members' sums stay in the first caches */

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

/* ---- where all values are ---- */

struct scheduled_sum {
    const struct sum_schedule *schedule;
    const struct tensor *const *values;
    char *result;
    char *sums; /* STRIP elements of each member */
    int divisor;
};

static void add(const struct scheduled_sum *c, int from, int to, int64_t n)
{
    enum dtype type = c->values[0]->type;
    size_t bytes = STRIP * dtype_bytes(type);
    const void *data[2] = {c->sums + (size_t)from * bytes, c->sums + (size_t)to * bytes};
    const struct collective_terms terms = {type, data, 2, 0};
    collective_sum(&terms, c->sums + (size_t)to * bytes, NULL, n);
}

/* Who has all of it last: the member that the flows of the piece add to. */
static int sum_strip(const struct scheduled_sum *c, int piece, int64_t n)
{
    int last = 0;
    for (size_t i = 0; i < c->schedule->flows.n; i++) {
        const struct schedule_flow *flow = &c->schedule->flows.items[i];
        if (flow->piece != piece || flow->operation != SCHEDULE_ADD)
            continue;
        add(c, flow->from, flow->to, n);
        last = flow->to;
    }
    return last;
}

static void combine_strip(const struct scheduled_sum *c, int piece, int64_t first, int64_t n)
{
    enum dtype type = c->values[0]->type;
    size_t width = dtype_bytes(type), at = (size_t)first * width;
    for (int k = 0; k < c->schedule->n_members; k++)
        memcpy(c->sums + (size_t)k * STRIP * width, (const char *)c->values[k]->data + at,
               (size_t)n * width);
    const void *sum = c->sums + (size_t)sum_strip(c, piece, n) * STRIP * width;
    const struct collective_terms terms = {type, &sum, 1, c->divisor};
    collective_sum(&terms, c->result + at, NULL, n);
}

int collective_combine_by(const struct sum_schedule *schedule, int n_parts,
                          enum collective_kind kind, const struct tensor *const *values,
                          struct tensor *result, struct error *err)
{
    int n = schedule->n_members;
    struct scheduled_sum c = {
        .schedule = schedule, .values = values, .divisor = collective_divides(kind) ? n : 0};
    if (tensor_alloc(result, values[0]->type, &values[0]->shape, err))
        return err->code;
    c.result = result->data;
    c.sums = mem_array((size_t)n * STRIP, dtype_bytes(values[0]->type));
    for (int part = 0; part < n_parts; part++) {
        struct row_range range = collective_part(tensor_count(values[0]), n_parts, part);
        for (int64_t at = 0; at < range.count; at += STRIP)
            combine_strip(&c, part % schedule->n_pieces, range.first + at,
                          range.count - at < STRIP ? range.count - at : STRIP);
    }
    mem_free(c.sums);
    return 0;
}
