/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds of flows that are given in an order: each is in the first round in which its value is
 * there, and all links on its way are free.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "exec/step/schedule.h"

/* Of a member's piece: the last round in which something comes to it, and in which it is sent; -1:
 * none. */
struct piece_rounds {
    int came, sent;
};

struct link_rounds {
    VEC(bool) busy; /* by round */
};

struct rounding {
    struct sum_schedule *schedule;
    const struct topology *topology;
    struct piece_rounds *pieces; /* [member * n_pieces + piece] */
    struct link_rounds *links;   /* by index 2 link + direction */
    int round;
    bool free;
};

static void see(void *context, int link)
{
    struct rounding *r = context;
    const struct link_rounds *rounds = &r->links[link];
    r->free &= (size_t)r->round >= rounds->busy.n || !rounds->busy.items[r->round];
}

static void take(void *context, int link)
{
    struct rounding *r = context;
    struct link_rounds *rounds = &r->links[link];
    while (rounds->busy.n <= (size_t)r->round)
        vec_push(&rounds->busy, false);
    rounds->busy.items[r->round] = true;
}

static struct piece_rounds *at(struct rounding *r, int member, int piece)
{
    return &r->pieces[member * r->schedule->n_pieces + piece];
}

static int max(int a, int b)
{
    return a > b ? a : b;
}

static void set_round(struct rounding *r, struct schedule_flow *flow)
{
    struct piece_rounds *from = at(r, flow->from, flow->piece), *to = at(r, flow->to, flow->piece);
    r->round = max(from->came + 1, max(to->came, to->sent));
    for (r->free = false; !r->free; r->round += !r->free) {
        r->free = true;
        topology_walk(r->topology, flow->from, flow->to, see, r);
    }
    topology_walk(r->topology, flow->from, flow->to, take, r);
    flow->round = r->round;
    from->sent = max(from->sent, r->round);
    to->came = r->round;
    r->schedule->n_rounds = max(r->schedule->n_rounds, r->round + 1);
}

/* By round, each round's in the order in which they were. */
static void sort(struct sum_schedule *s)
{
    struct schedule_flow *sorted = mem_array(s->flows.n + 1, sizeof *sorted);
    size_t *first = mem_array((size_t)s->n_rounds + 1, sizeof *first);
    for (size_t i = 0; i < s->flows.n; i++)
        first[s->flows.items[i].round + 1]++;
    for (int round = 0; round < s->n_rounds; round++)
        first[round + 1] += first[round];
    for (size_t i = 0; i < s->flows.n; i++)
        sorted[first[s->flows.items[i].round]++] = s->flows.items[i];
    for (size_t i = 0; i < s->flows.n; i++)
        s->flows.items[i] = sorted[i];
    mem_free(sorted);
    mem_free(first);
}

void schedule_set_rounds(struct sum_schedule *s, const struct topology *topology)
{
    struct topology mesh = {0};
    struct rounding r = {.schedule = s, .topology = topology};
    size_t n = (size_t)s->n_members * (size_t)s->n_pieces;
    if (!topology) {
        topology_mesh(&mesh, s->n_members);
        r.topology = &mesh;
    }
    r.pieces = mem_array(n, sizeof *r.pieces);
    r.links = mem_array(2 * r.topology->links.n + 1, sizeof *r.links);
    for (size_t i = 0; i < n; i++)
        r.pieces[i] = (struct piece_rounds){-1, -1};
    s->n_rounds = 0;
    for (size_t i = 0; i < s->flows.n; i++)
        set_round(&r, &s->flows.items[i]);
    sort(s);
    for (size_t i = 0; i < 2 * r.topology->links.n; i++)
        vec_release(&r.links[i].busy);
    mem_free(r.links);
    mem_free(r.pieces);
    topology_release(&mesh);
}
