/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by replication's files. Private to libcommon/pass.
 *
 * A node of the source has up to two versions: the worker's (for variables and the nodes that
 * belong to them, the only one) and the one in the update.
 */
#ifndef TF_PASS_REPLICATE_PRIVATE_H
#define TF_PASS_REPLICATE_PRIVATE_H

#include "base/map.h"
#include "base/vec.h"
#include "graph/build.h"
#include "graph/edge_map.h"
#include "pass/replicate/replicate.h"
#include "pass/replicate/replicate_build.h"
#include "pass/rewrite.h"

enum node_fact {
    FACT_NEEDED = 1 << 0,    /* the entry that trains needs it */
    FACT_MARKED = 1 << 1,    /* hands over a gradient */
    FACT_DOWN = 1 << 2,      /* depends on a gradient */
    FACT_OUTSIDE = 1 << 3,   /* depends on a value that a worker is fed, or on control flow */
    FACT_WRITER = 1 << 4,    /* changes a variable in the update */
    FACT_UPDATE = 1 << 5,    /* has a version in the update */
    FACT_KEPT = 1 << 6,      /* also has a version outside of the update */
    FACT_SHARD = 1 << 7,     /* that version is beside variables */
    FACT_AFTER = 1 << 8,     /* comes after an update of the same step */
    FACT_INITIAL = 1 << 9,   /* only initial values need it */
    FACT_CONTROLS = 1 << 10, /* pushes wait for it */
    FACT_WRITTEN = 1 << 11,  /* changes a variable in training, or comes after such a node */
    FACT_SHARED = 1 << 12,   /* changes, in training, a variable that workers share */
    FACT_FIRST = 1 << 13,    /* gives a variable its initial value, in the entry init */
    FACT_FORWARD = 1 << 14,  /* the loss needs it; */
    FACT_BACKWARD = 1 << 15  /* a gradient that towers hand over needs it: for pipelines */
};

/* How a value that updates need from workers crosses; CROSSES_NOT: each worker has its own. */
enum replicate_crossing { CROSSES_WHOLE, CROSSES_BY_FACTORS, CROSSES_IN_CODE, CROSSES_NOT };

/* Some rows of a gradient, in the result: the worker's own, and the sum over all workers. */
struct gradient_piece {
    struct edge made;
    int64_t first_row;
    struct edge sum;
};

/* A value that updates need from workers: a gradient, or a value that is fed. How it crosses is
 * planned before anything is built. */
struct exchange {
    struct edge edge;        /* in the source */
    const struct node *node; /* its node */
    const struct node_output *output;
    const struct node *variable;       /* the variable whose gradient it is; NULL: none */
    bool is_gradient, is_of_rows;      /* a gradient; rows of a table's, or their numbers */
    int steps;                         /* between two pushes of it */
    const char *reduction;             /* of workers' values to one: mean, mean_rows, rows, first */
    struct cost_sum ways[CROSSES_NOT]; /* modelled cost of a step, by enum replicate_crossing */
    const char *why_not[CROSSES_NOT];  /* the reason why it cannot cross so; NULL: it can */
    enum replicate_crossing crossing;
    const struct technique *technique; /* of that crossing; NULL: it does not cross */
    bool is_delayed;                   /* workers exchange the value of the step before */
    double known_ns;                   /* the earliest time at which a step can know it */
    int place;
    const struct node *product;   /* node of the source that makes it of factors; NULL: none does */
    struct edge factors[2];       /* in the result: all workers' */
    struct coded_gradient *coded; /* NULL: not in code, or not yet */
    VEC(struct gradient_piece) pieces; /* by row, if it is exchanged some rows at a time */
    struct edge kept;    /* variable with the step before's value, or that of the last average */
    struct edge brought; /* in the result: crosses instead of the worker's value; or EDGE_NONE */
    struct push *push;   /* that sends it; NULL: workers exchange it, or not known yet */
    struct edge got;     /* in the result: the value for updates */
};
typedef VEC(struct exchange *) exchange_list;

/* Values that cross together, in the result. */
struct bucket {
    VEC(struct bucket_value {
        struct edge value;     /* the worker's */
        const char *reduction; /* of workers' values to one */
        struct edge *got;      /* where to store that one */
    })
    values;
    int64_t bytes;
    int priority;    /* of the most urgent value; 0: none */
    bool is_late;    /* it has values of the step before */
    bool is_initial; /* it has initial values, which belong to no step */
    bool is_whole;   /* it has uncoded gradients of a warm-up */
};

/* A push: the gradients of one variable, and other values that its updates need. */
struct push {
    const char *variable;
    exchange_list exchanges;
    bool has_gradient;
    struct bucket sent;
    int steps;         /* between two of these pushes */
    struct edge token; /* in the result */
};

