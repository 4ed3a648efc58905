/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a script: a Lua state is created, runs text under lua_pcall, and at the end its notes
 * are written to the graph.
 */
#include "ops/script/script.h"

#include <string.h>

#include "base/memory.h"
#include "ops/script/internal.h"
#include "ops/script/load.h"

static int open_libraries(lua_State *L)
{
    sandbox_open(L);
    missing_open(L);
    handle_open(L);
    globals_open(L);
    call_open(L);
    context_open(L);
    scope_open(L);
    variable_open(L);
    gradient_open(L);
    prelude_open(L);
    missing_guard(L);
    return 0;
}

/* Calls `function` with the n values on top of the stack. */
static int call(struct script *s, lua_CFunction function, int n, struct error *err)
{
    lua_pushcfunction(s->L, function);
    lua_insert(s->L, -n - 1);
    int status = sandbox_protected(s->L, n);
    if (status) {
        /* Turns the error that a failed lua_pcall left on the stack into ours. */
        const char *text = lua_tostring(s->L, -1);
        bool no_memory = status == LUA_ERRMEM || (text && strstr(text, "not enough memory"));
        if (no_memory && s->refused)
            error_set(err, ERR_OS, "%s: out of memory after %zu MiB", s->chunk,
                      s->memory_used >> 20);
        else if (no_memory)
            error_set(err, ERR_DATA, "%s: the script needs more than %zu MiB of memory", s->chunk,
                      s->options.memory_bytes >> 20);
        else
            error_set(err, ERR_DATA, "%s", text ? text : "failed without a message");
        lua_settop(s->L, 0);
        return err->code;
    }
    lua_settop(s->L, 0);
    return 0;
}

static int panic(lua_State *L)
{
    error_bug(__FILE__, __LINE__, lua_tostring(L, -1));
}

struct script *script_new(struct graph *graph, const struct script_options *options,
                          struct error *err)
{
    struct script *s = mem_alloc(sizeof *s);
    s->graph = graph;
    s->n_given = graph->nodes.n;
    if (options)
        s->options = *options;
    if (!s->options.memory_bytes)
        s->options.memory_bytes = SCRIPT_MEMORY_BYTES;
    if (!s->options.instructions)
        s->options.instructions = SCRIPT_INSTRUCTIONS;
    if (!s->options.nodes)
        s->options.nodes = SCRIPT_NODES;
    s->scope = s->device = s->container = s->folder = "";
    s->chunk = "script";
    s->leader = -1;
    s->L = lua_newstate(limits_alloc, s);
    if (!s->L) {
        error_set(err, ERR_OS, "not enough memory for a script");
        script_free(s);
        return NULL;
    }
    *(struct script **)lua_getextraspace(s->L) = s;
    lua_atpanic(s->L, panic);
    if (call(s, open_libraries, 0, err)) {
        script_free(s);
        return NULL;
    }
    variable_adopt(s);
    return s;
}

void script_free(struct script *s)
{
    if (!s)
        return;
    if (s->L)
        lua_close(s->L);
    vec_each(context, &s->contexts)
        map_release(&context->captured);
    vec_release(&s->notes);
    vec_release(&s->variables);
    vec_release(&s->contexts);
    vec_release(&s->captures);
    vec_release(&s->open);
    vec_release(&s->controls);
    vec_release(&s->own_reads);
    vec_release(&s->aliases);
    vec_release(&s->parameters);
    vec_release(&s->asked);
    vec_release(&s->edges);
    vec_release(&s->attrs);
    map_release(&s->scopes);
    map_release(&s->own_read_at);
    map_release(&s->alias_at);
    map_release(&s->parameter_at);
    map_release(&s->asked_at);
    arena_release(&s->scratch);
    arena_release(&s->arena);
    mem_free(s);
}

int script_define(struct script *s, const char *assignment, struct error *err)
{
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment)
        return error_set(err, ERR_USAGE, "a parameter is given as NAME=VALUE, not '%s'",
                         assignment);
    struct parameter p = {.value = arena_strdup(&s->arena, equals + 1)};
    p.name = arena_strndup(&s->arena, assignment, (size_t)(equals - assignment));
    int64_t at;
    if (map_get(&s->parameter_at, p.name, &at))
        return error_set(err, ERR_USAGE, "-D %s is given twice: %s and %s", p.name,
                         s->parameters.items[at].value, p.value);
    map_put(&s->parameter_at, p.name, (int64_t)s->parameters.n);
    vec_push(&s->parameters, p);
    return 0;
}

