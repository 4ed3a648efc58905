/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of a sum by a schedule: of each round the longest of its flows, and of what goes by one
 * adapter; and the latency of as many rounds as one piece takes, since those behind it overlap.
 * With what cores that are shared take for all of it.
 */
#include <math.h>

#include "base/memory.h"
#include "pass/place/cost.h"

#define PIECE_BYTES (64 << 10) /* that goes by itself */
#define PIECES_MAX 96

struct schedule_cost {
    const char *job;
    const struct cluster *cluster;
    int n;
    double piece_bytes;
    struct cost_way *ways; /* [from * n + to] */
    int *hosts;            /* by task; -1: unknown */
    double *out, *in;      /* by host, in a round: flows to others, and from them */
    double *sent;          /* by task, of all */
    double *passed;        /* what it sends and gets, */
    double *messages;      /* and in how many messages one piece for each */
};

static double rounds_ns(struct schedule_cost *s, const struct sum_schedule *schedule)
{
    double total = 0;
    size_t i = 0;
    for (int round = 0; round < schedule->n_rounds; round++) {
        double ns = 0;
        for (; i < schedule->flows.n && schedule->flows.items[i].round == round; i++) {
            const struct schedule_flow *flow = &schedule->flows.items[i];
            int from = s->hosts[flow->from], to = s->hosts[flow->to];
            ns = fmax(ns, s->ways[flow->from * s->n + flow->to].per_byte * s->piece_bytes);
            s->sent[flow->from] += s->piece_bytes;
            s->passed[flow->from] += s->piece_bytes;
            s->passed[flow->to] += s->piece_bytes;
            if (from < 0 || to < 0 || from == to)
                continue;
            s->out[from]++;
            s->in[to]++;
        }
        /* A round takes as long as its slowest adapter; the counts begin anew. */
        for (size_t h = 0; s->cluster && h < s->cluster->hosts.n; h++) {
            double bandwidth = s->cluster->hosts.items[h].bandwidth;
            if (bandwidth > 0)
                ns =
                    fmax(ns, cost_adapter_ns(fmax(s->out[h], s->in[h]), s->piece_bytes, bandwidth));
            s->out[h] = s->in[h] = 0;
        }
        total += ns;
    }
    return total;
}

static void sum_up(struct schedule_cost *s, const struct sum_schedule *schedule,
                   const struct sum_schedule *least, struct cost_sum *cost)
{
    const struct cost_traffic bytes = {.job = s->job, .n = s->n, .by_task = s->passed};
    const struct cost_traffic messages = {.job = s->job, .n = s->n, .by_task = s->messages};
    struct cost_way all = {0, rounds_ns(s, schedule)};
    struct cost_way waits = {0, 0};
    for (int i = 0; i < s->n * s->n; i++)
        if (i / s->n != i % s->n)
            waits.latency = fmax(waits.latency, s->ways[i].latency);
    waits.latency *= least->n_rounds;
    for (size_t i = 0; i < least->flows.n; i++) {
        s->messages[least->flows.items[i].from]++;
        s->messages[least->flows.items[i].to]++;
    }
    cost->ns = cost_with_cores(all, &bytes, 1, s->cluster).per_byte +
               cost_with_cores(waits, &messages, 1, s->cluster).latency;
    cost->bytes = 0;
    for (int k = 0; k < s->n; k++)
        cost->bytes = fmax(cost->bytes, s->sent[k]);
}

int cost_schedule(const struct cost_sum_query *query, double bytes, struct cost_sum *cost,
                  struct error *err)
{
    size_t n = (size_t)query->n, n_hosts = query->cluster ? query->cluster->hosts.n : 0;
    struct schedule_cost s = {.job = query->job, .cluster = query->cluster, .n = query->n};
    struct sum_schedule least = {0}, schedule = {0};
    struct schedule_request request = {.kind = query->kind, .n_members = query->n};
    s.ways = mem_array(n * n, sizeof *s.ways);
    s.hosts = mem_array(n, sizeof *s.hosts);
    s.sent = mem_array(3 * n, sizeof *s.sent);
    s.passed = s.sent + n;
    s.messages = s.passed + n;
    s.out = mem_array(2 * n_hosts + 1, sizeof *s.out);
    s.in = s.out + n_hosts;
    for (int i = 0; i < s.n; i++) {
        const struct cluster_task *task = s.cluster ? cluster_find(s.cluster, s.job, i) : NULL;
        s.hosts[i] = task ? task->host : -1;
        for (int k = 0; k < s.n; k++) {
            s.ways[i * s.n + k] = cost_task_way(s.job, i, s.job, k, s.cluster);
        }
    }
    request.hosts = query->cluster ? s.hosts : NULL;
    int code = schedule_make(&request, &least, err);
    if (!code) {
        /* More pieces than the least overlap, if these are large. */
        double most = bytes / PIECE_BYTES < PIECES_MAX ? bytes / PIECE_BYTES : PIECES_MAX;
        int each = (int)(most / least.n_pieces);
        request.n_pieces = least.n_pieces * (each > 1 ? each : 1);
        s.piece_bytes = bytes / request.n_pieces;
        code = schedule_make(&request, &schedule, err);
    }
    if (!code)
        sum_up(&s, &schedule, &least, cost);
    schedule_release(&schedule);
    schedule_release(&least);
    mem_free(s.out);
    mem_free(s.sent);
    mem_free(s.hosts);
    mem_free(s.ways);
    return code;
}