struct towers;  /* replicate_tower.c */
struct buckets; /* pass/replicate/replicate_plan.h */
struct replicator {
    struct rewrite w;
    const struct replicate_options *options;
    const char *mode;          /* name, if several are compared; else NULL */
    const struct entry *entry; /* that trains */
    unsigned *facts;           /* by node */
    int *interval;             /* by node of the update: steps between rounds that have it */
    int *copy, *updated;       /* by node: its versions in `to`, or -1 */
    int *priority; /* by node that has, or passes on, a variable: 1 for the one that a step
                    * uses first, and so on; 0: the others, and those that no step uses */
    VEC(struct push) pushes;
    struct map push_at; /* by variable: place in that list */
    VEC(int) checks;    /* nodes that exchanges wait for */
    exchange_list exchanges;
    struct edge_map exchange_at;           /* by edge of the source: index in `exchanges` */
    exchange_list planned;                 /* in the order of crossing */
    double exchange_ns;                    /* total of a step */
    int join, leave, round, version, done; /* nodes of `to` */
    int steps;                             /* between two pushes to the clock */
    struct push *steady;                   /* if some gradients are pushed less often: one that is
                                            * in each push; NULL: all are */
    struct worker_own *own;                /* of a worker with shards: replicate_plan.h */
    struct edge coding;          /* whether gradients cross in code by now; EDGE_NONE: always */
    int merged;                  /* a node after `coding` was used */
    struct edge rank;            /* of the worker; EDGE_NONE: not needed */
    int computed;                /* a node after all of a step that reads variables */
    struct buckets *buckets;     /* without shards */
    node_list reducers;          /* nodes that reduce values for updates */
    int reduced;                 /* a node after `reducers` */
    int initial;                 /* the node that reduces initial values, and */
    struct edge_map initial_at;  /* by edge of the source: its output for that edge */
    enum schedule_kind schedule; /* for the sums of whole gradients */
    struct cost_rates rates;     /* of a worker's CPU */
    struct exchange_ways *ways;
    node_list joined;      /* nodes that the entry join also runs */
    node_list ends;        /* nodes that a step ends with */
    node_list inits;       /* nodes that the entry init also runs */
    struct towers *towers; /* in-graph replication; NULL: another kind */
};

static inline bool has(const struct replicator *r, int node, unsigned facts)
{
    return (r->facts[node] & facts) != 0;
}

/* Returns whether workers push gradients to shards; otherwise they exchange them. */
static inline bool replicate_pushes(const struct replicator *r)
{
    return r->options->mode != REPLICATE_ALLREDUCE;
}

/* replicate_find.c: finds facts, pushes, and the entry. */
int replicate_find(struct replicator *r);
/* Finds the entry that trains, which `what` is done with, and marks the nodes that it needs; NULL:
 * there is none. */
int replicate_find_entry(struct replicator *r, const char *what);
/* Returns the exchange of an edge of the source; NULL: no update needs it from workers. */
struct exchange *replicate_exchange(const struct replicator *r, struct edge edge);
/* Makes one of an edge of the source, of which no more is known than its node and output. */
struct exchange *replicate_new_exchange(struct replicator *r, struct edge edge);
/* Checks that nothing pushed has FACT_AFTER: `what` names what it comes after. */
int replicate_check_late(struct replicator *r, const char *what);
/* A Gather or Cast of a variable that is no larger than the variable; a read of one. */
bool replicate_is_lookup(const struct replicator *r, const struct node *node);
bool replicate_is_read(const struct replicator *r, const struct node *node);

/* Returns whether it is in each push to the clock. */
static inline bool replicate_is_steady(const struct replicator *r, const struct push *push)
{
    return push->steps == r->steps;
}
/* Returns whether updates are behind a Switch, which leaves them out now and then. */
bool replicate_may_leave_out(const struct replicator *r);
int replicate_refuse_leaving_out(struct replicator *r, const char *why); /* then */

/* Copies the nodes outside of the update: those that come after updates (FACT_AFTER), or others. */
int replicate_copy_all(struct replicator *r, unsigned after, rewrite_map *map);

/* Sums rows that a gradient has more than once; returns the edge of the value that is to cross. */
int replicate_sum_rows(struct replicator *r);
struct edge replicate_crossing(struct replicator *r, const struct exchange *x);

/* replicate_allreduce.c: makes the whole graph, except names. */
int replicate_allreduce(struct replicator *r);

/* replicate_tower.c: in-graph replication, except names. */
int replicate_towers(struct replicator *r);
/* Returns the edge of the result that stands for an edge of the source; on failure the replicator's
 * error is set. */
struct edge towers_whole(struct towers *t, struct edge edge);

#endif
