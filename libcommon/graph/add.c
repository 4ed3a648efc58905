/* SPDX-License-Identifier: Apache-2.0
 *
 * Adding a node: inputs and attributes are bound to its op's declaration, shapes inferred, and only
 * then it is put in.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "graph/infer.h"
#include "graph/marks.h"

#define ATTRS_MAX 32
#define BIND_COUNT_MAX (1 << 20) /* tensors that a list argument may stand for */

struct bind {
    struct graph *graph;
    const struct node_spec *spec;
    const struct op *op;
    struct attr_value values[ATTRS_MAX]; /* in declaration order; ATTR_NONE: not known yet */
    struct error *err;
};

#define fail(b, ...) error_set((b)->err, ERR_DATA, __VA_ARGS__)

/* ---- given attributes ---- */

/* Converts an equivalent value of another kind: 1 for 1.0, [] for any list. */
static bool convert(struct attr_value *value, enum attr_kind kind, struct arena *arena)
{
    if (value->kind == kind)
        return true;
    if (value->kind >= ATTR_LIST_INT && kind >= ATTR_LIST_INT && value->n == 0) {
        value->kind = kind;
        return true;
    }
    if (kind == ATTR_FLOAT && value->kind == ATTR_INT) {
        *value = attr_float((double)value->i);
        return true;
    }
    if (kind == ATTR_LIST_FLOAT && value->kind == ATTR_LIST_INT) {
        double *floats = arena_array(arena, (size_t)value->n, sizeof *floats);
        for (int i = 0; i < value->n; i++)
            floats[i] = (double)value->ints[i];
        value->floats = floats;
        value->kind = kind;
        return true;
    }
    return false;
}

/* ---- attributes against their constraints ---- */

static int type_error(struct bind *b, const struct op_attr *attr, enum dtype type)
{
    struct str names = STR_INIT;
    for (int t = 1; t < 32; t++)
        if (attr->types & DTYPE_BIT(t) && strcmp(dtype_name((enum dtype)t), "invalid"))
            str_printf(&names, "%s%s", names.n ? ", " : "", dtype_name((enum dtype)t));
    const char *input = NULL; /* the input whose type the attribute is */
    for (int i = b->op->n_inputs - 1; i >= 0; i--)
        if (b->op->inputs[i].type_attr >= 0 && &b->op->attrs[b->op->inputs[i].type_attr] == attr)
            input = b->op->inputs[i].name;
    int code = fail(
        b, input ? "input '%s' is %s, but must be one of %s" : "%s is %s, but must be one of %s",
        input ? input : attr->name, dtype_name(type), str_text(&names));
    str_release(&names);
    return code;
}

static int check_value(struct bind *b, const struct op_attr *attr, const struct attr_value *v)
{
    if (attr->kind == ATTR_TYPE && !(attr->types & DTYPE_BIT(v->type)))
        return type_error(b, attr, v->type);
    if (attr->kind == ATTR_LIST_TYPE)
        for (int i = 0; i < v->n; i++)
            if (!(attr->types & DTYPE_BIT(v->types[i])))
                return type_error(b, attr, v->types[i]);
    if (attr->strings) {
        const char *const *s = attr->strings;
        while (*s && strcmp(*s, v->s))
            s++;
        if (!*s)
            return fail(b, "attribute '%s' cannot be \"%s\"", attr->name, v->s);
    }
    int64_t size = attr->kind == ATTR_INT ? v->i : v->n;
    if (attr->has_minimum && size < attr->minimum)
        return fail(b, "attribute '%s' must be at least %" PRId64 ", not %" PRId64, attr->name,
                    attr->minimum, size);
    return 0;
}

/* Checks a free attribute's name: '_' and letters, digits or '_', as in the text form. */
static int check_free(struct bind *b, const char *name, struct attr_value value)
{
    size_t n = 1;
    while (isalnum((unsigned char)name[n]) || name[n] == '_')
        n++;
    if (name[n])
        return fail(b, "attribute '%.100s': not a valid name", name);
    const struct op_attr *mark = mark_find(name);
    enum attr_kind kind = value.kind;
    if (mark && !convert(&value, mark->kind, &b->graph->arena))
        return fail(b, "attribute '%s' must be %s, not %s", name, attr_kind_name(mark->kind),
                    attr_kind_name(kind));
    return mark ? check_value(b, mark, &value) : 0;
}

