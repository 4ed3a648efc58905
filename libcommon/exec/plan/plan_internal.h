/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan is made of. Private to libcommon/exec.
 *
 * A plan has its own pruned copy of the graph (plan_graph.c), in which feeds are Placeholders. Each
 * node that computes becomes an *item*, each output a *value*; the planner adds items of its own:
 * fetches, changes of layout, copies between host and device memory, copies of variables that are
 * read before and needed after a write. plan_prepare.c makes them, plan_order.c orders reads and
 * writes of variables, plan_memory.c places values in arenas. Static plans run in static.c, dynamic
 * ones in dynamic.c.
 */
#ifndef TF_EXEC_PLAN_INTERNAL_H
#define TF_EXEC_PLAN_INTERNAL_H

#include "base/map.h"
#include "exec/plan/plan.h"
#include "exec/step/step.h"

enum value_kind {
    VALUE_COMPUTED, /* by an item, in every step */
    VALUE_CONSTANT, /* known when the plan was made: `constant` */
    VALUE_FEED,     /* feeds[feed] of the step */
    VALUE_VARIABLE, /* the variable's own memory: a read or a reference */
};

struct value {
    enum value_kind kind;
    enum dtype type;
    bool is_ref;
    bool on_device;   /* in memory that is not the host's; never on a device whose memory is */
    bool is_outgoing; /* it leaves the process: its memory is plan_options.outgoing's */
    bool is_counted;  /* others may keep it: its memory is never an arena's */
    int twin;         /* the same value in the other memory; -1: none */
    struct shape shape;
    const struct layout *layout;
    struct tensor constant;    /* owned by the plan, or borrowed from the graph */
    struct variable *variable; /* of a reference, or whose memory this value aliases */
    int feed;
    int item;        /* producer; -1: none */
    int alias_input; /* of its item: whose memory it is; -1: its own */
    int alias_of;    /* in the order: the value whose memory this one is; -1: its own */
    int root;        /* where the chain of aliases ends */
    int64_t offset;  /* in the arena of its memory; -1: none */
    size_t bytes;
    int live_from, live_to; /* items, by position in the order */
};

struct variable_lock {
    struct variable *variable;
    bool write;
};

struct item {
    const struct node *node; /* NULL: the planner's own */
    const struct kernel_row *row;
    const struct kernel_code *code;
    const char *name, *kernel;
    void *state;
    size_t scratch_bytes;
    int64_t scratch_offset;
    unsigned flags; /* enum kernel_flag */
    int n_in, n_out;
    int *in, *out;             /* values; in may be -1 (an input that is never given) */
    struct variable **refs;    /* by input; NULL when there are none */
    int *controls, n_controls; /* items that must be over before; they pass on deadness */
    VEC(int) after;            /* items that must be over before, dead or alive */
    VEC(int) follows;          /* some of them: a path leads from there that is not in the plan */
    VEC(int) wishes;           /* items that are to be over before if that closes no cycle */
    VEC(struct variable_lock) take, give; /* static plans: before and after the item */
    bool needs_initialized;    /* its ref inputs must have a value; what it reads always must */
    struct variable **checked; /* those variables, each once, if it reads any */
    int n_checked;
    bool removed;       /* evaluated when the plan was made */
    bool is_point;      /* only running tells when, or whether, there is what it brings */
    bool uses_copies;   /* an input was copied to the device */
    int output_forward; /* out[0]'s enum kernel_forward */
    int output_from;
};

struct instance;
struct pool;

/* A loop that runs as one item, whose inputs are what enters it and whose outputs are what leaves
 * it. What an iteration computes are plans of their own, of the graph that has the loop in it. */
struct while_loop {
    const char *frame; /* its name */
    uint64_t key;      /* the name's hash */
    int node;          /* of plan->graph */
    int n_variables;   /* the first inputs; those behind are the same in all iterations */
    int n_inputs;
    int *outputs;            /* by variable: which output its last value is; -1: none */
    struct plan_feed *feeds; /* of both plans */
    int *given;              /* by feed: which input's value; WHILE_GIVEN_... */
    int n_feeds;
    struct edge goes_on;     /* what LoopCond is given */
    struct edge *next;       /* by variable: what NextIteration is given */
    int *targets, n_targets; /* what has to be over besides */
    struct plan *condition, *body;
};

