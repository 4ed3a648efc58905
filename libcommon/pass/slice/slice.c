/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/slice/slice.h"

#include <string.h>

#include "pass/slice/slice_private.h"

/* Below the names of the source's nodes, where none of them is. */
static const char *free_scope(struct slicer *s)
{
    for (int i = 0;; i++) {
        const char *scope = arena_printf(&s->arena, i ? "slices_%d" : "slices", i);
        const char *within = arena_printf(&s->arena, "/%s/", scope);
        size_t k = 0;
        while (k < s->from->nodes.n && !strstr(graph_node(s->from, (int)k)->name, within))
            k++;
        size_t a = 0;
        while (a < s->from->aliases.n && !strstr(s->from->aliases.items[a].name, within))
            a++;
        if (k == s->from->nodes.n && a == s->from->aliases.n)
            return scope;
    }
}

static int build(struct slicer *s, struct graph **to)
{
    s->rules = (struct copy_rules){s->from, s->r.to, slice_leader, slice_attr, s};
    slice_find_origins(s);
    int code = slice_find(s);
    size_t n = s->slicings.n ? s->from->nodes.n : 0;
    if (!code && n) {
        slice_find_updates(s);
        s->scope = free_scope(s);
        for (size_t i = 0; i < n; i++) {
            int n_slices = s->role[i] == SLICE_VARIABLE ? slice_cut_at(s, s->slicing[i]).n : 0;
            if (n_slices)
                s->names[i] = arena_array(&s->arena, (size_t)n_slices, sizeof **s->names);
            for (int k = 0; k < n_slices; k++)
                s->names[i][k] = rewrite_part_name(&s->r, graph_node(s->from, (int)i)->name, k);
        }
        /* Before anything else: others are with them. */
        for (size_t i = 0; i < s->from->nodes.n && !s->err->code; i++)
            if (s->role[i] == SLICE_VARIABLE)
                slice_visit(s, graph_node(s->from, (int)i));
        code = s->err->code;
    }
    for (size_t i = 0; !code && i < n; i++)
        code = slice_visit(s, graph_node(s->from, s->r.order[i]));
    if (!code && n)
        code = slice_end(s);
    return rewrite_finish(&s->r, code, to, s->err);
}

int slice_variables(const struct graph *from, const struct slice_options *options,
                    struct graph **to, struct error *err)
{
    static const struct pass_options none = {0};
    size_t n = from->nodes.n + 1;
    struct slicer s = {.from = from,
                       .placement = options->placement,
                       .balance_above = options->balance_above,
                       .err = err};
    *to = NULL;
    s.slicing = arena_array(&s.arena, n, sizeof *s.slicing);
    s.role = arena_alloc(&s.arena, n);
    s.origin = arena_array(&s.arena, n, sizeof *s.origin);
    s.on_demand = arena_alloc(&s.arena, n);
    s.updates = arena_array(&s.arena, n, sizeof *s.updates);
    s.names = arena_array(&s.arena, n, sizeof *s.names);
    s.take = arena_array(&s.arena, n, sizeof *s.take);
    s.forms = arena_array(&s.arena, n, sizeof(struct form *));
    int code = frames_new(from, &s.frames, err);
    if (!code) {
        code = rewrite_open(&s.r, from, &none, err);
        if (!code)
            code = build(&s, to);
        frames_free(s.frames);
    }
    arena_release(&s.arena);
    return code;
}