static int take_given(struct bind *b)
{
    for (int i = 0; i < b->spec->n_attrs; i++) {
        const struct attr *given = &b->spec->attrs[i];
        if (given->name[0] == '_') {
            if (check_free(b, given->name, given->value))
                return b->err->code;
            continue;
        }
        int k = op_find_attr(b->op, given->name);
        if (k < 0)
            return op_unknown_attr(b->op, given->name, b->err);
        if (b->values[k].kind != ATTR_NONE)
            return fail(b, "attribute '%s' is given twice", given->name);
        b->values[k] = given->value;
        if (!convert(&b->values[k], b->op->attrs[k].kind, &b->graph->arena))
            return fail(b, "attribute '%s' must be %s, not %s", given->name,
                        attr_kind_name(b->op->attrs[k].kind), attr_kind_name(given->value.kind));
    }
    return 0;
}

/* ---- inputs ---- */

/* Returns how many inputs or outputs an argument stands for; -1: not known yet. */
static int64_t bind_count(const struct bind *b, const struct op_arg *arg)
{
    if (arg->number_attr >= 0) {
        const struct attr_value *v = &b->values[arg->number_attr];
        return v->kind == ATTR_NONE ? -1 : v->i;
    }
    if (arg->type_list_attr >= 0) {
        const struct attr_value *v = &b->values[arg->type_list_attr];
        return v->kind == ATTR_NONE ? -1 : v->n;
    }
    return 1;
}

static int count_error(struct bind *b, int64_t wanted)
{
    return fail(b, "takes %" PRId64 " input%s, not %d", wanted, wanted == 1 ? "" : "s",
                b->spec->n_inputs);
}

static int check_counts(struct bind *b, const struct op_arg *args, int n)
{
    for (int i = 0; i < n; i++)
        if (bind_count(b, &args[i]) > BIND_COUNT_MAX)
            return fail(b, "'%s' would be %" PRId64 " tensors: at most %d are possible",
                        args[i].name, bind_count(b, &args[i]), BIND_COUNT_MAX);
    return 0;
}

/* Finds the lengths of list arguments from the number of inputs. */
static int infer_counts(struct bind *b)
{
    int64_t known = 0;
    int open = 0;
    if (check_counts(b, b->op->inputs, b->op->n_inputs) ||
        check_counts(b, b->op->outputs, b->op->n_outputs))
        return b->err->code;
    for (int i = 0; i < b->op->n_inputs; i++) {
        int64_t n = bind_count(b, &b->op->inputs[i]);
        if (n < 0)
            open++;
        else
            known += n;
    }
    int64_t rest = b->spec->n_inputs - known;
    if (!open)
        return rest == 0 ? 0 : count_error(b, known);
    if (rest < 0 || rest % open)
        return fail(b, "takes %" PRId64 " inputs and %d lists of equal length, not %d inputs",
                    known, open, b->spec->n_inputs);
    for (int i = 0; i < b->op->n_inputs; i++) {
        int k = b->op->inputs[i].number_attr;
        if (k >= 0 && b->values[k].kind == ATTR_NONE)
            b->values[k] = attr_int(rest / open);
    }
    return 0;
}

static int check_input(struct bind *b, const struct op_arg *arg, int index)
{
    struct edge edge = b->spec->inputs[index];
    if (!edge_exists(edge))
        return 0;
    if ((size_t)edge.node >= b->graph->nodes.n)
        return fail(b, "input %d names a node that does not exist", index);
    const struct node *from = graph_node(b->graph, edge.node);
    if (edge.slot < 0 || edge.slot >= from->n_outputs)
        return fail(b, "input '%s': node '%s' has no output %d", arg->name, from->name, edge.slot);
    const struct node_output *output = graph_output(b->graph, edge);
    if (arg->is_ref && !output->is_ref)
        return fail(b, "input '%s' must be a variable, but '%s' is a value", arg->name, from->name);
    if (arg->type != DTYPE_INVALID && output->type != arg->type)
        return fail(b, "input '%s' must be %s, but '%s' is %s", arg->name, dtype_name(arg->type),
                    from->name, dtype_name(output->type));
    if (arg->type_attr < 0)
        return 0;
    struct attr_value *t = &b->values[arg->type_attr];
    if (t->kind == ATTR_NONE)
        *t = attr_type(output->type);
    if (t->type == output->type)
        return 0;
    const char *first = b->op->attrs[arg->type_attr].name; /* set by it, or by an input */
    for (const struct op_arg *other = arg; other-- > b->op->inputs;)
        if (other->type_attr == arg->type_attr)
            first = arena_printf(&b->graph->arena, "'%s'", other->name);
    return fail(b, "input '%s' is %s, but %s is %s", arg->name, dtype_name(output->type), first,
                dtype_name(t->type));
}

