/* SPDX-License-Identifier: Apache-2.0
 *
 * scope, device, control, colocate, container, and the context of control flow: what applies to the
 * nodes that a function makes. Each calls the function and restores what was in force, also when
 * the function fails.
 */
#include <string.h>

#include "graph/device_name.h"
#include "ops/script/internal.h"

/* The settings that a with_... function may change. */
struct saved_scope {
    const char *scope, *device, *container;
    int leader, context;
    size_t n_controls;
    int *controls;
    bool shares_reads;
};

static struct saved_scope save(struct script *s)
{
    struct saved_scope saved = {s->scope,   s->device,     s->container, s->leader,
                                s->context, s->controls.n, NULL,         s->shares_reads};
    if (s->controls.n)
        saved.controls = arena_copy(&s->arena, s->controls.items, s->controls.n * sizeof(int));
    return saved;
}

/* Calls the function at stack index 2 with the values above it; returns its results. */
static int call_and_restore(lua_State *L, const struct saved_scope *saved)
{
    int status = sandbox_protected(L, lua_gettop(L) - 2);
    struct script *s = script_of(L);
    s->scope = saved->scope;
    s->device = saved->device;
    s->container = saved->container;
    s->leader = saved->leader;
    s->context = saved->context;
    s->shares_reads = saved->shares_reads;
    s->controls.n = 0;
    for (size_t i = 0; i < saved->n_controls; i++)
        vec_push(&s->controls, saved->controls[i]);
    if (status)
        lua_error(L);
    return lua_gettop(L) - 1;
}

static void check_function(lua_State *L, const char *what)
{
    if (lua_type(L, 2) != LUA_TFUNCTION)
        place_error(L, "%s takes a function as its second argument, not a %s", what,
                    value_kind(L, 2));
}

static const char *check_text(lua_State *L, const char *what)
{
    if (lua_type(L, 1) != LUA_TSTRING)
        place_error(L, "%s takes text as its first argument, not a %s", what, value_kind(L, 1));
    return arena_strdup(&script_of(L)->arena, lua_tostring(L, 1));
}

static const char *scope_unique(struct script *s, const char *name)
{
    const char *full = arena_strdup(&s->arena, node_full_name(s, name)), *candidate = full;
    int64_t suffix = 0; /* the last one tried; a scope that was used once has none */
    map_get(&s->scopes, full, &suffix);
    while (map_get(&s->scopes, candidate, NULL) || graph_find(s->graph, candidate))
        candidate = arena_printf(&s->arena, "%s_%lld", full, (long long)++suffix);
    map_put(&s->scopes, full, suffix);
    if (candidate != full)
        map_put(&s->scopes, candidate, 0);
    return candidate;
}

/* scope(name, f): names begin with NAME/; a name in use gets a number. "/a/b" is that scope itself,
 * new or not, and "/" is the top. */
static int with_scope(lua_State *L)
{
    struct script *s = script_of(L);
    const char *name = check_text(L, "scope");
    check_function(L, "scope");
    if (name[0] != '/' && !graph_name_valid(name))
        place_error(L, "scope: '%s' is not a valid name", name);
    limits_check_memory(L);
    struct saved_scope saved = save(s);
    s->scope = name[0] == '/' ? name + 1 : scope_unique(s, name);
    return call_and_restore(L, &saved);
}

const char *scope_merge_device(lua_State *L, const char *text)
{
    struct script *s = script_of(L);
    struct device_name inner, outer;
    struct error err = ERROR_INIT;
    if (device_name_parse(&inner, text, &err) || device_name_parse(&outer, s->device, &err))
        place_error(L, "%s", err.text);
    if (device_name_is_open(&inner))
        return "";
    if (!*inner.job)
        strcpy(inner.job, outer.job);
    if (inner.task == DEVICE_OPEN)
        inner.task = outer.task;
    if (inner.replica == DEVICE_OPEN)
        inner.replica = outer.replica;
    if (!*inner.type) {
        strcpy(inner.type, outer.type);
        inner.index = outer.index;
    }
    return device_name_text(&s->arena, &inner);
}

static int with_device(lua_State *L)
{
    struct script *s = script_of(L);
    const char *name = check_text(L, "device");
    check_function(L, "device");
    struct saved_scope saved = save(s);
    s->device = scope_merge_device(L, name);
    return call_and_restore(L, &saved);
}

static int with_container(lua_State *L)
{
    struct script *s = script_of(L);
    const char *name = check_text(L, "container");
    check_function(L, "container");
    struct saved_scope saved = save(s);
    s->container = name;
    return call_and_restore(L, &saved);
}

static int call_after(lua_State *L, bool shares_reads)
{
    struct script *s = script_of(L);
    check_function(L, "control");
    struct saved_scope saved = save(s);
    s->shares_reads = shares_reads;
    s->edges.n = 0;
    handle_collect(L, 1, "control");
    vec_each(edge, &s->edges)
        vec_push(&s->controls, edge->node);
    return call_and_restore(L, &saved);
}

static int with_control(lua_State *L)
{
    return call_after(L, false);
}

/* tf.after({ops}, f): like control, but f uses the reads of variables from outside; for ops that
 * change no variable that f reads. */
static int with_after(lua_State *L)
{
    return call_after(L, true);
}

/* The nodes request the device that the tensor requests, whatever device is in force. */
static int with_colocate(lua_State *L)
{
    struct script *s = script_of(L);
    int leader = handle_check(L, 1, "colocate: the first argument").node;
    check_function(L, "colocate");
    struct saved_scope saved = save(s);
    s->leader = leader;
    s->device = graph_node(s->graph, leader)->device;
    return call_and_restore(L, &saved);
}

/* tf.outside(colocated, f): runs f as at the top of the script: no controls, no context, and no
 * colocation unless `colocated`. Scope, device and container stay. */
static int with_outside(lua_State *L)
{
    struct script *s = script_of(L);
    struct saved_scope saved = save(s);
    s->controls.n = 0;
    s->context = 0;
    if (!lua_toboolean(L, 1))
        s->leader = -1;
    return call_and_restore(L, &saved);
}

/* tf.within(context, f, ...): calls f there, or in the root for 0. */
static int with_context(lua_State *L)
{
    struct script *s = script_of(L);
    int context = (int)luaL_checkinteger(L, 1);
    struct context *c = &s->contexts.items[context];
    struct saved_scope saved = save(s);
    if (c->kind == CONTEXT_LOOP && s->context != context) {
        c->controls = saved.controls;
        c->n_controls = s->shares_reads ? 0 : (int)saved.n_controls;
    }
    s->context = context;
    if (c->kind != CONTEXT_COND)
        s->controls.n = 0;
    return call_and_restore(L, &saved);
}

static int unique(lua_State *L)
{
    lua_pushstring(L, scope_unique(script_of(L), luaL_checkstring(L, 1)));
    return 1;
}

static int current(lua_State *L)
{
    lua_pushstring(L, script_of(L)->scope);
    return 1;
}

void scope_open(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, GLOBALS);
    set_function(L, "scope", with_scope);
    set_function(L, "device", with_device);
    set_function(L, "container", with_container);
    set_function(L, "control", with_control);
    set_function(L, "colocate", with_colocate);
    lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
    set_function(L, "after", with_after);
    set_function(L, "within", with_context);
    set_function(L, "outside", with_outside);
    set_function(L, "scope_unique", unique);
    set_function(L, "scope_current", current);
    lua_pop(L, 2);
}
