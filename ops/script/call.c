/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops as functions: MatMul(a, b, {transpose_b = true, name = "m"}). Inputs are positional, as many
 * as the op declares; after them comes the table of attributes.
 */
#include <string.h>

#include "ops/script/internal.h"

struct op_call {
    lua_State *L;
    struct script *s;
    const struct op *op;
    const char *name;  /* of the node, full; made when first needed */
    const char *given; /* attribute `name` */
    const char *device;
    enum dtype *types; /* of the op's type attributes, as far as known */
    bool seeded, has_seed, has_container;
    struct edge *controls;
    int n_controls;
};

static const char *what_input(const struct op_call *c, int i)
{
    return arena_printf(&c->s->scratch, "%s: input '%s'", c->op->def->name, c->op->inputs[i].name);
}

static const char *call_name(struct op_call *c)
{
    if (!c->name)
        c->name =
            c->given ? node_full_name(c->s, c->given) : node_unique_name(c->s, c->op->def->name);
    return c->name;
}

static void count_arguments(const struct op_call *c, int n)
{
    const struct op *op = c->op;
    if (n >= op->n_inputs && n <= op->n_inputs + 1)
        return;
    struct arena *scratch = &c->s->scratch;
    const char *names = "", *plural = op->n_inputs == 1 ? "" : "s";
    for (int i = 0; i < op->n_inputs; i++)
        names = arena_printf(scratch, "%s%s%s", names, i ? ", " : "", op->inputs[i].name);
    if (op->n_inputs)
        names = arena_printf(scratch, "%d input%s (%s) and", op->n_inputs, plural, names);
    place_error(c->L, "%s takes %s a table of attributes, not %d argument%s", op->def->name,
                op->n_inputs ? names : "no inputs, but", n, n == 1 ? "" : "s");
}

_Noreturn static void refuse_attr(const struct op_call *c, const char *key)
{
    const struct op *op = c->op;
    const char **names = arena_array(&c->s->scratch, (size_t)op->n_attrs + 4, sizeof *names);
    int n = 0;
    for (int i = 0; i < op->n_attrs; i++)
        names[n++] = op->attrs[i].name;
    names[n++] = "name";
    names[n++] = "device";
    names[n++] = "control";
    place_error(c->L, "%s has no attribute '%s'%s", op->def->name, key,
                place_hint(str_nearest(key, names)));
}

static const char *text_field(const struct op_call *c, const char *key)
{
    if (lua_type(c->L, -1) != LUA_TSTRING)
        place_error(c->L, "%s: '%s' must be text", c->op->def->name, key);
    return arena_strdup(&c->s->arena, lua_tostring(c->L, -1));
}

static void read_attrs(struct op_call *c, int table)
{
    if (lua_isnoneornil(c->L, table))
        return;
    if (lua_type(c->L, table) != LUA_TTABLE)
        place_error(c->L, "%s: the last argument is a table of attributes, not a %s",
                    c->op->def->name, value_kind(c->L, table));
    /* The type attributes first: a constant among the others takes its type from them. */
    for (int i = 0; i < c->op->n_attrs; i++) {
        if (c->op->attrs[i].kind != ATTR_TYPE)
            continue;
        lua_pushstring(c->L, c->op->attrs[i].name);
        lua_rawget(c->L, table);
        if (!lua_isnil(c->L, -1))
            c->types[i] =
                value_attr(c->L, -1, &c->op->attrs[i], DTYPE_INVALID, c->op->def->name).type;
        lua_pop(c->L, 1);
    }
    lua_pushnil(c->L);
    while (lua_next(c->L, table)) {
        if (lua_type(c->L, -2) != LUA_TSTRING)
            place_error(c->L, "%s: a value without a name in the table of attributes",
                        c->op->def->name);
        const char *key = lua_tostring(c->L, -2);
        int index = op_find_attr(c->op, key);
        if (index >= 0) {
            const struct op_attr *declared = &c->op->attrs[index];
            enum dtype type = DTYPE_INVALID;
            int dtype_index = op_find_attr(c->op, "dtype");
            if (declared->kind == ATTR_TENSOR && dtype_index >= 0)
                type = c->types[dtype_index];
            struct attr_value value = value_attr(c->L, -1, declared, type, c->op->def->name);
            vec_push(&c->s->attrs, ((struct attr){declared->name, value}));
            c->seeded |= !strcmp(key, "seed2");
            c->has_seed |= !strcmp(key, "seed");
            c->has_container |= !strcmp(key, "container");
        } else if (!strcmp(key, "name")) {
            c->given = text_field(c, key);
        } else if (!strcmp(key, "device")) {
            c->device = scope_merge_device(c->L, text_field(c, key));
        } else if (!strcmp(key, "control")) {
            size_t first = c->s->edges.n;
            handle_collect(c->L, lua_gettop(c->L), "control");
            c->n_controls = (int)(c->s->edges.n - first);
            c->controls = arena_copy(&c->s->scratch, c->s->edges.items + first,
                                     (size_t)c->n_controls * sizeof *c->controls);
            c->s->edges.n = first;
        } else if (key[0] == '_') {
            vec_push(&c->s->attrs,
                     ((struct attr){arena_strdup(&c->s->scratch, key),
                                    value_free_attr(c->L, -1, key, c->op->def->name)}));
        } else {
            refuse_attr(c, key);
        }
        lua_pop(c->L, 1);
    }
}

