/* SPDX-License-Identifier: Apache-2.0
 *
 * What a schedule comes to: the sets of contributions that each member has of each piece, round
 * after round; and what each member does.
 */
#include "base/memory.h"
#include "exec/step/schedule.h"

struct sum_held {
    uint64_t members; /* whose values are in it */
    uint64_t kept;    /* that are still to be added to it */
    bool by_rank;     /* it is a sum of ranks from 0 on, one after the other */
};

struct schedule_checking {
    const struct sum_schedule *schedule;
    const struct topology *topology;
    struct sum_held *held, *before; /* [member * n_pieces + piece]: now, and as the round began */
    int *busy; /* by 2 link + direction: the round in which it was last; -1: none */
    int *on_links;
    int round;
    bool collides;
    struct error *err;
};

static uint64_t bit(int member)
{
    return (uint64_t)1 << member;
}

static uint64_t all_members(const struct sum_schedule *s)
{
    return s->n_members == 64 ? UINT64_MAX : bit(s->n_members) - 1;
}

/* ---- one flow ---- */

static void pass(void *context, int link)
{
    struct schedule_checking *c = context;
    c->collides |= c->busy[link] == c->round;
    c->busy[link] = c->round;
    c->on_links[link]++;
}

static int refuse(struct schedule_checking *c, const struct schedule_flow *flow, const char *why)
{
    return error_set(c->err, ERR_DATA, "round %d, piece %d from %d to %d: %s", flow->round,
                     flow->piece, flow->from, flow->to, why);
}

static bool is_flow(const struct sum_schedule *s, const struct schedule_flow *flow)
{
    return flow->from >= 0 && flow->from < s->n_members && flow->to >= 0 &&
           flow->to < s->n_members && flow->from != flow->to && flow->piece >= 0 &&
           flow->piece < s->n_pieces && flow->round >= 0 && flow->round < s->n_rounds;
}

/* Whether a + b goes on with the sum by rank that one of them is. */
static bool goes_on_by_rank(const struct sum_held *a, const struct sum_held *b)
{
    return a->by_rank && b->members == a->members + 1;
}

/* NULL, or why it cannot be. */
static const char *apply(const struct sum_schedule *s, const struct schedule_flow *flow,
                         const struct sum_held *from, struct sum_held *to)
{
    if (flow->operation == SCHEDULE_COPY) {
        *to = *from;
        return from->members == all_members(s) ? NULL : "copies what is not the whole sum";
    }
    if ((to->members | to->kept) & from->members)
        return "counts a contribution twice";
    if (flow->operation == SCHEDULE_ADD) {
        to->by_rank = goes_on_by_rank(from, to) || goes_on_by_rank(to, from);
        to->members |= from->members;
        return NULL;
    }
    if (from->members != bit(flow->from) || to->members != bit(flow->to))
        return "keeps what is no member's own value";
    to->kept |= from->members;
    if ((to->members | to->kept) == all_members(s))
        *to = (struct sum_held){.members = all_members(s), .by_rank = true};
    return NULL;
}

static int check_flow(struct schedule_checking *c, const struct schedule_flow *flow)
{
    const struct sum_schedule *s = c->schedule;
    if (!is_flow(s, flow))
        return refuse(c, flow, "there is no such flow");
    if (flow->round < c->round)
        return refuse(c, flow, "it comes after a later one");
    if (flow->round > c->round)
        for (int i = 0; i < s->n_members * s->n_pieces; i++)
            c->before[i] = c->held[i];
    c->round = flow->round;
    c->collides = false;
    topology_walk(c->topology, flow->from, flow->to, pass, c);
    if (c->collides)
        return refuse(c, flow, "a link on its way carries another flow");
    const char *why = apply(s, flow, &c->before[flow->from * s->n_pieces + flow->piece],
                            &c->held[flow->to * s->n_pieces + flow->piece]);
    return why ? refuse(c, flow, why) : 0;
}

/* ---- all ---- */