struct script_source {
    const char *text, *chunk;
    size_t n;
};

static int run_source(lua_State *L)
{
    const struct script_source *source = lua_touserdata(L, 1);
    sandbox_run(L, source->text, source->n, source->chunk, 0);
    return 0;
}

int script_run(struct script *s, const char *text, size_t n, const char *name, const char *folder,
               struct error *err)
{
    struct script_source source = {text, arena_printf(&s->arena, "@%s", name), n};
    s->folder = arena_strdup(&s->arena, folder);
    if (n >= 1 && text[0] == '#') { /* "#!": for the shell, a comment for us; the line stays */
        const char *end = memchr(text, '\n', n);
        source.text = end ? end : text + n;
        source.n = n - (size_t)(source.text - text);
    }
    s->chunk = source.chunk + 1;
    lua_pushlightuserdata(s->L, &source);
    return call(s, run_source, 1, err);
}

int script_run_file(struct script *s, const char *path, struct error *err)
{
    size_t n;
    char *text = load_file(path, LOAD_SCRIPT_BYTES, &n, err);
    if (!text)
        return err->code;
    const char *slash = strrchr(path, '/');
    const char *folder =
        slash ? arena_strndup(&s->arena, path, (size_t)(slash - path) + (slash == path)) : "";
    int code = script_run(s, text, n, strcmp(path, "-") ? path : "stdin", folder, err);
    mem_free(text);
    return code;
}

/* Calls a function of the prelude's internals with the texts on the stack. */
static int call_internal(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
    lua_pushvalue(L, 1);
    lua_gettable(L, -2);
    lua_replace(L, 1);
    lua_pop(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

int script_minimize(struct script *s, const char *loss, const char *optimizer, struct error *err)
{
    lua_pushliteral(s->L, "command_minimize");
    lua_pushstring(s->L, loss);
    lua_pushstring(s->L, optimizer);
    return call(s, call_internal, 3, err);
}

int script_gradients(struct script *s, const char *of, const char *const *wrt, int n,
                     struct error *err)
{
    lua_pushliteral(s->L, "command_gradients");
    lua_pushstring(s->L, of);
    lua_createtable(s->L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushstring(s->L, wrt[i]);
        lua_seti(s->L, -2, i + 1);
    }
    return call(s, call_internal, 3, err);
}

static int finish(lua_State *L)
{
    struct script *s = script_of(L);
    int unfinished = context_unfinished(s);
    if (unfinished >= 0)
        return luaL_error(L, "the loop of %s failed and was not completed",
                          node_text(graph_node(s->graph, unfinished)));
    variable_finish(L);
    globals_finish(L);
    return 0;
}

int script_finish(struct script *s, struct error *err)
{
    node_adopt(s);
    vec_push(&s->asked, NULL);
    vec_each(p, &s->parameters)
        if (!p->used)
            return error_set(err, ERR_USAGE, "-D %s: the script does not look at D.%s%s", p->name,
                             p->name, place_hint(str_nearest(p->name, s->asked.items)));
    if (call(s, finish, 0, err))
        return err->code;
    /* Texts that contain node names are made now that names no longer change. */
    for (size_t i = 0; i < s->notes.n; i++) {
        if (s->notes.items[i].leader < 0)
            continue;
        const char *leader = graph_node(s->graph, s->notes.items[i].leader)->name;
        const char *group = arena_printf(&s->arena, "loc:@%s", leader);
        struct attr_value value = {.kind = ATTR_LIST_STRING, .n = 1, .strings = &group};
        struct error ignored = ERROR_INIT;
        graph_set_attr(s->graph, graph_node(s->graph, (int)i), &(struct attr){"_class", value},
                       &ignored);
    }
    /* seed2: the hash of the final name, positive. */
    for (size_t i = s->n_given; i < s->graph->nodes.n; i++) {
        struct node *node = graph_node(s->graph, (int)i);
        if (node_note(s, (int)i)->seeded || op_find_attr(node->op, "seed2") < 0)
            continue;
        struct error ignored = ERROR_INIT;
        struct attr seed = {"seed2", attr_int((int64_t)(hash_text(node->name) >> 1))};
        graph_set_attr(s->graph, node, &seed, &ignored);
    }
    return 0;
}
