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
#include "exec/plan/fuse.h"
#include "exec/plan/plan.h"
#include "exec/plan/plan_while.h"
#include "exec/step/device_step.h"
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
    int n_uses;      /* inputs of items, of a dynamic plan */
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

/* A variable that must have a value. */
struct variable_check {
    struct variable *variable;
    const struct node *reader; /* that is named if it has none; NULL: the planner's own */
};

/* In a static plan: whether it runs in every step. */
enum item_flow {
    FLOW_ALWAYS,
    FLOW_INPUTS, /* where all that it needs is there */
    FLOW_SWITCH, /* likewise, and brings one of its outputs */
    FLOW_MERGE,  /* where one of its inputs is there, whose memory it brings */
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
    const struct shape **seen; /* by input: the shape that it is seen with; NULL: its own */
    struct variable_check *checked; /* those variables, each once, if it reads any */
    int n_checked;
    bool removed;       /* evaluated when the plan was made, or a view that does not run */
    bool is_point;      /* only running tells when, or whether, there is what it brings */
    bool uses_copies;   /* an input was copied to the device */
    bool is_prepared;   /* something is to be done before its kernel runs */
    unsigned char flow; /* enum item_flow */
    int output_forward; /* out[0]'s enum kernel_forward */
    int output_from;
};

/* That an item reads or writes a variable. */
struct use {
    struct variable *variable;
    int item;
    int input; /* of the item */
    bool write;
};
typedef VEC(struct use) use_vec;

/* Of a value in a static plan with branches. */
struct merged {
    bool is_merged; /* a Merge brings its memory, or may */
    int beside;     /* a value of another branch, in whose memory it may be; -1: none */
};

struct instance;
struct pool;

struct plan {
    const struct graph *source;
    struct graph *graph; /* pruned copy; its nodes are what items point to */
    graph_vec wholes;    /* those before ops were fused or loops taken out, from which it borrows */
    VEC(struct while_loop *) loops;
    VEC(uint64_t) kept; /* keys of loops that stay in the graph */
    bool keeps_more;    /* the last of them was taken out: the plan is to be made anew */
    struct plan_options options;
    struct arena memory; /* of everything below that is not a VEC */
    VEC(struct item) items;
    VEC(struct value) values;
    int *value_of;       /* first output's value, by node of `graph`; -1: none */
    int *item_of;        /* by node; -1: none */
    use_vec reads;       /* static: of views that do not run, by the items that read for them */
    int *order, n_order; /* items, as they run; of a dynamic plan, as they are shown, once asked */
    int n_feeds, n_fetches;
    struct plan_feed *feeds; /* as requested */
    int *feed_nodes;         /* of `graph`; -1: not needed */
    struct edge_map fed;     /* outputs of these nodes -> feed, once the graph is as it stays */
    int *fetch_values;
    int *fetch_places; /* of a part: struct plan_place; NULL: it sees all there is */
    bool is_static;
    bool has_branches;       /* static: some items may not run (plan_branch.c) */
    struct merged *merged;   /* then: by value, once all is in order */
    bool is_on_device;       /* items use memory that is not the host's */
    uint32_t first_item;     /* in step blocks: of the plan's items (plan_fault.c) */
    bool is_cheap;           /* static: no kernel is worth a thread of its own */
    atomic_bool is_captured; /* static: all that steps enqueue is the same, as far as is known */
    VEC(struct variable_lock) locks; /* then: all that items take, by id */
    size_t arena_bytes[2];           /* of static plans: the host's memory, the device's */
    struct plan_item *dump;
    struct arenas *own_arenas; /* NULL: options.arenas are a session's */
    struct instance *idle;     /* static: of steps that are over; guarded by the arenas' lock */
    pthread_mutex_t lock;      /* guards what dynamic plans keep of steps that are over */
    struct pool *host_pool;  /* static, on a device with memory of its own: where fetches arrive */
    struct pool *pool;       /* static: of counted values, and of a device's temporary memory; NULL:
                              * there can be none */
    struct dynamic *dynamic; /* of dynamic plans */
};

/* The places of a node's inputs, in the plan's graph. */
#define PLAN_PLACE "_place"

/* plan_graph.c: prunes; sets graph, feeds, feed_nodes. fetch_edges gets the fetches in the copy. */
int plan_make_graph(struct plan *plan, const struct plan_request *request, struct edge *fetch_edges,
                    struct error *err);

/* Whether kernels run beside each other, each with a team of one. */
static inline bool plan_is_parallel(const struct plan *plan)
{
    return plan->options.alone || (!plan->is_static && plan->options.threads > 1);
}

/* Which item makes what an item takes; -1: none. */
static inline int plan_maker(const struct plan *plan, const struct item *item, int input)
{
    return item->in[input] < 0 ? -1 : plan->values.items[item->in[input]].item;
}

/* Threads that a kernel may use. */
static inline int plan_team(const struct plan *plan)
{
    return plan_is_parallel(plan) ? 1 : plan->options.device->threads;
}

/* plan_fuse.c: has the device's passes (fuse.h) rewrite plan->graph; `fetch_edges` follow. */
void plan_fuse(struct plan *plan, struct edge *fetch_edges);

/* plan_stack.c: tells what is taken from a stack the shape that all have that are pushed. */
int plan_infer_stacks(struct graph *graph, struct error *err);