enum { WHILE_GIVEN_INDEX = -1, WHILE_GIVEN_TRUE = -2 };

struct plan {
    const struct graph *source;
    struct graph *graph;  /* pruned copy; its nodes are what items point to */
    struct graph *looped; /* the same with all its loops; NULL: none was taken out */
    VEC(struct while_loop *) loops;
    bool keeps_loops; /* none can be taken out */
    struct plan_options options;
    struct arena memory; /* of everything below that is not a VEC */
    VEC(struct item) items;
    VEC(struct value) values;
    int *value_of;       /* first output's value, by node of `graph`; -1: none */
    int *item_of;        /* by node; -1: none */
    int *order, n_order; /* items, as they run; of a dynamic plan, as they are shown, once asked */
    int n_feeds, n_fetches;
    struct plan_feed *feeds; /* as requested */
    int *feed_nodes;         /* of `graph`; -1: not needed */
    int *fetch_values;
    bool is_static;
    bool is_cheap;         /* static: no kernel is worth a thread of its own */
    size_t arena_bytes[2]; /* of static plans: the host's memory, the device's */
    struct plan_item *dump;
    pthread_mutex_t lock;    /* guards idle */
    struct instance *idle;   /* memory of steps that are over */
    struct pool *counted;    /* static: where counted values live; NULL: there are none */
    struct dynamic *dynamic; /* of dynamic plans */
};

/* plan_graph.c: prunes; sets graph, feeds, feed_nodes. fetch_edges gets the fetches in the copy. */
int plan_make_graph(struct plan *plan, const struct plan_request *request, struct edge *fetch_edges,
                    struct error *err);

/* Whether kernels run beside each other, each with a team of one. */
static inline bool plan_is_parallel(const struct plan *plan)
{
    return plan->options.alone || (!plan->is_static && plan->options.threads > 1);
}

/* Threads that a kernel may use. */
static inline int plan_team(const struct plan *plan)
{
    return plan_is_parallel(plan) ? 1 : plan->options.device->threads;
}

/* plan_stack.c: tells what is taken from a stack the shape that all have that are pushed. */
int plan_infer_stacks(struct graph *graph, struct error *err);

/* plan_while.c: takes out of plan->graph the loops that can run as one item; `fetch_edges` follow.
 */
int plan_take_loops(struct plan *plan, struct edge *fetch_edges, struct error *err);
/* The loop that the node stands for; NULL: it is no such node. */
struct while_loop *plan_while_of(const struct plan *plan, const struct node *node);
/* ERR_INTERNAL, with plan->keeps_loops set: it has points nevertheless. */
int plan_compile_while(struct plan *plan, struct while_loop *loop, struct error *err);
void while_free(struct while_loop *loop);
/* What tells an iteration from all others of the step, by the same of the iteration around it. */
static inline uint64_t while_iteration(uint64_t outer, uint64_t key, int64_t number)
{
    uint64_t path[] = {outer, key, (uint64_t)number + 1};
    uint64_t hash = hash_bytes(path, sizeof path, 0);
    return hash ? hash : 1;
}

/* plan_prepare.c: whether the node's outputs can be planned for. */
bool plan_can_place(const struct plan *plan, const struct node *node);
/* Values, items, prepared kernels, fetches. */
int plan_prepare(struct plan *plan, const struct edge *fetch_edges, struct error *err);
int plan_add_value(struct plan *plan, enum dtype type, const struct shape *shape);
int plan_add_item(struct plan *plan, const struct item *item);
/* The value with this value's memory, following aliases. */
int plan_root_value(const struct plan *plan, int value);

/* plan_after.c: what has to be over before, by attributes and by variables' control inputs; and of
 * an item that has the variable of that node. */
void plan_bind_after(struct plan *plan);
void plan_follow_variable(struct plan *plan, int item, int node);

/* plan_kernel.c: prepares the item's kernel; the item has its inputs and outputs. */
int plan_prepare_kernel(struct plan *plan, struct item *item, struct error *err);

/* plan_transfer.c: the value in the memory that is wanted: itself, or a copy, which all consumers
 * share if it is the same for all. -1 with the error set. */
