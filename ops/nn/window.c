/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/window.h"

#include <string.h>

#include "ops/nn/format.h"

#define WINDOW_MAX INT32_MAX

/* Reads a list of four numbers that has 1 for batch and channels. */
static int read_quadruple(const struct window *w, const struct node *node, const char *name,
                          int64_t *y, int64_t *x, struct error *err)
{
    const struct attr_value *list = node_attr(node, name);
    if (list->n != 4)
        return error_set(err, ERR_DATA, "%s must have 4 elements, not %d", name, list->n);
    if (list->ints[0] != 1 || list->ints[w->channels] != 1)
        return error_set(err, ERR_DATA, "%s over batch and channels must be 1", name);
    *y = list->ints[w->height];
    *x = list->ints[w->width];
    if (*y < 1 || *x < 1)
        return error_set(err, ERR_DATA, "%s must be positive, not %lld and %lld", name,
                         (long long)*y, (long long)*x);
    if (*y > INT32_MAX || *x > INT32_MAX) /* so that positions never overflow */
        return error_set(err, ERR_DATA, "%s of %lld and %lld are too large", name, (long long)*y,
                         (long long)*x);
    return 0;
}

int window_init(struct window *w, const struct node *node, struct error *err)
{
    const char *padding = node_string(node, "padding");
    memset(w, 0, sizeof *w);
    w->same = !strcmp(padding, "SAME");
    w->nchw = format_is_nchw(node);
    w->height = w->nchw ? 2 : 1;
    w->width = w->nchw ? 3 : 2;
    w->channels = w->nchw ? 1 : 3;
    w->y.dilation = w->x.dilation = 1;
    if (node_attr(node, "dilations") &&
        read_quadruple(w, node, "dilations", &w->y.dilation, &w->x.dilation, err))
        return err->code;
    if (read_quadruple(w, node, "strides", &w->y.stride, &w->x.stride, err))
        return err->code;
    if (node_attr(node, "ksize") && read_quadruple(w, node, "ksize", &w->y.size, &w->x.size, err))
        return err->code;
    if (strcmp(padding, "EXPLICIT"))
        return 0;
    const struct attr_value *list = node_attr(node, "explicit_paddings");
    if (!list || list->n != 8)
        return error_set(err, ERR_DATA, "explicit_paddings must have 8 elements, not %d",
                         list ? list->n : 0);
    for (int i = 0; i < 8; i++) {
        bool image = i / 2 == w->height || i / 2 == w->width;
        if (list->ints[i] < 0 || list->ints[i] > INT32_MAX || (!image && list->ints[i]))
            return error_set(err, ERR_DATA, "padding of %lld at [%d] of explicit_paddings",
                             (long long)list->ints[i], i);
    }
    w->y.before = list->ints[2 * w->height];
    w->y.after = list->ints[2 * w->height + 1];
    w->x.before = list->ints[2 * w->width];
    w->x.after = list->ints[2 * w->width + 1];
    return 0;
}

static int solve_axis(struct window_axis *a, bool same, const char *name, struct error *err)
{
    a->out = SHAPE_UNKNOWN;
    if (a->in < 0 || a->size < 0)
        return 0;
    if (a->size < 1)
        return error_set(err, ERR_DATA, "window of %s %lld", name, (long long)a->size);
    if (a->size > WINDOW_MAX) /* so that a span never overflows */
        return error_set(err, ERR_DATA, "window of %s %lld is too large", name, (long long)a->size);
    if (!same) {
        int64_t in = a->in + a->before + a->after, span = window_span(a);
        a->out = (in - span + a->stride) / a->stride;
        if (a->out < 0)
            return error_set(err, ERR_DATA,
                             "window of %s %lld does not fit into %lld: the output would have %lld",
                             name, (long long)span, (long long)in, (long long)a->out);
        return 0;
    }
    a->out = (a->in + a->stride - 1) / a->stride;
    int64_t total = (a->out - 1) * a->stride + window_span(a) - a->in;
    total = total > 0 && a->out > 0 ? total : 0;
    a->before = total / 2;
    a->after = total - a->before;
    return 0;
}

int window_solve(struct window *w, const struct shape *image, struct error *err)
{
    w->y.in = image->rank == 4 ? image->dims[w->height] : SHAPE_UNKNOWN;
    w->x.in = image->rank == 4 ? image->dims[w->width] : SHAPE_UNKNOWN;
    if (solve_axis(&w->y, w->same, "height", err) || solve_axis(&w->x, w->same, "width", err))
        return err->code;
    return 0;
}

struct shape window_output(const struct window *w, const struct shape *image, int64_t channels)
{
    struct shape out = {.rank = 4};
    out.dims[0] = image->rank == 4 ? image->dims[0] : SHAPE_UNKNOWN;
    out.dims[w->height] = w->y.out;
    out.dims[w->width] = w->x.out;
    out.dims[w->channels] = channels;
    return out;
}

static struct op_window_axis declared_axis(int axis, const struct window_axis *a)
{
    return (struct op_window_axis){axis, window_span(a), a->stride, a->before, a->after};
}

bool window_declared(const struct node *node, const struct shape *image,
                     const struct shape *filters, struct op_window *declared)
{
    struct error err = ERROR_INIT;
    struct window w;
    if (window_init(&w, node, &err))
        return false;
    if (filters) {
        w.y.size = window_filter_dim(filters, 0);
        w.x.size = window_filter_dim(filters, 1);
    }
    if (window_solve(&w, image, &err))
        return false;
    *declared = (struct op_window){declared_axis(w.height, &w.y), declared_axis(w.width, &w.x)};
    return w.y.out >= 0 && w.x.out >= 0;
}
