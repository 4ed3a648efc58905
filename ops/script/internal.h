/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the parts of the front end. Functions that take a lua_State raise Lua errors (by
 * longjmp), so they own nothing that must be freed: temporary memory comes from the scratch arena.
 */
#ifndef TF_SCRIPT_INTERNAL_H
#define TF_SCRIPT_INTERNAL_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "ops/script/script.h"

/* How a node got its name. */
enum named {
    NAMED_GENERATED, /* from the op: a global may rename it */
    NAMED_GLOBAL,    /* from a global variable: loses the name if the global gets another value */
    NAMED_EXPLICIT,  /* from the attribute `name`: stays */
};

/* What the front end knows of a node beyond the graph. */
struct note {
    int context;  /* index of the control-flow context it was made in */
    int variable; /* index into variables if the node is one, else -1 */
    int leader;   /* node it is colocated with, or -1 */
    enum named named;
    bool seeded; /* seed2 was given in the script */
};

struct variable_note {
    int node;
    struct edge read;    /* EDGE_NONE: consumers read the reference */
    struct edge initial; /* the initial value; EDGE_NONE: unknown (the graph was read) */
    int assign;          /* the Assign of the initial value, or -1 */
    int first, last;     /* the nodes made with it, which bear its name */
};

/* A read of a variable in the scope of control(). */
struct own_read {
    int variable; /* node */
    int context;
    const int *controls;
    int n_controls;
    struct edge edge;
};

enum context_kind { CONTEXT_ROOT, CONTEXT_COND, CONTEXT_LOOP };

/* A control-flow context: one branch of a cond, or a while loop (context.c). */
struct context {
    enum context_kind kind;
    int parent;
    struct edge pred; /* of a cond */
    int branch;       /* 1: the branch taken when pred is true */
    int pivot;        /* node that is live while the context runs */
    int enter;        /* of a loop: the Enter of its first variable, or -1 */
    const char *frame;
    int64_t parallel_iterations;
    const int *controls; /* of a loop: the controls in force around it */
    int n_controls;
    const char *scope;
    struct map captured; /* "node:slot" of an outside tensor -> index into captures */
};

struct parameter {
    const char *name, *value;
    bool used;
};

struct script {
    lua_State *L;
    struct graph *graph;
    struct script_options options;
    size_t n_given; /* nodes that the graph had before */
    size_t memory_used;
    bool refused; /* the last failed allocation was refused by the system, not by our limit */
    int64_t instructions_used;
    int64_t objects_named; /* text.c */
    int64_t handles_made;  /* handle.c */
    struct arena arena;    /* lives as long as the script */
    struct arena scratch;  /* of the op call in progress */
    const char *folder;    /* where `require` looks */

    VEC(struct note) notes; /* by node id */
    VEC(struct variable_note) variables;
    VEC(struct own_read) own_reads;
    struct map own_read_at; /* by variable, context and controls (variable.c) -> the last read */
    VEC(struct context) contexts;
    VEC(struct edge) captures;
    VEC(int) open; /* nodes whose missing input is hidden */
    int context;   /* the current one */

    const char *chunk; /* name of the script that runs */

    /* Settings for new nodes. */
    const char *scope; /* "" or "a/b" */
    const char *device;
    const char *container;
    int leader; /* node to colocate with, or -1 */
    VEC(int) controls;
    size_t first_gradient; /* node; 0: there is none */
    bool shares_reads;     /* nothing in `controls` changes a variable */
    struct map scopes;     /* names of scopes in use */

    VEC(struct alias) aliases; /* EDGE_NONE: removed */
    struct map alias_at;       /* by name -> index */
    VEC(struct parameter) parameters;
    struct map parameter_at; /* by name -> index of the last one given */
    VEC(const char *) asked; /* names of parameters that the script has read */
    struct map asked_at;

    /* Lists of the op call in progress. There is never more than one: tables are read raw and
     * finalizers are refused (sandbox.c), so no script code runs inside a call. */
    VEC(struct edge) edges;
    VEC(struct attr) attrs;
};