int plan_in_memory(struct plan *plan, int value, bool on_device, const struct item *consumer,
                   struct error *err);
/* Whether it only enqueues a copy of its input, to the host or from there. */
bool plan_is_copied(const struct plan *plan, const struct item *item);
/* When all items are there: finds those that use what is copied to the device. */
void plan_find_copies(struct plan *plan);
/* The item that copies a variable for this input, and for no other; -1: none does. */
int plan_copy_for(const struct plan *plan, const struct item *item, int input);
/* The constant as the host sees it; NULL: the value is none. */
const struct tensor *plan_host_constant(const struct plan *plan, int value);

/* plan_layout.c: the value in row-major order: itself, or the result of a relayout item; -1 with
 * the error set. */
int plan_row_major(struct plan *plan, int value, struct error *err);

/* plan_fold.c: computes the item now, if that can be; its outputs become constants. */
void plan_fold(struct plan *plan, struct item *item);

/* plan_outgoing.c: marks what leaves the process. */
void plan_find_outgoing(struct plan *plan);

/* plan_order.c: orders reads and writes of variables by the rule of graph/access.h; ERR_DATA if
 * they contradict each other. */
struct use {
    struct variable *variable;
    int item;
    int input; /* of the item */
    bool write;
};
typedef VEC(struct use) use_vec;
void plan_collect_uses(const struct plan *plan, int item, use_vec *uses);
int plan_order_variables(struct plan *plan, struct error *err);
/* Then: finds the variables that an item checks. */
void plan_find_checks(struct plan *plan);

/* plan_condition.c: by item, of the conditions that it adds to the graph; -1: always. NULL: they
 * are not known. */
struct access_graph;
const int *plan_find_conditions(const struct plan *plan, struct access_graph *graph,
                                struct arena *memory);

/* plan_schedule.c: puts the items of a static plan in order, and says who locks variables. */
int plan_schedule(struct plan *plan, struct error *err);
/* Puts items into `order` by their rank (-1: they are left out; NULL: all have the same), and those
 * of one rank so that what one waits for comes first. ERR_INTERNAL if that cannot be. */
int plan_sort(const struct plan *plan, const int *rank, int *order, int *n_order,
              struct error *err);
/* Whether it brings a value into the next iteration of a loop. */
bool plan_is_back_edge(const struct plan *plan, int from, int to);

/* Adds what an item waits for in its iteration: inputs' items, control inputs, `after`. */
struct before {
    int item;
    int slot;      /* which of its outputs; -1: that it is over */
    bool is_after; /* dead or alive */
};
typedef VEC(struct before) before_vec;
void plan_collect_befores(const struct plan *plan, int item, before_vec *befores);

/* plan_memory.c: lifetimes, reuse, offsets of what the items in `order` compute, in arenas of
 * their own, whose sizes (in host memory, in the device's) go to `bytes`. Where the items of a
 * region run in that order, and regions as they come, an item gets what those of another region
 * used only if it `may_follow` them; `follows` is told that it has to. */
struct placing {
    const int *order;
    int n_order;
    const int *region; /* by item; NULL: all are one */
    bool (*may_follow)(void *context, int before, int item);
    void (*follows)(void *context, int before, int item);
    void *context;
};
void plan_place_memory(struct plan *plan, const struct placing *placing, size_t bytes[2]);

/* plan_counted.c: which inputs an op keeps must be counted; and of a static plan, what else is. */
void plan_count_kept(struct plan *plan, const struct item *item);
void plan_find_counted(struct plan *plan);

/* start.c. What a run of a plan was given, and who is told how it ended. */
struct execution {
    struct step *step;
    const struct tensor *feeds;
    struct tensor *fetches;
    struct step_done *done; /* NULL: the thread that runs it waits for the end */
    bool is_part;           /* of a step that others end */
    struct step_waiter
        waiter; /* aborts the rendezvous when the step stops; registered if `waits` */
    bool waits;
};

/* Clears fetches and checks feeds. execution_close follows in any case; it stops the step if the
 * run failed, and ends it. In between *execution must not move. */