static int check_ends(const struct schedule_checking *c, struct schedule_report *report)
{
    const struct sum_schedule *s = c->schedule;
    report->by_rank = true;
    for (int i = 0; i < s->n_members * s->n_pieces; i++) {
        if (c->held[i].members != all_members(s))
            return error_set(c->err, ERR_DATA, "member %d does not get the whole sum of piece %d",
                             i / s->n_pieces, i % s->n_pieces);
        report->by_rank &= c->held[i].by_rank;
    }
    return 0;
}

static void begin(struct schedule_checking *c)
{
    const struct sum_schedule *s = c->schedule;
    size_t n = (size_t)s->n_members * (size_t)s->n_pieces, n_ways = 2 * c->topology->links.n;
    c->held = mem_array(n, sizeof *c->held);
    c->before = mem_array(n, sizeof *c->before);
    c->busy = mem_array(n_ways + 1, sizeof *c->busy);
    for (size_t i = 0; i < n; i++) {
        int member = (int)i / s->n_pieces;
        c->held[i] = (struct sum_held){.members = bit(member), .by_rank = member == 0};
        c->before[i] = c->held[i];
    }
    for (size_t i = 0; i < n_ways; i++)
        c->busy[i] = -1;
}

static int check_all(struct schedule_checking *c, struct schedule_report *report)
{
    const struct sum_schedule *s = c->schedule;
    int code = 0;
    begin(c);
    *report = (struct schedule_report){0};
    for (size_t i = 0; i < s->flows.n && !code; i++)
        code = check_flow(c, &s->flows.items[i]);
    for (size_t i = 0; i < 2 * c->topology->links.n && !code; i++) {
        int n = c->on_links[i];
        report->on_all_links += n;
        report->most_on_link = n > report->most_on_link ? n : report->most_on_link;
    }
    if (!code)
        code = check_ends(c, report);
    mem_free(c->held);
    mem_free(c->before);
    mem_free(c->busy);
    return code;
}

int schedule_check(const struct sum_schedule *s, const struct topology *topology, int *on_links,
                   struct schedule_report *report, struct error *err)
{
    struct schedule_checking c = {
        .schedule = s, .topology = topology, .on_links = on_links, .err = err};
    size_t n_ways = 2 * topology->links.n;
    int *own = on_links ? NULL : mem_array(n_ways + 1, sizeof *own);
    if (own)
        c.on_links = own;
    for (size_t i = 0; i < n_ways; i++)
        c.on_links[i] = 0;
    int code = topology->n_members == s->n_members
                   ? check_all(&c, report)
                   : error_set(err, ERR_DATA, "a topology of %d members, and %d of them",
                               topology->n_members, s->n_members);
    mem_free(own);
    return code;
}

/* ---- of one member ---- */

/* Whose values are in each member's piece, since flows before were done. */
static void follow(uint64_t *held, const struct schedule_flow *flow, uint64_t all)
{
    held[flow->to] = flow->operation == SCHEDULE_COPY ? all : held[flow->to] | held[flow->from];
}

void schedule_program(const struct sum_schedule *s, int member, int piece,
                      struct schedule_program *program)
{
    uint64_t held[SCHEDULE_MEMBERS_MAX], all = all_members(s);
    for (int k = 0; k < s->n_members; k++)
        held[k] = bit(k);
    for (size_t i = 0; i < s->flows.n; i++) {
        const struct schedule_flow *flow = &s->flows.items[i];
        if (flow->piece != piece)
            continue;
        bool sends = flow->from == member, is_whole = held[flow->from] == all;
        follow(held, flow, all);
        if (sends)
            vec_push(&program->actions,
                     ((struct schedule_action){SCHEDULE_DO_SEND, flow->to, is_whole}));
        else if (flow->to == member)
            vec_push(&program->actions,
                     ((struct schedule_action){flow->operation == SCHEDULE_COPY ? SCHEDULE_DO_COPY
                                                                                : SCHEDULE_DO_ADD,
                                               flow->from, held[member] == all}));
    }
}
