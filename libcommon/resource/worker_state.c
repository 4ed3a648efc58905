/* SPDX-License-Identifier: Apache-2.0 */
#include "resource/worker_state.h"

#include "base/memory.h"

enum { PART_RANKS, PART_VALUES, N_PARTS };
static const char *const part_names[N_PARTS] = {"ranks", "values"};

struct state_parts {
    struct tensor items[N_PARTS]; /* zeroed: absent */
};

struct worker_state {
    pthread_mutex_t lock; /* guards the members below */
    struct state_parts parts;
};

static void parts_release(struct state_parts *parts)
{
    for (int i = 0; i < N_PARTS; i++)
        tensor_release(&parts->items[i]);
    *parts = (struct state_parts){{{0}}};
}

static void parts_share(struct state_parts *to, const struct state_parts *from)
{
    *to = (struct state_parts){{{0}}};
    for (int i = 0; i < N_PARTS; i++)
        if (from->items[i].buffer)
            tensor_share(&to->items[i], &from->items[i]);
}

/* Returns whether both parts exist, for the same number of workers. */
static bool is_whole(const struct state_parts *parts)
{
    const struct tensor *ranks = &parts->items[PART_RANKS], *values = &parts->items[PART_VALUES];
    return ranks->buffer && values->buffer && tensor_count(ranks) == values->shape.dims[0] + 1;
}

static void *state_create(const char *name)
{
    (void)name;
    struct worker_state *state = mem_alloc(sizeof *state);
    pthread_mutex_init(&state->lock, NULL);
    return state;
}

static void state_free(void *object)
{
    struct worker_state *state = object;
    parts_release(&state->parts);
    pthread_mutex_destroy(&state->lock);
    mem_free(state);
}

static void replace(struct worker_state *state, const struct state_parts *parts)
{
    struct state_parts before, now;
    parts_share(&now, parts);
    pthread_mutex_lock(&state->lock);
    before = state->parts;
    state->parts = now;
    pthread_mutex_unlock(&state->lock);
    parts_release(&before);
}

void worker_state_set(struct worker_state *state, const struct tensor *ranks,
                      const struct tensor *values)
{
    const struct state_parts parts = {{*ranks, *values}};
    replace(state, &parts);
}

void worker_state_clear(struct worker_state *state)
{
    const struct state_parts none = {{{0}}};
    replace(state, &none);
}

static void *state_snapshot(void *object)
{
    struct worker_state *state = object;
    struct state_parts *snapshot = mem_alloc(sizeof *snapshot);
    pthread_mutex_lock(&state->lock);
    parts_share(snapshot, &state->parts);
    pthread_mutex_unlock(&state->lock);
    return snapshot;
}

static void state_free_snapshot(void *snapshot)
{
    parts_release(snapshot);
    mem_free(snapshot);
}

bool worker_state_get(struct worker_state *state, struct tensor *ranks, struct tensor *values)
{
    struct state_parts *parts = state_snapshot(state);
    bool whole = is_whole(parts);
    if (whole) {
        tensor_share(ranks, &parts->items[PART_RANKS]);
        tensor_share(values, &parts->items[PART_VALUES]);
    }
    state_free_snapshot(parts);
    return whole;
}

static int state_save(const void *pointer, struct resource_sink *sink, struct error *err)
{
    const struct state_parts *parts = pointer;
    int code = 0;
    for (int i = 0; i < N_PARTS && !code && is_whole(parts); i++)
        code = resource_put(sink, part_names[i], &parts->items[i], err);
    return code;
}

static int state_restore(void *object, const char *part, const struct tensor *value,
                         struct error *err)
{
    struct worker_state *state = object;
    int i = (int)names_find(part_names, N_PARTS, part);
    if (i == N_PARTS || value->shape.rank < 1 ||
        (i == PART_RANKS && (value->type != INT64 || value->shape.rank != 1)))
        return error_set(err, ERR_DATA, "'%s' %s is nothing that a worker has", part,
                         shape_text_typed(value->type, &value->shape));
    pthread_mutex_lock(&state->lock);
    tensor_release(&state->parts.items[i]);
    tensor_share(&state->parts.items[i], value);
    pthread_mutex_unlock(&state->lock);
    return 0;
}

static void state_describe(void *object, struct str *text)
{
    struct state_parts *parts = state_snapshot(object);
    str_printf(text, "values of %lld other workers",
               is_whole(parts) ? (long long)parts->items[PART_VALUES].shape.dims[0] : 0LL);
    state_free_snapshot(parts);
}

const struct resource_kind worker_state_kind = {.name = "worker_state",
                                                .create = state_create,
                                                .free = state_free,
                                                .snapshot = state_snapshot,
                                                .free_snapshot = state_free_snapshot,
                                                .save = state_save,
                                                .restore = state_restore,
                                                .describe = state_describe};
