/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/eager.h"

#include <string.h>

#include "exec/session/session.h"
#include "ops/ops.h"

/* Integers of at most so many elements become constants, for shape functions: axes, shapes. */
#define EAGER_CONSTANT_ELEMENTS 64

struct builder {
    const struct eager_call *call;
    const struct op *op;
    struct graph *graph;
    struct attr *attrs; /* op->n_attrs at most */
    int n_attrs;
    const struct op_arg **args; /* per input: its declaration */
    struct tensor *values;      /* per input */
    struct edge *inputs;
    struct edge *feeds; /* with their values */
    struct tensor *fed;
    int n_feeds;
};

const struct op *eager_find(const char *name, struct error *err)
{
    const struct op *op = registry_find(ops_registry(), name);
    if (op)
        return op;
    const char *near = registry_nearest(ops_registry(), name);
    if (near)
        error_set(err, ERR_USAGE, "no op '%s'; did you mean '%s'?", name, near);
    else
        error_set(err, ERR_USAGE, "no op '%s'; tf-op list names all", name);
    return NULL;
}

bool eager_is_literal(const char *text)
{
    struct error ignored = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    const char *end = tensor_parse(&t, text, DTYPE_INVALID, &ignored);
    tensor_release(&t);
    return (end && !*end) || *text == '[' || *text == '"';
}

/* ---- attributes ---- */

static const struct attr *given_attr(const struct builder *b, const char *name)
{
    size_t n = (size_t)b->n_attrs, i = names_find(b->attrs, n, name);
    return i < n ? &b->attrs[i] : NULL;
}

static int parse_attr(struct builder *b, const struct eager_attr *given, struct error *err)
{
    int index = op_find_attr(b->op, given->name);
    struct attr *attr = &b->attrs[b->n_attrs];
    if (index < 0) {
        const char **names =
            arena_array(&b->graph->arena, (size_t)b->op->n_attrs + 1, sizeof *names);
        for (int i = 0; i < b->op->n_attrs; i++)
            names[i] = b->op->attrs[i].name;
        return error_set(err, ERR_USAGE, "%s has no attribute '%s'%s", b->call->op, given->name,
                         str_hint(given->name, names));
    }
    if (given_attr(b, given->name))
        return error_set(err, ERR_USAGE, "attribute '%s' is given twice", given->name);
    enum attr_kind kind = b->op->attrs[index].kind;
    attr->name = given->name;
    if (kind == ATTR_STRING && *given->value != '"') {
        attr->value = attr_string(given->value);
    } else {
        const char *end =
            attr_parse(&b->graph->arena, given->value, kind, DTYPE_INVALID, &attr->value, err);
        if (!end || *end) {
            if (end)
                error_set(err, ERR_USAGE, "expected %s, not '%s'", attr_kind_name(kind),
                          given->value);
            err->code = ERR_USAGE;
            return error_prefix(err, "%s=: ", given->name);
        }
    }
    b->n_attrs++;
    return 0;
}

/* ---- which input is which argument ---- */

static bool is_list(const struct op_arg *arg)
{
    return arg->number_attr >= 0 || arg->type_list_attr >= 0;
}

/* List arguments share evenly the inputs that single arguments leave. */
static int match_args(struct builder *b, struct error *err)
{
    int lists = 0, n = 0, given = b->call->n_inputs;
    for (int i = 0; i < b->op->n_inputs; i++)
        lists += is_list(&b->op->inputs[i]);
    int left = given - (b->op->n_inputs - lists);
    if (left < 0 || (!lists && left) || (lists && left % lists))
        return error_set(err, ERR_USAGE, "%s takes %s%d input%s, not %d: %s", b->call->op,
                         lists ? "at least " : "", b->op->n_inputs, b->op->n_inputs == 1 ? "" : "s",
                         given, b->op->def->inputs ? b->op->def->inputs : "none");
    for (int i = 0; i < b->op->n_inputs; i++) {
        const struct op_arg *arg = &b->op->inputs[i];
        for (int k = is_list(arg) ? left / lists : 1; k > 0; k--)
            b->args[n++] = arg;
    }
    return 0;
}

