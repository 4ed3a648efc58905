/* SPDX-License-Identifier: Apache-2.0
 *
 * Lua numbers, texts and nested lists as tensors. Tables are read raw: no script code runs here.
 * All memory is from the scratch arena, as any step may raise a Lua error.
 */
#include <string.h>

#include "ops/script/internal.h"

static enum dtype leaf_type(lua_State *L, int index)
{
    struct edge edge;
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
        if (!lua_isinteger(L, index))
            return FLOAT32;
        return lua_tointeger(L, index) == (int32_t)lua_tointeger(L, index) ? INT32 : INT64;
    case LUA_TBOOLEAN:
        return BOOL;
    case LUA_TSTRING:
        return STRING;
    case LUA_TUSERDATA:
        if (handle_test(L, index, &edge) && edge.slot != CONTROL_SLOT)
            return graph_node(script_of(L)->graph, edge.node)->outputs[edge.slot].type;
        return DTYPE_INVALID;
    default:
        return DTYPE_INVALID;
    }
}

static void check_depth(lua_State *L, int depth)
{
    if (depth > SHAPE_RANK_MAX)
        place_error(L, "lists are nested more than %d deep", SHAPE_RANK_MAX);
    luaL_checkstack(L, 4, "lists are nested too deeply");
}

/* Finds the type that holds all values or, with `of_tensor`, that of the first tensor. */
static enum dtype find_type(lua_State *L, int index, int depth, bool of_tensor)
{
    index = lua_absindex(L, index);
    if (lua_type(L, index) != LUA_TTABLE)
        return of_tensor && lua_type(L, index) != LUA_TUSERDATA ? DTYPE_INVALID
                                                                : leaf_type(L, index);
    check_depth(L, depth);
    enum dtype type = DTYPE_INVALID;
    lua_Integer n = (lua_Integer)lua_rawlen(L, index);
    for (lua_Integer i = 1; i <= n && (!of_tensor || type == DTYPE_INVALID); i++) {
        lua_rawgeti(L, index, i);
        enum dtype item = find_type(L, -1, depth + 1, of_tensor);
        lua_pop(L, 1);
        /* The type that holds both numbers: int32 < int64 < float32. */
        if (type == DTYPE_INVALID)
            type = item;
        else if (item != DTYPE_INVALID && item != type)
            type = type == FLOAT32 || item == FLOAT32 ? FLOAT32
                   : type == INT64 || item == INT64   ? INT64
                                                      : type;
    }
    return type;
}

enum dtype value_tensor_type(lua_State *L, int index)
{
    return find_type(L, index, 0, true);
}

enum dtype value_type(lua_State *L, int index)
{
    enum dtype type = value_tensor_type(L, index);
    return type != DTYPE_INVALID ? type : find_type(L, index, 0, false);
}

void value_check_list(lua_State *L, int index, const char *what)
{
    index = lua_absindex(L, index);
    lua_Integer n = (lua_Integer)lua_rawlen(L, index);
    luaL_checkstack(L, 3, "lists are nested too deeply");
    lua_pushnil(L);
    while (lua_next(L, index)) {
        if (lua_type(L, -2) != LUA_TNUMBER)
            place_error(L, "%s: a list of values has no named fields", what);
        lua_Integer i = lua_isinteger(L, -2) ? lua_tointeger(L, -2) : 0;
        if (i < 1 || i > n)
            place_error(L, "%s: a list of values has no gaps: after item %lld there is none", what,
                        (long long)n);
        lua_pop(L, 1);
    }
}

/* Determines the shape from the first item of each level. */
static struct shape measure(lua_State *L, int index, const char *what)
{
    struct shape shape = SHAPE_SCALAR;
    int top = lua_gettop(L);
    lua_pushvalue(L, index);
    while (lua_type(L, -1) == LUA_TTABLE) {
        check_depth(L, shape.rank + 1);
        size_t n = lua_rawlen(L, -1);
        value_check_list(L, -1, what);
        shape.dims[shape.rank++] = (int64_t)n;
        if (n == 0)
            break;
        lua_rawgeti(L, -1, 1);
    }
    lua_settop(L, top);
    return shape;
}

struct tensor_filler {
    struct tensor *tensor;
    const char **texts; /* of a string tensor */
    size_t *lengths;
    const char *what;
    int64_t next;
};

static void fill_number(lua_State *L, const struct tensor_filler *f)
{
    enum dtype type = f->tensor->type;
    if (lua_type(L, -1) != LUA_TNUMBER)
        place_error(L, "%s: a %s cannot be a %s", f->what, value_kind(L, -1), dtype_name(type));
    if (!dtype_is_integer(type)) {
        tensor_set_float64(f->tensor, f->next, lua_tonumber(L, -1));
        return;
    }
    int is_integer;
    int64_t value = lua_tointegerx(L, -1, &is_integer);
    if (is_integer)
        tensor_set_int64(f->tensor, f->next, value);
    if (!is_integer || tensor_get_int64(f->tensor, f->next) != value ||
        (type == UINT64 && value < 0))
        place_error(L, "%s: %s is not a value of %s", f->what, text_of(L, -1), dtype_name(type));
}

