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
    FACT_FIRST = 1 << 13     /* gives a variable its initial value, by the entry init */
};

/* A value that crosses: a pushed edge, its code, or one of the factors of it; or whether the push
 * has gradients of some interval. */
enum pushed_as {
    PUSHED_WHOLE,
    PUSHED_FACTOR,
    PUSHED_CODE,
    PUSHED_FIRST,  /* behind a code: the gradient, in the updates in which that is none yet, */
    PUSHED_CODING, /* and whether it is one */
    PUSHED_DUE
};

struct pushed_value {
    struct edge edge; /* of the source; PUSHED_DUE: of the result */
    const char *reduction;
    enum pushed_as as;
};

/* A push: the gradients of one variable. */
struct push {
    const char *variable;
    VEC(struct edge) edges; /* of the source */
    VEC(struct pushed_value) values;
    size_t first_product, n_products; /* of the replicator's */
    int steps;                        /* from one push to the next */
    struct edge token;                /* of the result */
    int take;                         /* node of the result */
};

/* Pushes that have gradients of an interval. */
struct due {
    int steps;
    struct edge due; /* of the result: whether this one is such a push */
    int value;       /* that tells the update, of the steady push */
};

/* A variable of a worker's own that is in checkpoints, of the result, with the gradient of the
 * source that it comes of, and what a push leaves in it, whether it counts or not, or EDGE_NONE. */
struct own_state {
    struct edge gradient, variable, next;
};

/* A worker's own copy of a variable. */
struct local_copy {
    const struct node *variable; /* of the source */
    struct edge copy, used;      /* of the result: the copy, and what the step goes by */
};

/* The consumer of what all workers' values were reduced to. */
enum reduced_for {
    FOR_UPDATES,
    FOR_INITIAL,
    FOR_PRODUCTS,
    FOR_CODES,
    FOR_MEANS,
    FOR_MEMBERS,
    FOR_WARM_UP,
    FOR_DELAYED,
    FOR_PIECES
};

struct reduced_value {
    struct edge edge;  /* of the source */
    struct edge value; /* of the result */
    enum reduced_for use;
    const char *reduction;
    int next; /* of the same edge; 0: there is none */
};

/* A gradient that each worker makes of all workers' factors. */
struct gradient_product {
    struct edge gradient;    /* of the source: the product of left, transposed, and right */
    struct edge left, right; /* of the source */
    const struct node *node; /* the worker's own product, of the source */
    int first;               /* of a push: which of its values is the left one */
};

/* A coded gradient in the result: the value, what its codes have lost, of which its own begins with
 * group `first`, and the code. */
struct code_edges {
    struct edge value, residual, first, code;
};

/* A gradient that crosses in few bits. */
struct coded_gradient {
    struct edge gradient;  /* of the source */
    struct code_edges own; /* the worker's gradient */
    bool is_shared_out;    /* each worker adds its part of what all have, and codes the mean: */
    struct code_edges mean;
    int64_t groups;
    struct shape shape;
    struct attr attrs[5];      /* of the code */
    bool is_taken;             /* what came of all is there */
    struct edge pushed, first; /* to shards: the code, or nothing; nothing, or the gradient */
};

/* A value of an AllReduce in the making. */
struct bucket_value {
    struct edge edge;  /* of the source */
    struct edge value; /* of the result: the worker's */
    const char *reduction;
    enum reduced_for use;
};

struct bucket {
    VEC(struct bucket_value) values;
    int64_t bytes;
    int priority; /* of the most urgent; 0: of none */
};

/* A gradient that is exchanged in the next step, and the variable that keeps it until then. */
struct delayed_gradient {
    struct edge gradient; /* of the source */
    struct edge kept;     /* of the result */
};

/* Facts that are found by an edge of the source. */
enum by_edge {
    BY_PUSHED, /* the push that it goes with; if it crosses as it is */
    BY_WHOLE,
    BY_SLOT, /* that, and which of its values it is */
    BY_LEFT,
    BY_RIGHT, /* whether it is exchanged as a factor */
    BY_CODED,
    BY_REDUCED, /* places in those lists */
    BY_ROWS,    /* node of the result: rows, or their numbers, with none twice */
    N_BY_EDGE
};

/* Some rows of a gradient, in the result: what the worker makes, and the sum of all workers'. */
struct gradient_piece {
    struct edge gradient; /* of the source */
    struct edge made;
    int64_t first_row;
    struct edge sum;
};

