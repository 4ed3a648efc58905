/* SPDX-License-Identifier: Apache-2.0
 *
 * The schedule by which gradients that cross whole are summed: one for all of them, as it was asked
 * for, or in which they together take the least time.
 */
#include "collective/schedule.h"
#include "pass/replicate/replicate_private.h"

/* There is one level where all workers are on one host, or each is on a host of its own. */
static bool has_two_levels(const struct replicator *r, int n)
{
    const struct cluster *cluster = r->options->cluster;
    int n_hosts = 0;
    for (int i = 0; cluster && i < n; i++) {
        const struct cluster_task *task = cluster_find(cluster, "worker", i);
        bool is_new = task != NULL;
        for (int k = 0; k < i && is_new; k++) {
            const struct cluster_task *other = cluster_find(cluster, "worker", k);
            is_new = !other || other->host != task->host;
        }
        n_hosts += is_new;
        if (!task)
            return false;
    }
    return n_hosts > 1 && n_hosts < n;
}

int replicate_choose_schedule(struct replicator *r)
{
    const struct replicate_options *options = r->options;
    int n = replicate_workers(r->options);
    struct cost_sum costs[SCHEDULE_TWO_LEVEL + 1] = {{0}};
    bool is_there[SCHEDULE_TWO_LEVEL + 1];
    r->schedule = options->schedule;

    if (options->by_servers && options->cluster && !cluster_count(options->cluster, SHARD_JOB))
        return error_set(r->err, ERR_USAGE, "the cluster has no task of the job %s", SHARD_JOB);
    if (options->schedule == SCHEDULE_TWO_LEVEL && (n < 1 || !options->cluster))
        return error_set(r->err, ERR_USAGE,
                         "schedule=two-level goes by the workers' hosts: give the cluster, -c");
    if (options->schedule != SCHEDULE_DIRECT && n > SCHEDULE_MEMBERS_MAX)
        return error_set(r->err, ERR_USAGE, "schedule=%s is for at most %d workers, not %d",
                         schedule_name(options->schedule), SCHEDULE_MEMBERS_MAX, n);
    if (options->schedules && n < 1)
        return error_set(r->err, ERR_USAGE,
                         "schedule=auto depends on the number of workers: give -c or --workers");

    if (n < 1 || options->by_device || options->by_servers ||
        (!options->schedules && !options->explain))
        return 0;
    /* Bytes of what goes by a schedule, of all gradients. */
    double bytes = 0;
    graph_each(node, r->from) {
        struct edge edge = {node->id, 0};
        if (!node_attr(node, "_gradient") || *replicate_role(node))
            continue;
        double own = replicate_bytes(r, edge);
        if (own > (double)COLLECTIVE_SMALL_BYTES)
            bytes += own;
    }
    for (int kind = SCHEDULE_DIRECT; kind <= SCHEDULE_TWO_LEVEL; kind++) {
        const struct cost_sum_query query = {(enum schedule_kind)kind, "worker", n,
                                             r->options->cluster};
        struct error ignored = ERROR_INIT; /* it is not there */
        is_there[kind] = (kind != SCHEDULE_TWO_LEVEL || has_two_levels(r, n)) &&
                         n <= SCHEDULE_MEMBERS_MAX &&
                         !cost_schedule(&query, bytes, &costs[kind], &ignored);
    }
    if (options->schedules) {
        int best = SCHEDULE_DIRECT;
        for (int kind = SCHEDULE_DIRECT; kind <= SCHEDULE_TWO_LEVEL; kind++)
            if (is_there[kind] && costs[kind].ns < costs[best].ns)
                best = kind;
        r->schedule = (enum schedule_kind)best;
    }
    for (int kind = SCHEDULE_DIRECT; kind <= SCHEDULE_TWO_LEVEL && bytes > 0; kind++)
        if (is_there[kind])
            replicate_explain(options, "schedule %-10s of %.0f bytes: %.0f sent, %.3f ms%s",
                              schedule_name((enum schedule_kind)kind), bytes, costs[kind].bytes,
                              costs[kind].ns / 1e6, (int)r->schedule == kind ? ", taken" : "");
    return 0;
}

int replicate_schedule_attrs(struct replicator *r, struct attr *attrs)
{
    const struct cluster *cluster = r->options->cluster;
    int n = replicate_workers(r->options);
    if (r->options->by_device) {
        attrs[0] = (struct attr){"schedule", attr_string(by_device_name(r->options->by_device))};
        return 1;
    }
    if (r->options->by_servers) {
        attrs[0] = (struct attr){"schedule", attr_string(SCHEDULE_BY_SERVERS)};
        return 1;
    }
    if (r->schedule == SCHEDULE_DIRECT)
        return 0;
    attrs[0] = (struct attr){"schedule", attr_string(schedule_name(r->schedule))};
    if (r->schedule != SCHEDULE_TWO_LEVEL)
        return 1;
    int64_t *hosts = arena_array(&r->arena, (size_t)n + 1, sizeof *hosts);
    for (int i = 0; i < n; i++) {
        const struct cluster_task *task = cluster_find(cluster, "worker", i);
        hosts[i] = task ? task->host : -1 - i; /* not known: one of its own */
    }
    attrs[1] = (struct attr){"schedule_hosts", {.kind = ATTR_LIST_INT, .n = n, .ints = hosts}};
    return 2;
}
