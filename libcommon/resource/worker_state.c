/* SPDX-License-Identifier: Apache-2.0 */
#include "resource/worker_state.h"

#include "base/memory.h"

enum { PART_RANKS, PART_VALUES, N_PARTS };
static const char *const part_names[N_PARTS] = {"ranks", "values"};

static const struct tensor no_parts[N_PARTS];

struct worker_state {
    pthread_mutex_t lock;         /* guards `parts` */
    struct tensor parts[N_PARTS]; /* zeroed: absent */
};

/* Shares the parts that are there. With the lock held. */
static void set_parts(struct worker_state *state, const struct tensor parts[N_PARTS])
{
    for (int i = 0; i < N_PARTS; i++) {
        tensor_release(&state->parts[i]);
        if (parts[i].buffer)
            tensor_share(&state->parts[i], &parts[i]);
    }
}

/* With the lock held: returns whether both parts exist, for the same number of workers. */
static bool is_whole(const struct worker_state *state)
{
    const struct tensor *ranks = &state->parts[PART_RANKS], *values = &state->parts[PART_VALUES];
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
    set_parts(state, no_parts);
    pthread_mutex_destroy(&state->lock);
    mem_free(state);
}

void worker_state_set(struct worker_state *state, const struct tensor *ranks,
                      const struct tensor *values)
{
    const struct tensor parts[N_PARTS] = {*ranks, *values};
    pthread_mutex_lock(&state->lock);
    set_parts(state, parts);
    pthread_mutex_unlock(&state->lock);
}

void worker_state_clear(struct worker_state *state)
{
    pthread_mutex_lock(&state->lock);
    set_parts(state, no_parts);
    pthread_mutex_unlock(&state->lock);
}

bool worker_state_get(struct worker_state *state, struct tensor *ranks, struct tensor *values)
{
    pthread_mutex_lock(&state->lock);
    bool whole = is_whole(state);
    if (whole) {
        tensor_share(ranks, &state->parts[PART_RANKS]);
        tensor_share(values, &state->parts[PART_VALUES]);
    }
    pthread_mutex_unlock(&state->lock);
    return whole;
}

static void *state_snapshot(void *object)
{
    struct worker_state *state = object, *snapshot = state_create(NULL);
    pthread_mutex_lock(&state->lock);
    set_parts(snapshot, state->parts);
    pthread_mutex_unlock(&state->lock);
    return snapshot;
}

static int state_save(const void *pointer, struct resource_sink *sink, struct error *err)
{
    const struct worker_state *state = pointer;
    int code = 0;
    for (int i = 0; i < N_PARTS && !code && is_whole(state); i++)
        code = resource_put(sink, part_names[i], &state->parts[i], err);
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
    tensor_release(&state->parts[i]);
    tensor_share(&state->parts[i], value);
    pthread_mutex_unlock(&state->lock);
    return 0;
}

static void state_describe(void *object, struct str *text)
{
    struct worker_state *state = object;
    pthread_mutex_lock(&state->lock);
    str_printf(text, "values of %lld other workers",
               is_whole(state) ? (long long)state->parts[PART_VALUES].shape.dims[0] : 0LL);
    pthread_mutex_unlock(&state->lock);
}

const struct resource_kind worker_state_kind = {.name = "worker_state",
                                                .create = state_create,
                                                .free = state_free,
                                                .snapshot = state_snapshot,
                                                .save = state_save,
                                                .restore = state_restore,
                                                .describe = state_describe};