/* Types that only numbers decide: their widest type, or float32 if the op takes no integers. */
static void guess_types(struct op_call *c)
{
    for (int i = 0; i < c->op->n_inputs; i++) {
        int attr = c->op->inputs[i].type_attr;
        if (attr < 0 || c->types[attr] != DTYPE_INVALID)
            continue;
        enum dtype type = DTYPE_INVALID;
        for (int j = i; j < c->op->n_inputs; j++) {
            if (c->op->inputs[j].type_attr != attr)
                continue;
            enum dtype other = value_type(c->L, j + 1);
            if (type == DTYPE_INVALID || other == FLOAT32 || (other == INT64 && type == INT32))
                type = other;
        }
        if (type == DTYPE_INVALID && c->op->attrs[attr].has_default)
            type = c->op->attrs[attr].default_value.type;
        dtype_set allowed = c->op->attrs[attr].types;
        if (type != DTYPE_INVALID && !(allowed & DTYPE_BIT(type)) &&
            (allowed & DTYPE_BIT(FLOAT32)) && (type == INT32 || type == INT64))
            type = FLOAT32;
        c->types[attr] = type;
    }
}

static struct edge one_input(struct op_call *c, int index, enum dtype type,
                             const struct op_arg *arg, const char *suffix, const char *what)
{
    struct edge edge;
    if (handle_test(c->L, index, &edge)) {
        size_t n = c->s->controls.n;
        if (arg->is_ref)
            return edge;
        /* A variable is read after the op's own controls. */
        for (int i = 0; i < c->n_controls; i++)
            vec_push(&c->s->controls, c->controls[i].node);
        edge = handle_value(c->L, edge);
        c->s->controls.n = n;
        return edge;
    }
    const char *base = arena_printf(&c->s->scratch, "%s/%s%s", call_name(c), arg->name, suffix);
    return value_edge(c->L, index, type, graph_unique_name(c->s->graph, base), what);
}

static bool is_list(const struct op_arg *arg)
{
    return arg->number_attr >= 0 || arg->type_list_attr >= 0;
}

static struct node *make(struct op_call *c)
{
    struct script *s = c->s;
    size_t n = s->edges.n;
    struct new_node what = {
        .op = c->op->def->name,
        .name = call_name(c),
        .is_explicit = c->given != NULL,
        .inputs = arena_copy(&s->scratch, s->edges.items, n * sizeof *s->edges.items),
        .n_inputs = (int)n,
        .attrs = s->attrs.items,
        .n_attrs = (int)s->attrs.n,
        .controls = c->controls,
        .n_controls = c->n_controls,
        .device = c->device,
        .context = -1,
        .seeded = c->seeded,
    };
    return node_make(c->L, &what);
}

static struct op_call begin(lua_State *L, const struct op *op)
{
    struct script *s = script_of(L);
    if (s->scratch.total > (size_t)1 << 20)
        arena_release(&s->scratch);
    s->edges.n = s->attrs.n = 0;
    struct op_call c = {.L = L, .s = s, .op = op};
    c.types = arena_array(&s->scratch, (size_t)op->n_attrs + 1, sizeof *c.types);
    return c;
}