static inline struct script *script_of(lua_State *L)
{
    return *(struct script **)lua_getextraspace(L);
}

/* ---- sandbox.c ---- */

void sandbox_open(lua_State *L);   /* libraries, require, print */
int sandbox_message(lua_State *L); /* message handler: makes one line, with a place in the script */
/* Calls the function below the arguments, with that handler; its results replace them. */
int sandbox_protected(lua_State *L, int n_arguments);
/* Compiles text and runs it in the environment; leaves `n_results` on the stack. */
void sandbox_run(lua_State *L, const char *text, size_t n, const char *chunk, int n_results);

/* ---- missing.c: names that were never set ---- */

void missing_open(lua_State *L);
void missing_guard(lua_State *L);            /* guards globals and the prelude's tables */
void missing_declare(lua_State *L, int key); /* notes a global that the script set to nil */
/* Pushes an __index for the table `name`, which reports missing fields. */
void missing_push_field(lua_State *L, const char *name);

/* ---- text.c, sort.c: with the globals on top of the stack ---- */

void text_open(lua_State *L);
/* Pushes the text of a value for tostring(), which never contains an address. */
const char *text_of(lua_State *L, int index);
void sort_open(lua_State *L);

/* ---- limits.c ---- */

void *limits_alloc(void *script, void *pointer, size_t old_bytes, size_t bytes);
void limits_open(lua_State *L);
void limits_check_memory(lua_State *L); /* of the graph, which Lua does not count */

/* ---- place.c ---- */