/* ---- types of literals ---- */

/* Finds the type of one attribute's literals: text wins over bool, a decimal point over none. */
static enum dtype literal_type(const struct builder *b, int attr)
{
    enum dtype type = DTYPE_INVALID;
    for (int i = 0; i < b->call->n_inputs; i++) {
        struct error ignored = ERROR_INIT;
        struct tensor t = TENSOR_INIT;
        const char *literal = b->call->inputs[i].literal;
        if (!literal || b->args[i]->type_attr != attr ||
            !tensor_parse(&t, literal, DTYPE_INVALID, &ignored))
            continue;
        if (type == DTYPE_INVALID || type == INT32)
            type = t.type;
        tensor_release(&t);
    }
    const struct op_attr *declared = &b->op->attrs[attr];
    if (type != DTYPE_INVALID && declared->types && !(declared->types & DTYPE_BIT(type)))
        type = declared->types & DTYPE_BIT(FLOAT32) ? FLOAT32 : type;
    return type;
}

static enum dtype input_type(const struct builder *b, int input)
{
    const struct op_arg *arg = b->args[input];
    if (arg->type != DTYPE_INVALID)
        return arg->type;
    if (arg->type_attr < 0)
        return DTYPE_INVALID; /* of a list of types: decided by form */
    const struct attr *given = given_attr(b, b->op->attrs[arg->type_attr].name);
    enum dtype type = given ? given->value.type : DTYPE_INVALID;
    for (int i = 0; i < b->call->n_inputs && type == DTYPE_INVALID; i++)
        if (!b->call->inputs[i].literal && b->args[i]->type_attr == arg->type_attr)
            type = b->call->inputs[i].tensor.type;
    return type != DTYPE_INVALID ? type : literal_type(b, arg->type_attr);
}

/* ---- the graph ---- */

static int add_node(struct builder *b, const struct node_spec *spec, struct edge *edge,
                    struct error *err)
{
    const struct node *node = graph_add(b->graph, spec, err);
    if (!node)
        return err->code;
    *edge = (struct edge){node->id, 0};
    return 0;
}

static int add_input(struct builder *b, int i, struct error *err)
{
    const struct tensor *value = &b->values[i];
    struct attr constant[] = {{"dtype", attr_type(value->type)}, {"value", attr_tensor(value)}};
    struct attr placeholder[] = {{"dtype", attr_type(value->type)},
                                 {"shape", attr_shape(&value->shape)}};
    if (dtype_is_integer(value->type) && tensor_count(value) <= EAGER_CONSTANT_ELEMENTS)
        return add_node(b, &(struct node_spec){.op = "Const", .attrs = constant, .n_attrs = 2},
                        &b->inputs[i], err);
    if (add_node(b, &(struct node_spec){.op = "Placeholder", .attrs = placeholder, .n_attrs = 2},
                 &b->inputs[i], err))
        return err->code;
    b->feeds[b->n_feeds] = b->inputs[i];
    b->fed[b->n_feeds++] = *value;
    return 0;
}

static int add_inputs(struct builder *b, struct error *err)
{
    for (int i = 0; i < b->call->n_inputs; i++) {
        const struct eager_input *input = &b->call->inputs[i];
        if (b->args[i]->is_ref)
            return error_set(err, ERR_USAGE, "%s works on a variable; it needs a graph",
                             b->call->op);
        if (!input->literal) {
            tensor_share(&b->values[i], &input->tensor);
        } else {
            const char *end = tensor_parse(&b->values[i], input->literal, input_type(b, i), err);
            if (end && *end)
                error_set(err, ERR_USAGE, "text after the value: '%.40s'", end);
            if (!end || *end) {
                err->code = ERR_USAGE;
                return error_prefix(err, "input '%s': '%.80s': ", b->args[i]->name, input->literal);
            }
        }
        if (add_input(b, i, err))
            return err->code;
    }
    return 0;
}