struct towers; /* pass/replicate/replicate_tower.h */
struct replicator {
    const struct graph *from;
    const struct replicate_options *options;
    const struct entry *entry; /* that trains */
    struct graph *to;
    int *order;
    unsigned *facts;          /* by node */
    int *interval;            /* by node of the update: steps from one round that has it on */
    int *copy, *updated;      /* by node: the versions' nodes of `to`, or -1 */
    const char **variable_of; /* by writer: the variable's name */
    int *priority; /* by node that has, or hands on, a variable: 1 for the one that a step
                    * uses first, and so on; 0: of others, and of what no step uses */
    const char **update_names;
    VEC(struct push) pushes;
    struct map push_at; /* by variable */
    struct edge_map by_edge[N_BY_EDGE];
    VEC(int) todo;
    VEC(int) open; /* nodes of the source whose copies have inputs to be closed */
    int join, leave, round, version, done; /* nodes of `to` */
    struct edge fetches, fires; /* downpour, accumulation: whether this step does; or EDGE_NONE */
    int steps;                  /* from one push to the clock to the next */
    bool has_intervals;         /* some gradients are not in all of these */
    VEC(struct due) dues;       /* then, one for each interval, */
    struct edge pushed_before;  /* how many pushes there were, of the result, */
    struct edge pushed;         /* and with this one; */
    node_list held;             /* nodes that come after the answer to a push */
    VEC(struct own_state) states;
    VEC(struct local_copy) locals;
    VEC(struct reduced_value) reduced;
    VEC(struct gradient_product) products;
    VEC(struct coded_gradient) coded;
    struct edge coding;  /* whether gradients cross in code by now; EDGE_NONE: always */
    struct edge updates; /* the count that this goes by */
    int merged;          /* a node that comes after this */
    VEC(struct delayed_gradient) delayed;
    int computed; /* a node that comes after what the step computes of variables */
    VEC(struct gradient_piece) pieces;        /* by gradient, in the order of rows */
    enum schedule_kind schedule;              /* by which whole gradients are summed */
    struct cost_rates rates;                  /* of a worker's CPU */
    struct cost_way *way;                     /* by which gradients cross; NULL: not found yet; */
    struct cost_way *read_way;                /* and what comes from shards */
    double pushers_beside;                    /* the share that pushes while others read */
    struct cost_way served_sums, served_rows; /* of what goes by servers */
    struct edge rank;                         /* of the worker; EDGE_NONE: nobody wants it */
    node_list exchanges;                      /* nodes that reduce what updates need */
    node_list joined;                         /* nodes that the entry join runs besides */
    node_list ends;                           /* nodes that a step ends with */
    node_list inits;                          /* nodes that the entry init runs besides */
    struct towers *towers;                    /* of in-graph replication; NULL: it is another */
    struct arena arena;
    struct error *err;
};

static inline int replicate_at(const struct replicator *r, enum by_edge by, struct edge edge)
{
    return edge_map_get(&r->by_edge[by], edge);
}

static inline bool replicate_is_pushed(const struct replicator *r, struct edge edge)
{
    return replicate_at(r, BY_PUSHED, edge) >= 0;
}

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
/* Checks that nothing pushed is marked as FACT_AFTER: `what` is what it comes after. */
int replicate_check_late(struct replicator *r, const char *what);
/* Returns whether it is the gradient of a variable of which each worker has a part: that part's,
 * which crosses nowhere. */
bool replicate_is_of_part(const struct replicator *r, struct edge edge);
/* A Gather or a Cast of a variable, which has less than there is; a read of one. */
bool replicate_is_lookup(const struct replicator *r, const struct node *node);
bool replicate_is_read(const struct replicator *r, const struct node *node);

/* replicate_copy.c: copies of nodes, with mapped inputs. */
struct edge replicate_update_edge(struct replicator *r, struct edge edge); /* in the update */
int replicate_copy_before(struct replicator *r); /* what does not come after updates */
int replicate_copy_update(struct replicator *r);
int replicate_copy_after(struct replicator *r);
void replicate_copy(struct replicator *r, const struct node *node); /* outside the update */
void replicate_close(struct replicator *r);                         /* back edges */

/* The role that a node has in handing over a row-wise gradient; "": it hands over a whole one, or
 * none. */
#define ROLE_INDICES "indices"
#define ROLE_VALUES "values"
static inline const char *replicate_role(const struct node *node)
{
    const struct attr_value *role = node_attr(node, "_gradient_role");
    return role ? role->s : "";
}

/* replicate_rows.c: sums rows that a gradient has more than once; and what then is to cross of a
 * worker's edge, which is any edge of the source. */
int replicate_sum_rows(struct replicator *r);
struct edge replicate_crossing(struct replicator *r, struct edge edge);

/* replicate_allreduce.c: the whole of it. */
int replicate_allreduce(struct replicator *r);

