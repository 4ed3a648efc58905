/* SPDX-License-Identifier: Apache-2.0
 *
 * What a checkpoint holds besides the variables: scalars measured from them, and the iterator
 * state.
 */
#include <inttypes.h>
#include <string.h>

#include "checkpoint/job/saving.h"
#include "checkpoint/policy/retain.h"
#include "checkpoint/store/best.h"

static int say_no_scalar(const char *name, enum dtype type, const struct shape *shape,
                         struct error *err)
{
    return error_set(err, ERR_USAGE, "--save-best %s: it is %s, and no number", name,
                     shape_text_typed(type, shape));
}

int saving_check_metric(struct saving *s, struct error *err)
{
    const struct request *request = &s->driver->request;
    if (!s->options->best)
        return 0;
    s->metric = retain_metric(s->options->best, &s->arena, &s->metric_is_low, err);
    size_t k = names_find(s->measured, s->n_measured, s->metric);
    size_t i = vec_find(&request->names, s->metric);
    if (k == s->n_measured && i == request->names.n)
        return error_set(
            err, ERR_USAGE,
            "--save-best %s: neither fetched nor evaluated: METRIC, METRIC:min, METRIC:max",
            s->metric);
    if (err->code)
        return error_prefix(err, "--save-best %s: ", s->options->best);
    if (k < s->n_measured)
        return 0;
    const struct edge edge = request->fetches.items[i];
    const struct node_output *output = graph_output(request->graph, edge);
    bool may = DTYPE_BIT(output->type) & DTYPES_REAL;
    for (int d = 0; d < output->shape.rank; d++) /* unknown dimensions may turn out to be 1 */
        may &= output->shape.dims[d] == 1 || output->shape.dims[d] < 0;
    return may ? 0 : say_no_scalar(s->metric, output->type, &output->shape, err);
}

static void take_scalar(void *context, const char *name, const struct tensor *value,
                        const struct request_view *view)
{
    struct saving *s = context;
    if (tensor_count(value) == 1 && (DTYPE_BIT(value->type) & DTYPES_REAL))
        autosave_set_scalar(s->autosave, name, tensor_get_float64(value, 0), view->before);
    else if (s->metric && !strcmp(name, s->metric))
        say_no_scalar(name, value->type, &value->shape, &s->no_scalar);
}

/* Records where the data of the step came from. */
void saving_take_place(struct saving *s)
{
    struct feed_position position;
    struct str text = STR_INIT;
    struct record *record = &s->driver->feeds.record;
    if (!s->driver->feed_reader || !record_get_position(record, &record->arena, &position))
        return;
    str_printf(&text, "source %s\nepoch %" PRId64 "\noffset %" PRId64 "\nseed %" PRIu64 "\n",
               position.source, position.epoch, position.offset, position.seed);
    autosave_set_blob(s->autosave, "place", text.data, text.n);
    str_release(&text);
}

void saving_watch_fetches(struct saving *s, const struct autosave_options *options)
{
    struct str text = STR_INIT;
    if (options->best) { /* each checkpoint names the metric by which the best is chosen */
        str_printf(&text, "%s:%s", s->metric, s->metric_is_low ? "min" : "max");
        autosave_set_blob(s->autosave, BEST_BLOB, text.data, text.n);
        str_release(&text);
    }
    s->driver->fetched = take_scalar;
    s->driver->fetched_context = s;
}