/* Finds file and line of the innermost frame in the user's script, not in the prelude. */
bool place_find(lua_State *L, const char **file, int *line);
_Noreturn void place_error(lua_State *L, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns "; did you mean 'x'?" or "", in a static buffer of the thread. */
const char *place_hint(const char *nearest);

/* ---- prelude.c, and the bytecode that the build makes of ops/prelude (prelude_gen.c) ---- */

struct prelude_module {
    const char *name; /* the last one has none */
    const unsigned char *chunk;
    size_t bytes;
};
extern const struct prelude_module prelude_modules[];

const struct prelude_module *prelude_find(const char *name); /* or NULL */
void prelude_open(lua_State *L);                             /* runs all of it */

/* ---- handle.c: tensors and ops as Lua values ---- */

void handle_open(lua_State *L);
void handle_push(lua_State *L, struct edge edge); /* CONTROL_SLOT: an op */
bool handle_test(lua_State *L, int index, struct edge *edge);
struct edge handle_check(lua_State *L, int index, const char *what);
int handle_push_outputs(lua_State *L, const struct node *node); /* returns their number */
/* Returns the edge for the handle's value, never an op. For a variable it is a read: within
 * control() a read of its own. */
struct edge handle_value(lua_State *L, struct edge edge);
/* The same, but for a variable the read that comes before all its changes. */
struct edge handle_first_value(lua_State *L, struct edge edge);
/* Appends the handle, or the (nested) table of handles, at `index` to script->edges. */
void handle_collect(lua_State *L, int index, const char *what);

/* ---- node.c: adding nodes ---- */

struct new_node {
    const char *op;
    const char *name; /* full name, or NULL: generated */
    bool is_explicit; /* the script gave the name */
    const struct edge *inputs;
    int n_inputs;
    const struct attr *attrs;
    int n_attrs;
    const struct edge *controls; /* besides those in force */
    int n_controls;
    const char *device; /* NULL: the one in force */
    int context;        /* -1: the current one, and inputs are routed into it */
    bool seeded;
    bool is_read; /* the input is a variable, which exists in every context */
};

/* Adds a node; raises a Lua error with the place if the graph refuses it. */
struct node *node_make(lua_State *L, const struct new_node *what);
struct note *node_note(struct script *s, int node);
/* Adds notes for nodes that others added; they belong to the current context. */
void node_adopt(struct script *s);
const char *node_full_name(struct script *s, const char *name); /* within the scope */
const char *node_unique_name(struct script *s, const char *op);
void node_rename(lua_State *L, struct node *node, const char *name);

/* ---- value.c: Lua numbers, texts and lists as tensors and attributes ---- */

/* Returns a Lua value's type if nothing else decides it: that of the first leaf that is a tensor,
 * else int32, int64, float32, bool or string by form. DTYPE_INVALID for an empty list. */
enum dtype value_type(lua_State *L, int index);
/* Returns the type of the first tensor in a value, or DTYPE_INVALID. */
enum dtype value_tensor_type(lua_State *L, int index);
/* Makes a tensor in the scratch arena. `what` begins error messages. */
struct tensor value_tensor(lua_State *L, int index, enum dtype type, const char *what);
/* Returns an edge for the value: itself, a new Const or a Pack. */
struct edge value_edge(lua_State *L, int index, enum dtype type, const char *name,
                       const char *what);
struct attr_value value_attr(lua_State *L, int index, const struct op_attr *attr, enum dtype type,
                             const char *op);
/* Reads an attribute that begins with '_': a mark has a kind, another that of its value. */
struct attr_value value_free_attr(lua_State *L, int index, const char *name, const char *op);

/* Checks that a table is a list: no named fields, and no gaps. */
void value_check_list(lua_State *L, int index, const char *what);

/* ---- call.c: ops as functions ---- */

void call_open(lua_State *L);

/* ---- context.c ---- */

void context_open(lua_State *L);
/* Returns the edge that stands for `edge` in the context. */
struct edge context_route(lua_State *L, int context, struct edge edge);
/* Returns, for a reference, which cannot be switched, whether the pivot must guard its user. */
bool context_route_ref(lua_State *L, int context, struct edge edge);
/* Returns whether a control edge from `node` may lead into the context as it is; if not, it was
 * moved to the loop's Enters. */
bool context_route_control(lua_State *L, int context, int node);
/* Returns a node that lacks an input because building its loop failed; -1: there is none. Loops
 * around the current context, which are still being built, do not count. */
int context_unfinished(struct script *s);
/* While missing inputs are hidden, an unfinished loop looks as if it ran once, and the graph has no
 * open inputs. */
void context_hide_open(struct script *s);
void context_show_open(struct script *s);

/* ---- scope.c, globals.c, variable.c, gradient.c ---- */

void scope_open(lua_State *L);
/* Parts that `name` leaves open are taken from the device in force; "/" leaves all open. */
const char *scope_merge_device(lua_State *L, const char *name);

void globals_open(lua_State *L);
void globals_finish(lua_State *L); /* aliases */

void variable_open(lua_State *L);
void variable_adopt(struct script *s); /* notes the variables of a graph that was read */
void variable_finish(lua_State *L);    /* the entries init and ready */
const struct variable_note *variable_of(struct script *s, int node); /* or NULL */
/* Returns a read of the variable after all controls in force. */
struct edge variable_own_read(lua_State *L, struct edge variable);

void gradient_open(lua_State *L);
/* Renames the gradient of a node that was renamed, as its old name was taken by another. */
void gradient_rename(lua_State *L, const char *old, const char *name);

/* Names a value's kind for messages: "table", "nil", "tensor". */
static inline const char *value_kind(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TUSERDATA ? "tensor" : luaL_typename(L, index);
}

/* Sets a C function as a field of the table on top of the stack. */
static inline void set_function(lua_State *L, const char *name, lua_CFunction function)
{
    lua_pushcfunction(L, function);
    lua_setfield(L, -2, name);
}

/* The table of internals that only the prelude sees, as `tf`: registry field of this name. */
#define INTERNALS "tf-tools.internals"
#define ENVIRONMENT "tf-tools.environment" /* that scripts run in */
#define GLOBALS "tf-tools.globals"
#define ASSIGNED "tf-tools.assigned" /* what the script assigned to globals */

#endif