int execution_open(struct execution *execution, const struct plan *plan, struct error *err);
void execution_close(struct execution *execution, int code, const struct error *err);
/* How a run has ended, all that it enqueued included: as `own` says, the run's own failure (NULL:
 * none), or the device's (NULL or no error: none), or a kernel's that was enqueued. */
int execution_result(const struct plan *plan, struct step *step, const struct error *own,
                     const struct error *devices, struct error *err);

/* static.c */
int static_run(struct plan *plan, struct execution *execution, struct error *err);
void static_start(struct plan *plan, const struct execution *execution);
/* Those that no step uses. */
void static_free_instances(struct plan *plan);
/* The kernel of loops: state: struct while_loop. */
extern const struct kernel_code plan_while_code;

/* dynamic_plan.c: finds frames; when items are ordered, regions and edges. */
int dynamic_new(struct plan *plan, struct error *err);
int dynamic_connect(struct plan *plan, struct error *err);

/* region_list.c: of a dynamic plan, for plan_items: its order, and then regions and lifetimes in
 * it. */
void region_list(struct plan *plan);
int region_count(const struct plan *plan);
void region_describe(const struct plan *plan, struct plan_item *items);

/* dynamic_step.c */
void dynamic_free(struct plan *plan);
/* Of memory that steps had, what none uses. */
void dynamic_trim(struct plan *plan);
int dynamic_run(struct plan *plan, struct execution *execution, struct error *err);
void dynamic_start(struct plan *plan, const struct execution *execution);

/* Host memory that kernels have asked for (kernel_temporary). */
typedef VEC(void *) temporary_vec;

/* What call->executor points to: how a kernel obtains outputs. The first member of whatever the
 * executor keeps per call. */
struct call_host {
    bool planned; /* outputs have memory from the plan, or alias what has */
    bool counts;  /* but for counted ones, which come from `pool` */
    struct plan *plan;
    const struct item *item;
    struct tensor *fetches;     /* of the step */
    struct variable **out_refs; /* dynamic: the variable of a ref output */
    struct pool *pool;          /* dynamic: where outputs come from */
    struct pool *host_pool;     /* and those in host memory, if that is not the device's */
    bool copies_reads; /* dynamic: an output cannot be memory of a variable that is not counted */
    temporary_vec *temporaries; /* freed after the call */
    void (*done)(struct call_host *host, int result);
};

/* kernel_memory.c: memory for a value of a dynamic plan; NULL: there is none. */
struct buffer *value_alloc(const struct plan *plan, int value, struct pool *pool, enum dtype type,
                           size_t bytes);
/* A copy in that memory, which may have been refused (NULL): ERR_OS. */
int value_copy(struct device *device, struct buffer *buffer, const struct tensor *from,
               struct tensor *to, struct error *err);
/* Whether it takes less than handing it to another thread: its kernel always does, or what
 * it is known to read and write is little. */
bool item_is_cheap(const struct plan *plan, const struct item *item);
/* What is left is empty, and can be used again. Most kernels have asked for none. */
void temporaries_give_back(temporary_vec *temporaries);
static inline void temporaries_free(temporary_vec *temporaries)
{
    if (temporaries->n)
        temporaries_give_back(temporaries);
}
/* Puts node and op in front of a kernel's message. */
int item_fail(const struct item *item, struct error *err);
/* Before the item's kernel runs: ERR_DATA unless every variable that it reads has a value; what was
 * copied to the device for it is waited for there. */
int item_make_ready(const struct plan *plan, const struct item *item, struct error *err);
static inline int item_begin(const struct plan *plan, const struct item *item, struct error *err)
{
    return item->n_checked || item->uses_copies ? item_make_ready(plan, item, err) : 0;
}
/* When the call's kernel, which began at `start` (if there is a trace), has run: tells the trace,
 * and looks at the outputs if that was asked for. 0, or the error code with the node's name in
 * front. */
int item_over(const struct plan *plan, const struct item *item, const struct kernel_call *call,
              int64_t start, int result);

/* The kernels of the planner's own items. */
extern const struct kernel_code plan_fetch_code; /* state: the index of the fetch */
extern const struct kernel_code plan_copy_code;
extern const struct kernel_code plan_copy_in_code;
extern const struct kernel_code plan_copy_out_code;

#endif
