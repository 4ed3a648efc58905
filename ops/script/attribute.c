/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes from Lua values, by the kind that the op declares.
 */

#include "graph/marks.h"
#include "ops/script/internal.h"

struct wanted_attr {
    const char *op, *name;
};

_Noreturn static void refuse(lua_State *L, int index, const struct wanted_attr *w, const char *kind)
{
    place_error(L, "%s: attribute '%s' must be %s, not %s", w->op, w->name, kind,
                text_of(L, index));
}

static int64_t to_int(lua_State *L, int index, const struct wanted_attr *w)
{
    int is_integer = 0;
    int64_t value = lua_type(L, index) == LUA_TNUMBER ? lua_tointegerx(L, index, &is_integer) : 0;
    if (!is_integer)
        refuse(L, index, w, "a whole number");
    return value;
}

static const char *to_text(lua_State *L, int index, const struct wanted_attr *w)
{
    if (lua_type(L, index) != LUA_TSTRING)
        refuse(L, index, w, "text");
    return arena_strdup(&script_of(L)->scratch, lua_tostring(L, index));
}

#define TYPES "a type (float32, int32, ...)"

_Noreturn static void refuse_type(lua_State *L, const char *text, const struct wanted_attr *w)
{
#define X(constant, type_name, number, bytes, npy) type_name,
    static const char *const names[] = {DTYPE_LIST(X) NULL};
#undef X
    place_error(L, "%s: attribute '%s' must be %s, not %s%s", w->op, w->name, TYPES, text,
                place_hint(str_nearest(text, names)));
}

static enum dtype to_type(lua_State *L, int index, const struct wanted_attr *w)
{
    enum dtype type;
    if (lua_type(L, index) != LUA_TSTRING)
        refuse(L, index, w, TYPES);
    if (!dtype_parse(lua_tostring(L, index), &type))
        refuse_type(L, lua_tostring(L, index), w);
    return type;
}

/* Reads {-1, 64}, or the text form "[?,64]", which can also express an unknown rank: "?". */
static struct shape to_shape(lua_State *L, int index, const struct wanted_attr *w)
{
    struct shape shape = SHAPE_SCALAR;
    index = lua_absindex(L, index);
    if (lua_type(L, index) == LUA_TSTRING && shape_parse(lua_tostring(L, index), &shape))
        return shape;
    if (lua_type(L, index) != LUA_TTABLE)
        refuse(L, index, w, "a shape, as {-1, 64}");
    size_t rank = lua_rawlen(L, index);
    if (rank > SHAPE_RANK_MAX)
        place_error(L, "%s: attribute '%s': the rank is at most %d", w->op, w->name,
                    SHAPE_RANK_MAX);
    for (size_t i = 0; i < rank; i++) {
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        shape.dims[i] = to_int(L, -1, w);
        if (shape.dims[i] < SHAPE_UNKNOWN)
            place_error(L, "%s: attribute '%s': a dimension cannot be %lld", w->op, w->name,
                        (long long)shape.dims[i]);
        lua_pop(L, 1);
    }
    shape.rank = (int)rank;
    return shape;
}

/* Reads a value of a kind that is neither a tensor nor a list. */
static struct attr_value to_item(lua_State *L, int index, enum attr_kind kind,
                                 const struct wanted_attr *w)
{
    struct shape shape;
    switch (kind) {
    case ATTR_INT:
        return attr_int(to_int(L, index, w));
    case ATTR_FLOAT:
        if (lua_type(L, index) != LUA_TNUMBER)
            refuse(L, index, w, "a number");
        return attr_float(lua_tonumber(L, index));
    case ATTR_BOOL:
        if (lua_type(L, index) != LUA_TBOOLEAN)
            refuse(L, index, w, "true or false");
        return attr_bool(lua_toboolean(L, index));
    case ATTR_STRING:
        return attr_string(to_text(L, index, w));
    case ATTR_TYPE:
        return attr_type(to_type(L, index, w));
    default:
        shape = to_shape(L, index, w);
        return attr_shape(arena_copy(&script_of(L)->scratch, &shape, sizeof shape));
    }
}

static struct attr_value to_list(lua_State *L, int index, enum attr_kind kind,
                                 const struct wanted_attr *w)
{
    struct attr_value list = {.kind = kind};
    if (lua_type(L, index) != LUA_TTABLE)
        refuse(L, index, w, "a list");
    int n = (int)lua_rawlen(L, index);
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, index, i + 1);
        struct attr_value item = to_item(L, -1, kind - (ATTR_LIST_INT - ATTR_INT), w);
        attr_add(&script_of(L)->scratch, &list, &item);
        lua_pop(L, 1);
    }
    return list;
}

struct attr_value value_attr(lua_State *L, int index, const struct op_attr *attr, enum dtype type,
                             const char *op)
{
    struct wanted_attr w = {op, attr->name};
    struct arena *scratch = &script_of(L)->scratch;
    index = lua_absindex(L, index);
    if (attr->kind >= ATTR_LIST_INT)
        return to_list(L, index, attr->kind, &w);
    if (attr->kind != ATTR_TENSOR)
        return to_item(L, index, attr->kind, &w);
    if (type == DTYPE_INVALID)
        type = value_type(L, index);
    struct tensor tensor =
        value_tensor(L, index, type, arena_printf(scratch, "%s: attribute '%s'", w.op, w.name));
    return attr_tensor(arena_copy(scratch, &tensor, sizeof tensor));
}

struct attr_value value_free_attr(lua_State *L, int index, const char *name, const char *op)
{
    struct wanted_attr w = {op, name};
    const struct op_attr *mark = mark_find(name);
    index = lua_absindex(L, index);
    if (mark)
        return value_attr(L, index, mark, DTYPE_INVALID, op);
    switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
        return attr_bool(lua_toboolean(L, index));
    case LUA_TSTRING:
        return attr_string(to_text(L, index, &w));
    case LUA_TNUMBER:
        if (lua_isinteger(L, index))
            return attr_int(lua_tointeger(L, index));
        return attr_float(lua_tonumber(L, index));
    case LUA_TTABLE:
        return to_list(L, index, ATTR_LIST_STRING, &w);
    default:
        refuse(L, index, &w, "text, a number, true, false or a list of texts");
    }
}
