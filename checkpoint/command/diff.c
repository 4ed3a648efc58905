/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/command/diff.h"

#include <math.h>
#include <string.h>

#include "base/map.h"

static double larger(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

/* Compares two numbers that differ in at least one bit. */
static void compare_numbers(struct difference *d, double a, double b)
{
    double absolute = a == b ? 0 : fabs(a - b); /* equal: infinities, or zeros of both signs */
    double scale = larger(fabs(a), fabs(b));
    d->absolute = larger(d->absolute, absolute);
    d->relative = larger(d->relative, absolute == 0 ? 0 : absolute / scale);
}

static void compare_elements(struct difference *d, const struct tensor *a, const struct tensor *b)
{
    size_t bytes = dtype_bytes(a->type);
    int64_t n = tensor_count(a);
    const char *x = a->data, *y = b->data;
    for (int64_t i = 0; i < n; i++, x += bytes, y += bytes) {
        if (!memcmp(x, y, bytes))
            continue;
        d->elements++;
        if (a->type == COMPLEX64) {
            const float *p = (const float *)x, *q = (const float *)y;
            compare_numbers(d, p[0], q[0]);
            compare_numbers(d, p[1], q[1]);
        } else {
            compare_numbers(d, tensor_get_float64(a, i), tensor_get_float64(b, i));
        }
    }
}

static void compare_strings(struct difference *d, const struct tensor *a, const struct tensor *b)
{
    for (int64_t i = 0; i < tensor_count(a); i++) {
        const char *x, *y;
        size_t n, m;
        tensor_string(a, i, &x, &n);
        tensor_string(b, i, &y, &m);
        d->elements += n != m || memcmp(x, y, n) != 0;
    }
    d->absolute = d->relative = d->elements ? NAN : 0;
}

/* Chunks with the same digests have the same bytes, and need not be read. */
static bool has_same_chunks(const struct source *a, const struct source_tensor *i,
                            const struct source *b, const struct source_tensor *k)
{
    bool same = i->n_slices == k->n_slices;
    for (size_t n = 0; same && n < i->n_slices; n++)
        same = has_same_chunks(a, &i->slices[n], b, &k->slices[n]);
    if (!same || i->n_slices)
        return same;
    if (i->entry < 0 || k->entry < 0)
        return false;
    const struct manifest_tensor *x = a->checkpoint->entries.items[i->entry].tensor;
    const struct manifest_tensor *y = b->checkpoint->entries.items[k->entry].tensor;
    return x->bytes == y->bytes &&
           !memcmp(x->chunks, y->chunks, chunk_count(x->bytes) * sizeof *x->chunks);
}

static int compare(struct source *a, size_t i, struct source *b, size_t k, difference_vec *all,
                   struct error *err)
{
    struct difference d = {
        .a = &a->tensors.items[i], .b = &b->tensors.items[k], .name = source_outer_name(a, i)};
    struct tensor x, y;
    if (d.a->saved.type != d.b->saved.type || !shape_equal(&d.a->saved.shape, &d.b->saved.shape)) {
        d.kind = DIFFERENCE_SHAPE;
        vec_push(all, d);
        return 0;
    }
    if (has_same_chunks(a, d.a, b, d.b))
        return 0;
    if (source_read(a, i, &x, err))
        return err->code;
    if (!source_read(b, k, &y, err)) {
        if (x.type == STRING)
            compare_strings(&d, &x, &y);
        else
            compare_elements(&d, &x, &y);
        if (d.elements)
            vec_push(all, d);
        tensor_release(&y);
    }
    tensor_release(&x);
    return err->code;
}

/* Tensors of a source, by their outer names. */
struct names {
    const char **items;
    struct map places;
};

static struct names names_of(struct source *s)
{
    struct names names = {.items = arena_array(&s->arena, s->tensors.n + 1, sizeof *names.items)};
    int64_t other;
    for (size_t i = 0; i < s->tensors.n; i++) {
        names.items[i] = source_outer_name(s, i);
        if (!map_get(&names.places, names.items[i], &other)) /* a file may contain a tensor twice */
            map_put(&names.places, names.items[i], (int64_t)i);
    }
    return names;
}

int source_diff(struct source *a, struct source *b, difference_vec *all, struct error *err)
{
    struct names of_a = names_of(a), of_b = names_of(b);
    int64_t k;
    error_clear(err);
    for (size_t i = 0; i < a->tensors.n && !err->code; i++) {
        struct difference d = {
            .kind = DIFFERENCE_ONLY_A, .a = &a->tensors.items[i], .name = of_a.items[i]};
        if (map_get(&of_b.places, d.name, &k))
            compare(a, i, b, (size_t)k, all, err);
        else
            vec_push(all, d);
    }
    for (size_t i = 0; i < b->tensors.n && !err->code; i++) {
        struct difference d = {
            .kind = DIFFERENCE_ONLY_B, .b = &b->tensors.items[i], .name = of_b.items[i]};
        if (!map_get(&of_a.places, d.name, &k))
            vec_push(all, d);
    }
    map_release(&of_a.places);
    map_release(&of_b.places);
    return err->code;
}