/* plan_static.c: whether the node's outputs can be planned for. */
bool plan_can_place(const struct plan *plan, const struct node *node);
/* Says of plan->graph whether a fixed order with planned memory will do. */
void plan_find_static(struct plan *plan);
/* plan.c: ERR_CANCELLED where nobody wants it any more. */
int plan_goes_on(const struct plan *plan, struct error *err);

/* plan_prepare.c: values, items, prepared kernels, fetches. */
int plan_prepare(struct plan *plan, const struct edge *fetch_edges, struct error *err);
int plan_add_value(struct plan *plan, enum dtype type, const struct shape *shape);
int plan_add_item(struct plan *plan, const struct item *item);
/* An item, not added yet, that copies the value to a new one, in memory of the same kind. */
struct item plan_copy_of(struct plan *plan, int value);
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
/* Whether it brings a feed to the device's memory. */
bool plan_is_feed_copy(const struct plan *plan, const struct item *item);
/* When all items are there: finds those that use what is copied to the device, and whether any uses
 * its memory at all. */
void plan_find_copies(struct plan *plan);
/* Whether what the node passes on may stay in the memory of the plan's device, which is not the
 * host's: a Send or a Recv from that device to itself, or what is reduced with others. */
bool plan_hands_over(const struct plan *plan, const struct node *node);
/* Whether a node, by its row, wants an input in the device's memory, which is not the host's, or
 * gives an output there. */
bool plan_takes_on_device(const struct plan *plan, const struct kernel_row *row,
                          const struct node *node, int input);
bool plan_gives_on_device(const struct plan *plan, const struct kernel_row *row,
                          const struct node *node, int output);
/* NULL: it is not in the device's module. */
const struct kernel_code *plan_find_code(const struct plan *plan, const struct node *node,
                                         const struct kernel_row *row);
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
void plan_collect_uses(const struct plan *plan, int item, use_vec *uses);
int plan_order_variables(struct plan *plan, struct error *err);
/* Then: finds the variables that an item checks. */
void plan_find_checks(struct plan *plan);

/* plan_branch.c: of a static plan with branches: how the item, whose inputs are there, depends on
 * what may not be. */
enum item_flow plan_flow_of(const struct plan *plan, const struct item *item);
/* Whether one of the node's control inputs may not be there. */
bool plan_may_lack_control(const struct plan *plan, const struct node *node);
/* What a Merge may have as its input: a variable's value is copied. */
int plan_for_merge(struct plan *plan, int value);
/* In order: finds what can be in one memory because only one of it is there. */
void plan_join_branches(struct plan *plan);

/* plan_condition.c: by item, of the conditions that it adds to the graph; -1: always. NULL: they
 * are not known. */
struct access_graph;
const int *plan_find_conditions(const struct plan *plan, struct access_graph *graph,
                                struct arena *memory);

/* plan_fault.c: how items are called in the step blocks of a device with memory of its own: a value
 * that one plan hands over to another brings what kernels have left there, so that no two plans of
 * the process use the same numbers. */
void plan_number_items(struct plan *plan);
void plan_forget_items(struct plan *plan);
/* The plan that the number belongs to; NULL: none. It is of the step. */
const struct plan *plan_of_item(uint32_t item);

/* plan_capture.c: whether a device may capture steps of the plan, which is scheduled. */
void plan_find_captured(struct plan *plan);

/* plan_views.c: items whose output is their input, perhaps in another shape, do not run: who takes
 * it sees the input. In a dynamic plan before frames are found, in a static one when it is in
 * order. */
void plan_resolve_views(struct plan *plan);

/* plan_constant.c: of a dynamic plan on the host, before its frames are found. */
void plan_take_in_constants(struct plan *plan);

/* plan_schedule.c: puts the items of a static plan in order; then says who locks variables. */
int plan_schedule(struct plan *plan, struct error *err);
void plan_add_locks(struct plan *plan);
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

/* plan_counted.c: what the item keeps of its inputs, or all of them, is counted; of a static plan,
 * all that is. */
void plan_count_inputs(struct plan *plan, const struct item *item, bool keeps_all);
void plan_find_counted(struct plan *plan);
/* Sets n_uses of all values. */
void plan_count_uses(struct plan *plan);

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
/* How a run has ended, all that it enqueued included: as the device's failure says (NULL or no
 * error: none), or what a kernel has left in the step block, which comes before what the run itself
 * met with (`own`; NULL: nothing). */
int execution_result(struct step *step, struct device_step *on_device, const struct error *own,
                     const struct error *devices, struct error *err);

/* Of a run that was to fetch what is dead: ERR_DATA. */
int execution_fail_dead(struct error *err);

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

/* The kernels of the planner's own items. */
extern const struct kernel_code plan_fetch_code; /* state: the index of the fetch */
extern const struct kernel_code plan_copy_code;
extern const struct kernel_code plan_copy_in_code;
extern const struct kernel_code plan_copy_out_code;
/* Of what plan_hands_over; hand_over.c: a Send and a Recv, reduce.c: an AllReduce. */
extern const struct kernel_code plan_hand_over_code;
extern const struct kernel_code plan_take_over_code;
extern const struct kernel_code plan_reduce_code;

#endif
