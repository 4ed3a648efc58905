/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of replication share. Private to libcommon/pass.
 *
 * A node of the source has up to two versions: the worker's (or, of variables and what belongs to
 * them, the only one) and the one in the update.
 */
#ifndef TF_PASS_REPLICATE_PRIVATE_H
#define TF_PASS_REPLICATE_PRIVATE_H

#include "base/vec.h"
#include "graph/build.h"
#include "graph/edge_map.h"
#include "pass/replicate/replicate.h"
#include "pass/replicate/replicate_build.h"
#include "pass/rewrite.h"

enum node_fact {
    FACT_NEEDED = 1 << 0,    /* by the entry that trains */
    FACT_MARKED = 1 << 1,    /* hands over a gradient */
    FACT_DOWN = 1 << 2,      /* depends on a gradient */
    FACT_OUTSIDE = 1 << 3,   /* depends on what a worker is fed, or on control flow */
    FACT_WRITER = 1 << 4,    /* changes a variable in the update */
    FACT_UPDATE = 1 << 5,    /* has a version in the update */
    FACT_KEPT = 1 << 6,      /* has a version outside of it, too */
    FACT_SHARD = 1 << 7,     /* that version is beside variables */
    FACT_AFTER = 1 << 8,     /* comes after an update of the same step */
    FACT_INITIAL = 1 << 9,   /* only initial values need it */
    FACT_CONTROLS = 1 << 10, /* pushes wait for it */
    FACT_WRITTEN = 1 << 11,  /* changes a variable in training, or comes after that */
    FACT_TRAINS = 1 << 12,   /* needs what hands over a gradient */
    FACT_SHARED = 1 << 14,   /* changes, in training, a variable that workers share */
    FACT_FIRST = 1 << 13     /* gives a variable its initial value, by the entry init */
};

/* How a value that updates take of workers crosses; CROSSES_NOT: each worker has its own. */
enum replicate_crossing { CROSSES_WHOLE, CROSSES_BY_FACTORS, CROSSES_IN_CODE, CROSSES_NOT };

/* One way to cross, as the model of costs has it. */
struct replicate_way {
    double bytes; /* that a worker sends in a step */
    double ns;
};

/* Some rows of a gradient, in the result: what the worker makes, and the sum of all workers'. */
struct gradient_piece {
    struct edge made;
    int64_t first_row;
    struct edge sum;
};

/* A value that updates take of workers: a gradient, or what is fed. What is to become of it is
 * planned before anything is built. */
struct exchange {
    struct edge edge;        /* of the source, */
    const struct node *node; /* its node, */
    const struct node_output *output;
    const struct node *variable;  /* and the one whose gradient it is, or NULL */
    bool is_gradient, is_of_rows; /* a gradient; of rows of a table, or their numbers */
    int steps;                    /* from one push of it to the next */
    const char *reduction;        /* how workers' values become one: mean, mean_rows, rows, first */
    struct replicate_way ways[CROSSES_NOT]; /* by enum replicate_crossing, */
    const char *why_not[CROSSES_NOT];       /* unless it cannot cross so; NULL: it can */
    enum replicate_crossing crossing;
    const struct technique *technique; /* by that; NULL: it does not cross */
    bool is_delayed;                   /* what crosses among workers is the step before's */
    double known_ns; /* when a step knows it at the earliest; its place in the source's order: */
    int place;
    const struct node *product;   /* of the source, that makes it of factors; NULL: none does */
    struct edge factors[2];       /* of the result: all workers' */
    struct coded_gradient *coded; /* NULL: not in code, or not yet */
    int64_t piece_rows;           /* 0: it is not exchanged some rows at a time */
    VEC(struct gradient_piece) pieces; /* in the order of rows */
    struct edge kept; /* the variable that keeps the step before's, or that of the last average */
    struct edge brought; /* of the result: what is made of the worker's, as rows with none twice */
    int first;           /* of a push: which of its values is the first of it */
    struct edge got;     /* of the result: what updates take */
};
typedef VEC(struct exchange *) exchange_list;

/* A value that a push sends, of the result, as its take has it. */
struct sent_value {
    struct edge edge;
    const char *reduction;
    struct node_output taken;
};

/* A push: the gradients of one variable, with what its updates need besides. */
struct push {
    const char *variable;
    exchange_list exchanges;
    VEC(struct sent_value) sent;
    int steps;         /* from one push to the next */
    struct edge token; /* of the result */
    int take;          /* node of the result */
};

