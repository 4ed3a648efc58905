/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: checks the result of a schedule, by the sets of contributions that each member has of
 * each piece, round after round.
 */
#ifndef TF_TESTS_LIB_SCHEDULE_CHECK_H
#define TF_TESTS_LIB_SCHEDULE_CHECK_H

#include "base/memory.h"
#include "collective/schedule.h"

struct schedule_report {
    bool by_rank; /* all sums are ((0 + 1) + 2) + ... */
    int n_flows;
};

struct sum_held {
    uint64_t members; /* whose values are in it */
    uint64_t kept;    /* that are still to be added to it */
    bool by_rank;     /* it is a sum of ranks from 0 on, one after the other */
};

struct schedule_checking {
    const struct sum_schedule *schedule;
    struct sum_held *held, *before; /* [member * n_pieces + piece]: now, and as the round began */
    int *busy;    /* [from * n_members + to]: the round in which it was last; -1: none */
    int *on_ways; /* the same: how many pieces */
    int round;
    struct error *err;
};

static inline uint64_t member_bit(int member)
{
    return (uint64_t)1 << member;
}

static inline uint64_t schedule_members(const struct sum_schedule *s)
{
    return s->n_members == 64 ? UINT64_MAX : member_bit(s->n_members) - 1;
}

/* ---- one flow ---- */

static inline int refuse_flow(struct schedule_checking *c, const struct schedule_flow *flow,
                              const char *why)
{
    return error_set(c->err, ERR_DATA, "round %d, piece %d from %d to %d: %s", flow->round,
                     flow->piece, flow->from, flow->to, why);
}

static inline bool is_flow(const struct sum_schedule *s, const struct schedule_flow *flow)
{
    return flow->from >= 0 && flow->from < s->n_members && flow->to >= 0 &&
           flow->to < s->n_members && flow->from != flow->to && flow->piece >= 0 &&
           flow->piece < s->n_pieces && flow->round >= 0 && flow->round < s->n_rounds;
}

/* Returns whether a + b continues the sum by rank that one of them is. */
static inline bool goes_on_by_rank(const struct sum_held *a, const struct sum_held *b)
{
    return a->by_rank && b->members == a->members + 1;
}

/* Applies a flow; returns NULL, or why it is invalid. */
static inline const char *apply_flow(const struct sum_schedule *s, const struct schedule_flow *flow,
                                     const struct sum_held *from, struct sum_held *to)
{
    if (flow->operation == SCHEDULE_COPY) {
        *to = *from;
        return from->members == schedule_members(s) ? NULL : "copies what is not the whole sum";
    }
    if ((to->members | to->kept) & from->members)
        return "counts a contribution twice";
    if (flow->operation == SCHEDULE_ADD) {
        to->by_rank = goes_on_by_rank(from, to) || goes_on_by_rank(to, from);
        to->members |= from->members;
        return NULL;
    }
    if (from->members != member_bit(flow->from) || to->members != member_bit(flow->to))
        return "keeps what is no member's own value";
    to->kept |= from->members;
    if ((to->members | to->kept) == schedule_members(s))
        *to = (struct sum_held){.members = schedule_members(s), .by_rank = true};
    return NULL;
}

static inline int check_flow(struct schedule_checking *c, const struct schedule_flow *flow)
{
    const struct sum_schedule *s = c->schedule;
    if (!is_flow(s, flow))
        return refuse_flow(c, flow, "there is no such flow");
    if (flow->round < c->round)
        return refuse_flow(c, flow, "it comes after a later one");
    if (flow->round > c->round)
        for (int i = 0; i < s->n_members * s->n_pieces; i++)
            c->before[i] = c->held[i];
    c->round = flow->round;
    int way = flow->from * s->n_members + flow->to;
    if (c->busy[way] == flow->round)
        return refuse_flow(c, flow, "its way carries another flow");
    c->busy[way] = flow->round;
    c->on_ways[way]++;
    const char *why = apply_flow(s, flow, &c->before[flow->from * s->n_pieces + flow->piece],
                                 &c->held[flow->to * s->n_pieces + flow->piece]);
    return why ? refuse_flow(c, flow, why) : 0;
}

/* ---- all ---- */

static inline int check_ends(const struct schedule_checking *c, struct schedule_report *report)
{
    const struct sum_schedule *s = c->schedule;
    report->by_rank = true;
    for (int i = 0; i < s->n_members * s->n_pieces; i++) {
        if (c->held[i].members != schedule_members(s))
            return error_set(c->err, ERR_DATA, "member %d does not get the whole sum of piece %d",
                             i / s->n_pieces, i % s->n_pieces);
        report->by_rank &= c->held[i].by_rank;
    }
    return 0;
}

/* Checks that each route between two members carries at most one flow per round, that each flow
 * brings existing values, that no contribution counts twice, and that each member ends with each
 * sum; ERR_DATA names the round. *on_ways, [from * n_members + to], gets the pieces over each. */
static inline int schedule_check(const struct sum_schedule *s, int *on_ways,
                                 struct schedule_report *report, struct error *err)
{
    size_t n = (size_t)s->n_members * (size_t)s->n_pieces;
    size_t n_ways = (size_t)s->n_members * (size_t)s->n_members;
    struct schedule_checking c = {.schedule = s, .on_ways = on_ways, .err = err};
    int code = 0;
    c.held = mem_array(n, sizeof *c.held);
    c.before = mem_array(n, sizeof *c.before);
    c.busy = mem_array(n_ways, sizeof *c.busy);
    for (size_t i = 0; i < n; i++) {
        int member = (int)i / s->n_pieces;
        c.held[i] = c.before[i] =
            (struct sum_held){.members = member_bit(member), .by_rank = member == 0};
    }
    for (size_t i = 0; i < n_ways; i++) {
        c.busy[i] = -1;
        on_ways[i] = 0;
    }
    *report = (struct schedule_report){.n_flows = (int)s->flows.n};
    for (size_t i = 0; i < s->flows.n && !code; i++)
        code = check_flow(&c, &s->flows.items[i]);
    if (!code)
        code = check_ends(&c, report);
    mem_free(c.held);
    mem_free(c.before);
    mem_free(c.busy);
    return code;
}

#endif