static int bind_inputs(struct bind *b)
{
    int at = 0;
    if (infer_counts(b))
        return b->err->code;
    for (int i = 0; i < b->op->n_inputs; i++) {
        const struct op_arg *arg = &b->op->inputs[i];
        bool is_list = arg->type_list_attr >= 0;
        int64_t n = bind_count(b, arg);
        if (n < 0) /* a list of types that was not given: all remaining inputs */
            n = b->spec->n_inputs - at;
        if (n > b->spec->n_inputs - at)
            return count_error(b, at + n);
        /* The types of a heterogeneous list are those of its inputs. */
        enum dtype *types =
            is_list ? arena_array(&b->graph->arena, (size_t)n, sizeof *types) : NULL;
        for (int64_t k = 0; k < n; k++, at++) {
            if (check_input(b, arg, at))
                return b->err->code;
            if (is_list && !edge_exists(b->spec->inputs[at]))
                return fail(b, "input %d is missing", at);
            if (is_list)
                types[k] = graph_output(b->graph, b->spec->inputs[at])->type;
        }
        struct attr_value *v = is_list ? &b->values[arg->type_list_attr] : NULL;
        if (v && v->kind == ATTR_NONE)
            *v = (struct attr_value){.kind = ATTR_LIST_TYPE, .n = (int)n, .types = types};
        else if (v && n && memcmp(v->types, types, (size_t)n * sizeof *types) != 0)
            return fail(b, "inputs '%s' are not of the types that attribute '%s' says", arg->name,
                        b->op->attrs[arg->type_list_attr].name);
    }
    return at == b->spec->n_inputs ? 0 : count_error(b, at);
}

/* Checks the whole spec and infers what it can: afterwards every declared attribute has a value.
 * ERR_DATA without the node's name. */
static int bind_node(struct bind *b)
{
    if (b->op->n_attrs > ATTRS_MAX)
        return fail(b, "has more than %d attributes", ATTRS_MAX);
    for (int i = 0; i < b->spec->n_controls; i++)
        if (b->spec->controls[i] < 0 || (size_t)b->spec->controls[i] >= b->graph->nodes.n)
            return fail(b, "a control input names a node that does not exist");
    if (take_given(b) || bind_inputs(b))
        return b->err->code;
    for (int i = 0; i < b->op->n_attrs; i++) {
        const struct op_attr *attr = &b->op->attrs[i];
        if (b->values[i].kind == ATTR_NONE) {
            if (!attr->has_default)
                return fail(b, "attribute '%s' is missing", attr->name);
            b->values[i] = attr->default_value;
        }
        if (check_value(b, attr, &b->values[i]))
            return b->err->code;
    }
    return 0;
}

/* Checks and converts one attribute by itself; names that begin with '_' are free. */
static int bind_attr(struct bind *b, const char *name, struct attr_value *value)
{
    if (*name == '_')
        return check_free(b, name, *value);
    int k = op_find_attr(b->op, name);
    if (k < 0)
        return op_unknown_attr(b->op, name, b->err);
    if (!convert(value, b->op->attrs[k].kind, &b->graph->arena))
        return fail(b, "attribute '%s' must be %s", name, attr_kind_name(b->op->attrs[k].kind));
    return check_value(b, &b->op->attrs[k], value);
}