/* Fills in the value on top of the stack. */
static void fill(lua_State *L, struct tensor_filler *f, int depth)
{
    const struct shape *shape = &f->tensor->shape;
    bool is_list = lua_type(L, -1) == LUA_TTABLE;
    if (is_list != (depth < shape->rank) ||
        (is_list && (int64_t)lua_rawlen(L, -1) != shape->dims[depth]))
        place_error(L, "%s: the lists of one level must have the same length", f->what);
    if (!is_list) {
        if (f->tensor->type == STRING) {
            if (lua_type(L, -1) != LUA_TSTRING)
                place_error(L, "%s: a %s cannot be a string", f->what, value_kind(L, -1));
            /* The string stays alive, as it is also in the table being read. */
            f->texts[f->next] = lua_tolstring(L, -1, &f->lengths[f->next]);
        } else if (f->tensor->type == BOOL) {
            if (lua_type(L, -1) != LUA_TBOOLEAN)
                place_error(L, "%s: a %s cannot be a bool", f->what, value_kind(L, -1));
            ((bool *)f->tensor->data)[f->next] = lua_toboolean(L, -1);
        } else {
            fill_number(L, f);
        }
        f->next++;
        return;
    }
    for (int64_t i = 1; i <= shape->dims[depth]; i++) {
        lua_rawgeti(L, -1, i);
        fill(L, f, depth + 1);
        lua_pop(L, 1);
    }
}

/* A string tensor's memory: offsets, then bytes. */
static void gather_texts(lua_State *L, struct tensor_filler *f, int64_t count)
{
    size_t bytes = ((size_t)count + 1) * sizeof(uint64_t);
    for (int64_t i = 0; i < count; i++)
        bytes += f->lengths[i];
    uint64_t *offsets = arena_alloc(&script_of(L)->scratch, bytes);
    char *text = (char *)(offsets + count + 1);
    for (int64_t i = 0; i < count; i++) {
        memcpy(text + offsets[i], f->texts[i], f->lengths[i]);
        offsets[i + 1] = offsets[i] + f->lengths[i];
    }
    f->tensor->data = offsets;
}

struct tensor value_tensor(lua_State *L, int index, enum dtype type, const char *what)
{
    struct script *s = script_of(L);
    struct shape shape = measure(L, index, what);
    int64_t count = shape_count(&shape);
    if (type == DTYPE_INVALID)
        type = FLOAT32;
    if (type == RESOURCE || type == COMPLEX64)
        place_error(L, "%s: a constant of type %s cannot be written in a script", what,
                    dtype_name(type));
    size_t n = count > 0 ? (size_t)count : 1;
    struct tensor tensor = tensor_borrow(type, &shape, NULL);
    struct tensor_filler f = {.tensor = &tensor, .what = what};
    if (type == STRING) {
        f.texts = arena_array(&s->scratch, n, sizeof *f.texts);
        f.lengths = arena_array(&s->scratch, n, sizeof *f.lengths);
    } else {
        tensor.data = arena_array(&s->scratch, n, dtype_bytes(type));
    }
    lua_pushvalue(L, index);
    fill(L, &f, 0);
    lua_pop(L, 1);
    if (type == STRING)
        gather_texts(L, &f, count > 0 ? count : 0);
    return tensor;
}

struct edge value_edge(lua_State *L, int index, enum dtype type, const char *name, const char *what)
{
    struct edge edge;
    index = lua_absindex(L, index);
    if (handle_test(L, index, &edge))
        return handle_value(L, edge);
    enum dtype inside = value_tensor_type(L, index);
    if (inside != DTYPE_INVALID) {
        struct script *s = script_of(L);
        int n = (int)lua_rawlen(L, index);
        struct edge *items = arena_array(&s->scratch, (size_t)n, sizeof *items);
        for (int i = 0; i < n; i++) {
            lua_rawgeti(L, index, i + 1);
            items[i] = value_edge(
                L, lua_gettop(L), type != DTYPE_INVALID ? type : inside,
                graph_unique_name(s->graph, arena_printf(&s->scratch, "%s/values_%d", name, i)),
                what);
            lua_pop(L, 1);
        }
        struct new_node node = {
            .op = "Pack", .name = name, .inputs = items, .n_inputs = n, .context = -1};
        return (struct edge){node_make(L, &node)->id, 0};
    }
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
    case LUA_TBOOLEAN:
    case LUA_TSTRING:
    case LUA_TTABLE: {
        struct tensor tensor = value_tensor(L, index, type, what);
        struct attr attrs[] = {{"dtype", attr_type(tensor.type)}, {"value", attr_tensor(&tensor)}};
        struct new_node node = {
            .op = "Const", .name = name, .attrs = attrs, .n_attrs = 2, .context = -1};
        return (struct edge){node_make(L, &node)->id, 0};
    }
    default:
        place_error(L, "%s is %s, not a tensor, a number or a list", what,
                    lua_isnil(L, index) ? "nil" : value_kind(L, index));
    }
}
