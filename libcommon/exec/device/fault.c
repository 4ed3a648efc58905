/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/device/fault.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/str.h"

static int is_outside(const char *what, const struct fault *fault,
                      const struct fault_origin *origin, struct error *err)
{
    const struct shape *of = origin->shape; /* NULL: one row */
    struct shape place = shape_vector(fault->at);
    int64_t at = fault->at;
    for (int d = of ? (place.rank = of->rank) - 1 : -1; d >= 0; d--) {
        place.dims[d] = at % of->dims[d];
        at /= of->dims[d];
    }
    return error_set(err, ERR_DATA, "%s %" PRId64 " at %s is outside [0, %" PRId64 ")", what,
                     fault->value, shape_text(&place), fault->limit);
}

/* Reports an error of a matrix. */
static int is_unfit(const struct fault *fault, const char *why, const char *what, struct error *err)
{
    return error_set(err, ERR_DATA, "matrix %" PRId64 " is %s %" PRId64 " is %s", fault->at, why,
                     fault->value, what);
}

/* Reports the error with the message of the node. */
static int is_not_finite(const struct fault *fault, const struct fault_origin *origin,
                         struct error *err)
{
    bool has_words = origin->node && node_attr(origin->node, "message");
    struct str what = STR_INIT;
    str_print_not_finite(&what, fault->value ? (double)fault->value * INFINITY : NAN, origin->type,
                         origin->shape, fault->at);
    error_set(err, ERR_DATA, "%s is %s", has_words ? node_string(origin->node, "message") : "it",
              str_text(&what));
    str_release(&what);
    err->reason = ERROR_NOT_FINITE;
    return err->code;
}

int fault_explain(struct device *device, const struct fault *fault,
                  const struct fault_origin *origin, struct error *err)
{
    switch (fault->code) {
    case FAULT_INDEX:
        return is_outside("index", fault, origin, err);
    case FAULT_LABEL:
        return is_outside("label", fault, origin, err);
    case FAULT_DIVISION:
        return error_set(err, ERR_DATA, "integer division by zero");
    case FAULT_POWER:
        return error_set(err, ERR_DATA, "an integer to a negative power");
    case FAULT_PIVOT:
        return is_unfit(fault, "singular: pivot", "zero", err);
    case FAULT_DIAGONAL:
        return is_unfit(fault, "singular: diagonal element", "zero", err);
    case FAULT_MINOR:
        return is_unfit(fault, "not positive definite: leading minor", "not positive", err);
    case FAULT_CLASSES:
        return error_set(err, ERR_DATA,
                         "no class of row %" PRId64 " is possible: its logits are not finite",
                         fault->at);
    case FAULT_LIMIT:
        return error_set(err, ERR_DATA, "reached limit of %" PRId64, fault->limit);
    case FAULT_GROUP:
        return error_set(err, ERR_DATA, "a code has elements that its group does not have");
    case FAULT_NOT_FINITE:
        return is_not_finite(fault, origin, err);
    }
    if (fault->code >= FAULT_OWN && device && device->explain)
        return device->explain(device, fault, err);
    return error_set(err, ERR_INTERNAL, "its kernel failed with unknown code %d", fault->code);
}

/* ---- origins ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static VEC(struct fault_source *) sources;               /* sorted by first number */

/* Takes the first gap that is wide enough. */
void fault_source_add(struct fault_source *source)
{
    size_t at = 0;
    source->first = 0;
    pthread_mutex_lock(&lock);
    while (at < sources.n && sources.items[at]->first - source->first < source->n) {
        source->first = sources.items[at]->first + sources.items[at]->n;
        at++;
    }
    vec_push(&sources, source);
    memmove(sources.items + at + 1, sources.items + at,
            (sources.n - 1 - at) * sizeof *sources.items);
    sources.items[at] = source;
    pthread_mutex_unlock(&lock);
}

void fault_source_remove(struct fault_source *source)
{
    pthread_mutex_lock(&lock);
    for (size_t at = 0; at < sources.n; at++) {
        if (sources.items[at] != source)
            continue;
        sources.n--;
        memmove(sources.items + at, sources.items + at + 1,
                (sources.n - at) * sizeof *sources.items);
    }
    if (!sources.n)
        vec_release(&sources);
    pthread_mutex_unlock(&lock);
}

int fault_report(const struct fault *fault, struct error *err)
{
    struct fault_source *found = NULL;
    pthread_mutex_lock(&lock);
    for (size_t at = 0; at < sources.n && !found; at++)
        if (fault->item - sources.items[at]->first < sources.items[at]->n)
            found = sources.items[at];
    pthread_mutex_unlock(&lock);
    if (!found)
        return error_set(err, ERR_INTERNAL, "a kernel of a device failed that is of no plan");
    return found->explain(found, fault, err);
}