/* replicate_reduced.c: how values of several workers become one, "mean" and the like; and what a
 * node then gets of an edge. */
const char *replicate_reduction(const struct node *node, enum dtype type);
struct edge replicate_reduced(struct replicator *r, const struct node *reader, struct edge edge);
void replicate_note_reduced(struct replicator *r, struct reduced_value reduced);
/* The reduced value for that use; or EDGE_NONE. */
struct edge replicate_find_reduced(const struct replicator *r, struct edge edge,
                                   enum reduced_for use, const char *reduction);
/* Returns whether it gives a variable its initial value, or takes a worker's part of one. */
bool replicate_is_initializer(const struct replicator *r, const struct node *node);

/* replicate_choice.c: how what is pushed is to cross; whoever wants to is told. */
enum crossing { CROSSES_WHOLE, CROSSES_BY_FACTORS, CROSSES_IN_CODE };
enum crossing replicate_choose(struct replicator *r, struct edge gradient,
                               struct gradient_product *product);
/* Tells of a gradient that does not cross. */
void replicate_explain_part(struct replicator *r, struct edge gradient);

/* replicate_factors.c: NULL and the product, or why it cannot be made of factors; and what that
 * costs. `n` workers exchange as `way` says. */
const char *replicate_find_product(const struct replicator *r, struct edge edge,
                                   struct gradient_product *product);
struct replicate_way replicate_factors_way(const struct replicator *r, int n, struct cost_way way,
                                           const struct gradient_product *product);
/* The product of all workers' factors, in the result, with the variable or, NULL, of the worker. */
struct edge replicate_add_product(struct replicator *r, const struct gradient_product *product,
                                  const struct edge factors[2], const char *variable);

/* replicate_schedule.c: sets r->schedule; and the attributes of what goes by it, up to two: how
 * many these are. */
int replicate_choose_schedule(struct replicator *r);
int replicate_schedule_attrs(struct replicator *r, struct attr *attrs);

/* Adds the node that reduces the bucket's values as one; the bucket is empty then. */
void replicate_put(struct replicator *r, struct bucket *bucket, struct bucket_value value);
int replicate_reduce(struct replicator *r, const char *name, struct bucket *bucket);

/* replicate_delay.c: exchanges of what the step before has computed. Begins it, if asked to. */
void replicate_begin_delay(struct replicator *r);
bool replicate_is_delayed(const struct replicator *r, struct edge edge);
/* The value that the worker exchanges for a pushed edge: its own, or that of the step before. */
struct edge replicate_exchanged(struct replicator *r, struct edge edge);
/* The exchanged value for updates, which wait for what the step reads. */
struct edge replicate_settled(struct replicator *r, struct edge value);
void replicate_end_delay(struct replicator *r);

/* replicate_tower.c: all of in-graph replication, but for names. */
int replicate_towers(struct replicator *r);

/* replicate_priority.c: fills r->priority, for the entry that was found. */
void replicate_find_priorities(struct replicator *r);
/* The priority of the variable of that name. */
int replicate_priority(const struct replicator *r, const char *variable);

/* replicate_cost.c: bytes that cross, and what those who exchange them compute. */
double replicate_elements(const struct replicator *r, struct edge edge);
/* The bytes of the value as it crosses. */
double replicate_bytes(const struct replicator *r, struct edge edge);
int replicate_shards(const struct replicator *r); /* how many there are */

/* Finds how fast a worker's CPU is, by what was measured of the graph. */
int replicate_find_rates(struct replicator *r);
/* The time of a node on a core of its own. */
double replicate_node_ns(const struct replicator *r, const struct node *node);
/* The time in which all workers compute at once what takes each so long on a core of its own; and
 * in which shards do, each its part. */
double replicate_workers_ns(const struct replicator *r, double ns);
double replicate_shards_ns(const struct replicator *r, double ns);
/* Rows, or a code, of so many bytes, which each of n workers has for all others. */
struct replicate_way replicate_gather_way(const struct replicator *r, int n, struct cost_way way,
                                          double bytes);

/* ---- large gradients of products in pieces, for all-reduce: replicate_pieces.c ---- */

/* Returns whether a gradient that crosses whole does so some rows at a time. */
bool replicate_is_in_pieces(const struct replicator *r, struct edge gradient);

/* Makes the pieces of such a gradient, and reduces them; a smaller priority goes first, 0: none. */
int replicate_reduce_pieces(struct replicator *r, struct edge gradient, int priority);

/* Adds the updates by these pieces in place of the node, if that is an update by one. */
bool replicate_copy_pieces(struct replicator *r, const struct node *node);

#endif