/* ---- adding ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct attr *)a)->name, ((const struct attr *)b)->name);
}

static int set_attrs(struct bind *b, struct node *node)
{
    struct arena *arena = &b->graph->arena;
    int n = b->op->n_attrs + b->spec->n_attrs, used = 0;
    node->attrs = arena_array(arena, (size_t)n, sizeof *node->attrs);
    for (int i = 0; i < b->op->n_attrs; i++)
        node->attrs[used++] = (struct attr){b->op->attrs[i].name, attr_copy(arena, &b->values[i])};
    for (int i = 0; i < b->spec->n_attrs; i++)
        if (b->spec->attrs[i].name[0] == '_')
            node->attrs[used++] = (struct attr){arena_strdup(arena, b->spec->attrs[i].name),
                                                attr_copy(arena, &b->spec->attrs[i].value)};
    node->n_attrs = used;
    if (used > 1)
        qsort(node->attrs, (size_t)used, sizeof *node->attrs, by_name);
    for (int i = 1; i < used; i++)
        if (!strcmp(node->attrs[i - 1].name, node->attrs[i].name))
            return error_set(b->err, ERR_DATA, "attribute '%s' is given twice",
                             node->attrs[i].name);
    return 0;
}

static void set_rest(struct graph *graph, struct node *node, const struct node_spec *spec)
{
    struct arena *arena = &graph->arena;
    node->n_inputs = spec->n_inputs;
    node->inputs = arena_copy(arena, spec->inputs, (size_t)spec->n_inputs * sizeof *spec->inputs);
    for (int i = 0; i < spec->n_controls; i++)
        graph_add_control(graph, node, spec->controls[i]);
    node->line = spec->line;
    node->device = node->assigned = "";
}

/* Consecutive nodes often have equal texts: reuses the last copy if it is the same. */
static const char *intern(struct graph *graph, const char *text, const char *last)
{
    if (!text || !*text)
        return text ? "" : NULL;
    return last && !strcmp(last, text) ? last : arena_strdup(&graph->arena, text);
}

static void insert(struct graph *graph, struct node *node)
{
    node->id = (int)graph->nodes.n;
    map_put(&graph->names, node->name, node->id);
    vec_push(&graph->nodes, node);
}

struct node *graph_add(struct graph *graph, const struct node_spec *spec, struct error *err)
{
    struct bind b = {.graph = graph, .spec = spec, .err = err};
    b.op = registry_find(graph->registry, spec->op);
    if (!b.op) {
        registry_unknown(graph->registry, spec->op, err);
        if (spec->name)
            error_prefix(err, "node '%s': ", spec->name);
        return NULL;
    }
    if (spec->name && !graph_name_valid(spec->name)) {
        error_set(err, ERR_DATA, "'%.100s' is not a valid node name: " GRAPH_NAME_RULE, spec->name);
        return NULL;
    }
    if (spec->name && (map_get(&graph->names, spec->name, NULL) ||
                       map_get(&graph->alias_names, spec->name, NULL))) {
        error_set(err, ERR_DATA, "the name '%s' is taken", spec->name);
        return NULL;
    }
    const char *name =
        spec->name ? arena_strdup(&graph->arena, spec->name) : graph_unique_name(graph, spec->op);
    struct node *node = arena_alloc(&graph->arena, sizeof *node);
    node->name = name;
    node->op = b.op;
    if (!bind_node(&b)) {
        set_rest(graph, node, spec);
        int code = set_attrs(&b, node);
        int64_t n = 0;
        for (int i = 0; i < b.op->n_outputs; i++)
            n += bind_count(&b, &b.op->outputs[i]);
        node->outputs = arena_array(&b.graph->arena, (size_t)n, sizeof *node->outputs);
        for (int i = 0; i < b.op->n_outputs; i++) {
            const struct op_arg *arg = &b.op->outputs[i];
            int64_t count = bind_count(&b, arg);
            for (int64_t k = 0; k < count; k++) {
                enum dtype type = arg->type_list_attr >= 0 ? b.values[arg->type_list_attr].types[k]
                                  : arg->type_attr >= 0    ? b.values[arg->type_attr].type
                                                           : arg->type;
                node->outputs[node->n_outputs++] =
                    (struct node_output){type, arg->is_ref, SHAPE_ANY};
            }
        }
        struct shape few[8], *shapes = few;
        if (n > 8)
            shapes = arena_array(&graph->arena, (size_t)n, sizeof *shapes);
        if (!code && !infer_node(graph, node, NULL, shapes, err)) {
            static const struct node none = {.device = "", .assigned = ""};
            size_t before = graph->nodes.n;
            const struct node *last = before ? graph->nodes.items[before - 1] : &none;
            for (int i = 0; i < node->n_outputs; i++)
                node->outputs[i].shape = shapes[i];
            node->file = intern(graph, spec->file, last->file);
            node->device = spec->device ? intern(graph, spec->device, last->device) : "";
            node->assigned = spec->assigned ? intern(graph, spec->assigned, last->assigned) : "";
            insert(graph, node);
            return node;
        }
    }
    node_fail(node, err);
    return NULL;
}

