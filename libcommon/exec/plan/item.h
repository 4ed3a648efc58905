/* SPDX-License-Identifier: Apache-2.0
 *
 * Items and values of plans. Private to libcommon/exec.
 */
#ifndef TF_EXEC_PLAN_ITEM_H
#define TF_EXEC_PLAN_ITEM_H

#include "exec/device/fault.h"
#include "exec/plan/plan.h"

struct out_edge;

enum value_kind {
    VALUE_COMPUTED, /* by an item, in every step */
    VALUE_CONSTANT, /* known when the plan was made: `constant` */
    VALUE_FEED,     /* feeds[feed] of the step */
    VALUE_VARIABLE, /* the variable's own memory: a read or a reference */
    VALUE_CARRIED,  /* input `feed` of the loop, or what the last iteration made of it */
};

struct value {
    enum value_kind kind;
    enum dtype type;
    bool is_ref;
    bool on_device;   /* in memory that is not the host's; never on a device whose memory is */
    bool is_outgoing; /* leaves the process: its memory comes from plan_options.outgoing */
    bool is_counted;  /* reference-counted, as others may keep it: never in an arena */
    bool is_given;    /* counted because it becomes the memory of a variable */
    int twin;         /* the same value in the other memory; -1: none */
    struct shape shape;
    const struct layout *layout;
    struct tensor constant;    /* owned by the plan, or borrowed from the graph */
    struct variable *variable; /* of a reference, or the one whose memory this value aliases */
    int feed;
    int item;        /* producer; -1: none */
    int n_uses;      /* number of items' inputs that it is, in a dynamic plan */
    int alias_input; /* the input of its item whose memory it is; -1: its own */
    int alias_of;    /* in a fixed order: the value whose memory this one is; -1: its own */
    int root;        /* where the chain of aliases ends */
    int64_t offset;  /* in the arena of its memory; -1: none */
    int live_to;     /* position of the last item that needs it */
};

struct variable_lock {
    struct variable *variable;
    bool write;
    int from, to; /* in a whole plan: positions of the items that take and release it */
};
typedef VEC(struct variable_lock) variable_lock_vec;

/* An item's read or write of a variable, for which it locks the variable. */
struct use {
    struct variable *variable;
    int item, input; /* the item's; a read for a view has the view's own */
    bool write;
    bool may_lack; /* the variable need not have a value */
};
typedef VEC(struct use) use_vec;

/* Whether an item runs when its turn in a fixed order comes. */
enum item_flow {
    FLOW_ALWAYS,
    FLOW_INPUTS, /* if all its inputs are alive */
    FLOW_SWITCH, /* likewise, and makes one of its outputs alive */
    FLOW_MERGE,  /* if one of its inputs is alive, whose memory it passes on */
};

/* The item's role in the dataflow of regions. */
enum item_role {
    ROLE_PLAIN,
    ROLE_MERGE,
    ROLE_ENTER,
    ROLE_EXIT,
    ROLE_NEXT,
    ROLE_TRIGGER, /* ControlTrigger: runs even if its inputs are dead */
    ROLE_SEND,    /* runs even if its input is dead, and sends that it is */
    ROLE_RECV,    /* is dead if what it receives is */
};

/* Built-in kernels (run/builtin.c). */
enum builtin {
    BUILTIN_NONE,
    BUILTIN_CONSTANT,  /* of a loop or a branch: alive where that runs */
    BUILTIN_FETCH,     /* state: the index of the fetch */
    BUILTIN_COPY,      /* within one memory */
    BUILTIN_COPY_IN,   /* to the device's memory */
    BUILTIN_COPY_OUT,  /* to the host's */
    BUILTIN_HAND_OVER, /* Send, Recv and AllReduce of values that stay on the device */
    BUILTIN_TAKE_OVER,
    BUILTIN_REDUCE,
    BUILTIN_LOOP, /* state: struct plan_frame */
    N_BUILTINS
};

struct item {
    const struct node *node;        /* NULL: made by the planner */
    const struct kernel_code *code; /* NULL: builtin */
    enum builtin builtin;
    unsigned flags; /* enum kernel_flag */
    int n_in, n_out;
    int *in, *out;          /* values; in may be -1 (an absent input) */
    struct variable **refs; /* by input; NULL when there are none */
    int *seen;              /* by input: the view whose shape the kernel sees; -1: no view's */
    void *state;
    int output_over; /* 1 + the output that may overwrite input output_from; 0: none may */
    int output_from;
    unsigned char flow; /* enum item_flow */
    bool is_prepared;   /* something must be done before its kernel runs */
    bool shapes_known;  /* of every input and output of its node */

    /* Its place (region.h): */
    bool is_cheap;    /* of items without a fixed order */
    bool is_constant; /* of an Enter */
    int child_frame;  /* of an Enter */
    enum item_role role;
    int frame;                     /* of the plan's frames */
    int condition;                 /* of the graph's: the one it runs under; -1: always */
    int local;                     /* index within the frame */
    int region;                    /* -1: not known yet */
    int head;                      /* the region's first item, which waits for the whole region */
    int position;                  /* in the frame's order */
    int first_input, first_output; /* in the iteration's arrays */
    VEC(struct out_edge) edges;    /* to other regions */
    bool merge_ready;              /* a Merge with an input that is always there */
    int merge_first, merge_next;   /* data inputs of a Merge in iteration 0, and in later ones */
    use_vec uses;                  /* reads for views, then its own */
    variable_lock_vec locks;       /* taken before it runs, in this order */
    variable_lock_vec gives;       /* in a whole plan: released after it; else all `locks` are */

    /* Used only by planning and traces: */
    const char *name, *kernel;
    const char *op; /* names all the ops that were fused: MatMul+Relu */
    const struct kernel_row *row;
    size_t scratch_bytes;
    int64_t scratch_offset;
    int *controls, n_controls; /* items that must be over before; they pass on deadness */
    VEC(int) after;            /* items that must be over before, dead or alive */
    int n_ready;               /* arrivals that it waits for, directly or not */
    bool in_condition;         /* of a loop that is an item: part of the condition */
    bool removed;              /* evaluated when the plan was made, or a view that does not run */
    bool is_point;             /* async: only running tells when, or whether, its outputs come */
    bool uses_copies;          /* an input was copied to the device */
};

/* Returns the value, of a view that does not run, in whose shape the kernel sees an input; -1: in
 * the input's own. */
static inline int item_sees(const struct item *item, int input)
{
    return item->seen ? item->seen[input] : -1;
}

/* Returns whether its output goes to another iteration or frame. */
static inline bool item_moves(const struct item *item)
{
    return item->role == ROLE_ENTER || item->role == ROLE_NEXT || item->role == ROLE_EXIT;
}

/* Returns whether running the item takes less time than handing it to another thread: its kernel is
 * always cheap, or it is known to read and write little. */
bool item_is_cheap(const struct plan *plan, const struct item *item);
/* Makes the tensor that lies in `buffer`; ERR_OS if the buffer is NULL (its allocation failed). */
int tensor_in_buffer(struct tensor *t, enum dtype type, const struct shape *shape,
                     struct buffer *buffer, struct error *err);
/* Puts node and op in front of a kernel's message. */
int item_fail(const struct item *item, struct error *err);
int item_explain_fault(struct fault_source *source, const struct fault *fault, struct error *err);

#endif