static int call_op(lua_State *L)
{
    const struct op *op = lua_touserdata(L, lua_upvalueindex(1));
    struct op_call c = begin(L, op);
    count_arguments(&c, lua_gettop(L));
    /* Checks lists first: what is given in place of a list may belong to another input. */
    for (int i = 0; i < c.op->n_inputs; i++) {
        if (!is_list(&c.op->inputs[i]))
            continue;
        if (lua_type(c.L, i + 1) != LUA_TTABLE)
            place_error(c.L, "%s must be a list of tensors, not a %s", what_input(&c, i),
                        value_kind(c.L, i + 1));
        value_check_list(c.L, i + 1, what_input(&c, i));
    }
    read_attrs(&c, op->n_inputs + 1);
    lua_settop(L, op->n_inputs);
    /* Types determined by tensors among the arguments. */
    for (int i = 0; i < c.op->n_inputs; i++) {
        int attr = c.op->inputs[i].type_attr;
        if (attr >= 0 && c.types[attr] == DTYPE_INVALID)
            c.types[attr] = value_tensor_type(c.L, i + 1);
    }
    guess_types(&c);
    for (int i = 0; i < c.op->n_inputs; i++) {
        const struct op_arg *arg = &c.op->inputs[i];
        enum dtype type = arg->type_attr >= 0 ? c.types[arg->type_attr] : arg->type;
        if (is_list(arg)) {
            const char *what = what_input(&c, i);
            size_t n = lua_rawlen(c.L, i + 1);
            for (size_t k = 0; k < n; k++) {
                lua_rawgeti(c.L, i + 1, (lua_Integer)k + 1);
                const char *suffix = arena_printf(&c.s->scratch, "_%zu", k);
                int top = lua_gettop(c.L);
                enum dtype item = type != DTYPE_INVALID ? type : value_type(c.L, top);
                vec_push(&c.s->edges, one_input(&c, top, item, arg, suffix, what));
                lua_pop(c.L, 1);
            }
            continue;
        }
        if (type == DTYPE_INVALID)
            type = value_type(c.L, i + 1);
        vec_push(&c.s->edges, one_input(&c, i + 1, type, arg, "", what_input(&c, i)));
    }
    /* Adds the seed, and the container in force, if the script does not give them. */
    if (!c.has_seed && op_find_attr(c.op, "seed") >= 0)
        vec_push(&c.s->attrs, ((struct attr){"seed", attr_int(c.s->options.seed)}));
    if (!c.has_container && *c.s->container && op_find_attr(c.op, "container") >= 0)
        vec_push(&c.s->attrs, ((struct attr){"container", attr_string(c.s->container)}));
    return handle_push_outputs(L, make(&c));
}

static int call_const(lua_State *L)
{
    const struct op *op = lua_touserdata(L, lua_upvalueindex(1));
    struct op_call c = begin(L, op);
    /* Const{value = ..., dtype = ...} to Const(..., {dtype = ...}), without touching the script's
     * table. */
    lua_pushliteral(L, "value");
    if (lua_type(L, 1) != LUA_TTABLE || lua_rawget(L, 1) == LUA_TNIL) {
        lua_pop(L, 1);
    } else {
        lua_newtable(L);
        lua_pushnil(L);
        while (lua_next(L, 1)) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, -4);
        }
        lua_pushliteral(L, "value");
        lua_pushnil(L);
        lua_rawset(L, -3);
        lua_remove(L, 1);
    }
    if (lua_isnoneornil(L, 1) || lua_gettop(L) > 2)
        place_error(L, "Const takes a value and a table of attributes");
    read_attrs(&c, 2);
    int dtype_index = op_find_attr(op, "dtype");
    enum dtype type = dtype_index >= 0 ? c.types[dtype_index] : DTYPE_INVALID;
    bool has_type = type != DTYPE_INVALID;
    struct tensor tensor = value_tensor(L, 1, has_type ? type : value_type(L, 1), "Const");
    vec_push(&c.s->attrs, ((struct attr){"value", attr_tensor(&tensor)}));
    if (!has_type)
        vec_push(&c.s->attrs, ((struct attr){"dtype", attr_type(tensor.type)}));
    return handle_push_outputs(L, make(&c));
}

static int call_binary(lua_State *L)
{
    lua_settop(L, 2);
    return call_op(L);
}

static int call_unary(lua_State *L)
{
    lua_settop(L, 1); /* Lua passes the operand twice */
    return call_op(L);
}

void call_open(lua_State *L)
{
    const struct registry *registry = script_of(L)->graph->registry;
    lua_getfield(L, LUA_REGISTRYINDEX, GLOBALS);
    for (size_t i = 0; i < registry_count(registry); i++) {
        const struct op *op = registry_at(registry, i);
        if (op->def->name[0] == '_')
            continue;
        lua_pushlightuserdata(L, (void *)op);
        lua_pushcclosure(L, strcmp(op->def->name, "Const") ? call_op : call_const, 1);
        lua_setfield(L, -2, op->def->name);
    }
    /* Types are strings; `string` is not a type's global, as it is Lua's library. */
#define X(constant, type_name, number, bytes, npy)                                                 \
    if (constant != STRING) {                                                                      \
        lua_pushliteral(L, type_name);                                                             \
        lua_setfield(L, -2, type_name);                                                            \
    }
    DTYPE_LIST(X)
#undef X
    lua_pop(L, 1);
    static const struct {
        const char *event, *op;
    } operators[] = {{"__add", "Add"}, {"__sub", "Sub"},       {"__mul", "Mul"}, {"__div", "Div"},
                     {"__mod", "Mod"}, {"__idiv", "FloorDiv"}, {"__pow", "Pow"}, {"__unm", "Neg"}};
    luaL_getmetatable(L, "tensor");
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        const struct op *op = registry_find(script_of(L)->graph->registry, operators[i].op);
        if (!op)
            continue;
        lua_pushlightuserdata(L, (void *)op);
        lua_pushcclosure(L, op->n_inputs == 1 ? call_unary : call_binary, 1);
        lua_setfield(L, -2, operators[i].event);
    }
    lua_pop(L, 1);
}