static int run(struct builder *b, const struct node *node, struct eager_result *result,
               struct error *err)
{
    /* One kernel gets the whole team, and outputs need no copy out of an arena. */
    struct session_options options = {
        .plan = {
            .kernels = ops_kernels(), .device = b->call->device, .threads = 1, .cut = CUT_REGIONS}};
    struct edge *fetches =
        arena_array(&b->graph->arena, (size_t)node->n_outputs + 1, sizeof *fetches);
    for (int k = 0; k < node->n_outputs; k++)
        fetches[k] = (struct edge){node->id, k};
    struct plan_request call = {.feeds = b->feeds,
                                .feed_values = b->fed,
                                .n_feeds = b->n_feeds,
                                .fetches = fetches,
                                .n_fetches = node->n_outputs,
                                .targets = &node->id,
                                .n_targets = 1};
    struct step step = {.number = 1, .seed = b->call->seed};
    struct session *session = session_new(b->graph, &options);
    result->n = node->n_outputs;
    result->names = arena_array(&result->arena, (size_t)result->n + 1, sizeof *result->names);
    result->outputs = arena_array(&result->arena, (size_t)result->n + 1, sizeof *result->outputs);
    int n = 0, lists = 0;
    for (int i = 0; i < b->op->n_outputs; i++)
        lists += is_list(&b->op->outputs[i]);
    for (int i = 0; i < b->op->n_outputs; i++) {
        const struct op_arg *arg = &b->op->outputs[i];
        int length = is_list(arg) ? (node->n_outputs - b->op->n_outputs + lists) / lists : 1;
        for (int k = 0; k < length; k++)
            result->names[n++] =
                is_list(arg) ? arena_printf(&result->arena, "%s%d", arg->name, k) : arg->name;
    }
    int code = session_run(session, &call, &step, result->outputs, err);
    if (code)
        result->n = 0;
    session_free(session);
    return code;
}

static int build_and_run(struct builder *b, struct eager_result *result, struct error *err)
{
    const struct eager_call *call = b->call;
    for (int i = 0; i < call->n_attrs; i++)
        if (parse_attr(b, &call->attrs[i], err))
            return err->code;
    if (match_args(b, err) || add_inputs(b, err))
        return err->code;
    struct node_spec spec = {.op = call->op,
                             .inputs = b->inputs,
                             .n_inputs = call->n_inputs,
                             .attrs = b->attrs,
                             .n_attrs = b->n_attrs};
    const struct node *node = graph_add(b->graph, &spec, err);
    if (!node || run(b, node, result, err))
        return error_drop_node(err); /* the user does not know the node: the op is enough */
    return 0;
}

int eager_run(const struct eager_call *call, struct eager_result *result, struct error *err)
{
    memset(result, 0, sizeof *result);
    struct builder b = {.call = call, .op = eager_find(call->op, err)};
    size_t n = (size_t)call->n_inputs + 1;
    if (!b.op)
        return err->code;
    result->op = b.op;
    b.graph = graph_new(ops_registry());
    struct arena *arena = &b.graph->arena;
    b.attrs = arena_array(arena, (size_t)call->n_attrs + 1, sizeof *b.attrs);
    b.args = arena_array(arena, n, sizeof *b.args);
    b.values = arena_array(arena, n, sizeof *b.values);
    b.inputs = arena_array(arena, n, sizeof *b.inputs);
    b.feeds = arena_array(arena, n, sizeof *b.feeds);
    b.fed = arena_array(arena, n, sizeof *b.fed);
    int code = build_and_run(&b, result, err);
    for (int i = 0; i < call->n_inputs; i++)
        tensor_release(&b.values[i]);
    graph_free(b.graph);
    return code;
}

void eager_release(struct eager_result *result)
{
    for (int i = 0; i < result->n; i++)
        tensor_release(&result->outputs[i]);
    arena_release(&result->arena);
}