struct node *graph_add_trusted(struct graph *graph, const struct node_spec *spec,
                               const struct node_output *outputs, int n_outputs)
{
    struct node *node = arena_alloc(&graph->arena, sizeof *node);
    node->name = spec->name;
    node->op = spec->known ? spec->known : registry_find(graph->registry, spec->op);
    BUG_ON(!node->op);
    set_rest(graph, node, spec);
    node->attrs = (struct attr *)(uintptr_t)spec->attrs;
    node->n_attrs = spec->n_attrs;
    node->n_outputs = n_outputs;
    node->outputs = arena_copy(&graph->arena, outputs, (size_t)n_outputs * sizeof *outputs);
    node->file = spec->file;
    node->device = spec->device ? spec->device : "";
    node->assigned = spec->assigned ? spec->assigned : "";
    insert(graph, node);
    return node;
}

struct node_spec graph_spec_like(const struct node *node)
{
    return (struct node_spec){.op = node->op->def->name,
                              .name = node->name,
                              .attrs = node->attrs,
                              .n_attrs = node->n_attrs,
                              .device = node->device,
                              .file = node->file,
                              .line = node->line};
}

struct node *graph_add_copy(struct graph *graph, const struct node *node)
{
    struct node_spec spec = graph_spec_like(node);
    spec.known = node->op;
    spec.inputs = node->inputs;
    spec.n_inputs = node->n_inputs;
    spec.assigned = node->assigned;
    return graph_add_trusted(graph, &spec, node->outputs, node->n_outputs);
}

int graph_set_input(struct graph *graph, struct node *node, int index, struct edge edge,
                    struct error *err)
{
    const struct node *from = graph_node(graph, edge.node);
    if (index < 0 || index >= node->n_inputs || edge.slot < 0 || edge.slot >= from->n_outputs)
        return error_set(err, ERR_DATA, "node '%s' has no input %d", node->name, index);
    const struct attr_value *t = node_attr(node, "T");
    if (t && t->kind == ATTR_TYPE && t->type != from->outputs[edge.slot].type)
        return error_set(err, ERR_DATA, "node '%s': %s: input %d is %s, but T is %s", node->name,
                         node->op->def->name, index, dtype_name(from->outputs[edge.slot].type),
                         dtype_name(t->type));
    node->inputs[index] = edge;
    return 0;
}

int graph_set_attr(struct graph *graph, struct node *node, const struct attr *attr,
                   struct error *err)
{
    struct bind b = {.graph = graph, .op = node->op, .err = err};
    struct attr_value value = attr->value;
    if (bind_attr(&b, attr->name, &value))
        return error_prefix(err, "node '%s': %s: ", node->name, node->op->def->name);
    value = attr_copy(&graph->arena, &value);
    /* The present array may belong to another graph. */
    struct attr *attrs = arena_array(&graph->arena, (size_t)node->n_attrs + 1, sizeof *attrs);
    if (node->n_attrs)
        memcpy(attrs, node->attrs, (size_t)node->n_attrs * sizeof *attrs);
    for (int i = 0; i < node->n_attrs; i++) {
        if (!strcmp(attrs[i].name, attr->name)) {
            attrs[i].value = value;
            node->attrs = attrs;
            return 0;
        }
    }
    attrs[node->n_attrs++] = (struct attr){arena_strdup(&graph->arena, attr->name), value};
    qsort(attrs, (size_t)node->n_attrs, sizeof *attrs, by_name);
    node->attrs = attrs;
    return 0;
}