/* A copy some of whose inputs were not there when it was made. */
struct open_copy {
    const struct node *node;
    edge_mapper *map;
    int copy, k;
};

struct towers;  /* pass/replicate/replicate_tower.h */
struct buckets; /* pass/replicate/replicate_reduce.h */
struct replicator {
    const struct graph *from;
    const struct replicate_options *options;
    const char *mode;          /* of those that are compared; NULL: it is the only one */
    const struct entry *entry; /* that trains */
    struct graph *to;
    int *order;
    unsigned *facts;     /* by node */
    int *interval;       /* by node of the update: steps from one round that has it on */
    int *copy, *updated; /* by node: the versions' nodes of `to`, or -1 */
    int *priority;       /* by node that has, or hands on, a variable: 1 for the one that a step
                          * uses first, and so on; 0: of others, and of what no step uses */
    const char **update_names;
    VEC(struct push) pushes;
    exchange_list exchanges;
    struct edge_map exchange_at; /* by edge of the source: place in that list */
    exchange_list planned;       /* in the order in which they cross */
    double exchange_ns;          /* of a step, in all */
    VEC(int) todo;
    VEC(struct open_copy) open;
    int join, leave, round, version, done; /* nodes of `to` */
    int steps;                             /* from one push to the clock to the next */
    bool has_intervals;                    /* some gradients are not in all of these */
    struct worker_own *own;                /* what a worker with shards keeps: replicate_push.h */
    struct edge coding;          /* whether gradients cross in code by now; EDGE_NONE: always */
    struct edge updates;         /* the count that this goes by */
    int merged;                  /* a node that comes after this */
    struct edge rank;            /* of the worker; EDGE_NONE: nobody wants it */
    int computed;                /* a node that comes after what the step computes of variables */
    node_list reducers;          /* nodes that reduce what updates need; */
    int reduced;                 /* a node that comes after them */
    int initial;                 /* the one that reduces initial values, and, by edge of */
    struct edge_map initial_at;  /* the source, which output of it has one */
    enum schedule_kind schedule; /* by which whole gradients are summed */
    struct cost_rates rates;     /* of a worker's CPU */
    struct exchange_ways *ways;
    node_list joined;      /* nodes that the entry join runs besides */
    node_list ends;        /* nodes that a step ends with */
    node_list inits;       /* nodes that the entry init runs besides */
    struct towers *towers; /* of in-graph replication; NULL: it is another */
    struct arena arena;
    struct error *err;
};

static inline bool has(const struct replicator *r, int node, unsigned facts)
{
    return (r->facts[node] & facts) != 0;
}

/* Returns whether workers push gradients to shards; else they exchange them. */
static inline bool replicate_pushes(const struct replicator *r)
{
    return r->options->mode != REPLICATE_ALLREDUCE;
}

/* replicate_find.c: fills facts, pushes, the entry. */
int replicate_find(struct replicator *r);
/* The exchange of an edge of the source; NULL: no update takes it of workers. */
struct exchange *replicate_exchange(const struct replicator *r, struct edge edge);
/* The push of that variable; NULL: there is none. */
struct push *replicate_push_of(const struct replicator *r, const char *variable);
/* Checks that nothing pushed is marked as FACT_AFTER: `what` is what it comes after. */
int replicate_check_late(struct replicator *r, const char *what);
/* A Gather or a Cast of a variable, which has less than there is; a read of one. */
bool replicate_is_lookup(const struct replicator *r, const struct node *node);
bool replicate_is_read(const struct replicator *r, const struct node *node);
/* Fills r->priority, for the entry that was found. */
void replicate_find_priorities(struct replicator *r);

/* replicate_copy.c: copies of nodes, with mapped inputs. */
int replicate_copy_before(struct replicator *r); /* what does not come after updates */
int replicate_copy_update(struct replicator *r);
int replicate_copy_after(struct replicator *r);
void replicate_copy(struct replicator *r, const struct node *node); /* outside the update */

/* Sums rows that gradients have more than once; and what then is to cross. */
int replicate_sum_rows(struct replicator *r);
struct edge replicate_crossing(struct replicator *r, const struct exchange *x);

/* replicate_allreduce.c: the whole of it; what a node gets of an edge then. */
int replicate_allreduce(struct replicator *r);
struct edge replicate_reduced(struct replicator *r, const struct node *reader, struct edge edge);

/* replicate_tower.c: all of in-graph replication, but for names. */
int replicate_towers(struct replicator *r);

#endif
