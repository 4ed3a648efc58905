/* SPDX-License-Identifier: Apache-2.0
 *
 * What a checkpoint has besides the variables: what was measured of them, and the place in the
 * data.
 */
#include <inttypes.h>
#include <string.h>

#include "bin/saving.h"
#include "checkpoint/store/best.h"

static void take_scalar(void *context, const char *name, const struct tensor *value)
{
    struct saving *s = context;
    size_t i = 0;
    while (i < s->driver->request.names.n && strcmp(s->driver->request.names.items[i], name) != 0)
        i++;
    if (tensor_count(value) == 1 && (DTYPE_BIT(value->type) & DTYPES_REAL))
        autosave_set_scalar(s->autosave, name, tensor_get_float64(value, 0),
                            i < s->driver->request.names.n && s->sees_before[i]);
}

/* Whether scalars are about the variables before a step, or after it. */
static void look_at_fetches(struct saving *s)
{
    const struct request *request = &s->driver->request;
    s->sees_before = arena_array(&s->arena, request->fetches.n + 1, sizeof *s->sees_before);
    for (size_t i = 0; i < request->fetches.n; i++)
        s->sees_before[i] = request_sees_before(request, (int)i);
}

/* Checkpoints say by what metric the best is the best. */
static void say_metric(struct saving *s, const struct autosave_options *options)
{
    struct str text = STR_INIT;
    if (!options->best)
        return;
    str_printf(&text, "%s:%s", options->best, options->best_is_low ? "min" : "max");
    autosave_set_blob(s->autosave, BEST_BLOB, text.data, text.n);
    str_release(&text);
}

/* Where the data of the step came from. */
void saving_take_place(struct saving *s)
{
    struct feed_position position;
    struct str text = STR_INIT;
    if (!s->driver->feed_reader ||
        !record_get_position(&s->driver->record, &s->driver->record.arena, &position))
        return;
    str_printf(&text, "source %s\nepoch %" PRId64 "\noffset %" PRId64 "\nseed %" PRIu64 "\n",
               position.source, position.epoch, position.offset, position.seed);
    autosave_set_blob(s->autosave, "place", text.data, text.n);
    str_release(&text);
}

void saving_watch_fetches(struct saving *s, const struct autosave_options *options)
{
    look_at_fetches(s);
    say_metric(s, options);
    s->driver->fetched = take_scalar;
    s->driver->fetched_context = s;
}
