/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "checkpoint/formats/bundle_private.h"
#include "tensor/box.h"

#define NUMBER_BYTES 10 /* of a signed number in ordered code */

bool bundle_key_is_slice(const struct str *key)
{
    return key->n && !key->data[0];
}

void bundle_slices_add(struct bundle_slices *slices, const struct str *key,
                       const struct bundle_entry *entry)
{
    struct bundle_slice slice = {.entry = *entry};
    str_append_bytes(&slice.key, key->data, key->n);
    vec_push(&slices->items, slice);
}

void bundle_slices_release(struct bundle_slices *slices)
{
    for (size_t i = 0; i < slices->items.n; i++)
        str_release(&slices->items.items[i].key);
    vec_release(&slices->items);
}

int bundle_slices_check(const struct bundle_slices *slices, struct error *err)
{
    for (size_t i = 0; i < slices->items.n; i++)
        if (!slices->items.items[i].used)
            return error_set(err, ERR_DATA, "a slice of no tensor");
    return 0;
}

/* ---- keys ---- */

/* The first bits give the number of bytes: one byte holds 6 bits and the sign, each further byte 7
 * more bits. A negative number is the complement. */
static void put_signed(struct str *key, int64_t value)
{
    static const uint8_t headers[NUMBER_BYTES + 1][2] = {
        {0, 0},    {0x80, 0}, {0xc0, 0}, {0xe0, 0},    {0xf0, 0},   {0xf8, 0},
        {0xfc, 0}, {0xfe, 0}, {0xff, 0}, {0xff, 0x80}, {0xff, 0xc0}};
    uint64_t magnitude = value < 0 ? ~(uint64_t)value : (uint64_t)value;
    uint8_t bytes[NUMBER_BYTES];
    int n = 1;
    while (n < NUMBER_BYTES && 7 * n - 1 < 64 && magnitude >> (7 * n - 1))
        n++;
    for (int i = 0; i < NUMBER_BYTES; i++) {
        int shift = 8 * (NUMBER_BYTES - 1 - i);
        bytes[i] = shift < 64 ? (uint8_t)((uint64_t)value >> shift) : value < 0 ? 0xff : 0;
    }
    uint8_t *first = bytes + NUMBER_BYTES - n;
    first[0] ^= headers[n][0];
    if (n > 1)
        first[1] ^= headers[n][1];
    str_append_bytes(key, first, (size_t)n);
}

/* A slice's part of the whole tensor. */
struct slice_extents {
    struct box box;
    bool is_all[SHAPE_RANK_MAX]; /* written as the whole extent of this axis */
};

static int by_key(const void *a, const void *b)
{
    const struct str *x = &((const struct bundle_slice *)a)->key;
    const struct str *y = &((const struct bundle_slice *)b)->key;
    int order = memcmp(x->data, y->data, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* NULL: there is no such slice, or it was already used. */
static struct bundle_slice *find(struct bundle_slices *slices, const char *name,
                                 const struct slice_extents *extents)
{
    struct bundle_slice wanted = {.used = false};
    if (!slices->items.n)
        return NULL;
    if (!slices->sorted)
        qsort(slices->items.items, slices->items.n, sizeof *slices->items.items, by_key);
    slices->sorted = true;
    /* A printable name has none of the bytes that ordered code would escape.
     */
    str_append_char(&wanted.key, 0);
    str_append(&wanted.key, name);
    str_append_bytes(&wanted.key, "\0\1", 2); /* ends a text */
    if (extents->box.rank)
        str_append_char(&wanted.key, 1); /* a number of one byte */
    str_append_char(&wanted.key, (char)extents->box.rank);
    for (int i = 0; i < extents->box.rank; i++) {
        put_signed(&wanted.key, extents->is_all[i] ? 0 : extents->box.first[i]);
        put_signed(&wanted.key, extents->is_all[i] ? -1 : extents->box.size[i]);
    }
    struct bundle_slice *found =
        bsearch(&wanted, slices->items.items, slices->items.n, sizeof *slices->items.items, by_key);
    str_release(&wanted.key);
    return found && !found->used ? found : NULL;
}

/* ---- one slice ---- */

struct piece {
    struct slice_extents extents;
    struct bundle_slice *slice;
};

/* Adds the extent along the next axis of the whole. */
static bool parse_extent(struct wire_bytes in, const struct shape *whole,
                         struct slice_extents *extents)
{
    int axis = extents->box.rank++;
    if (axis >= whole->rank)
        return false;
    int64_t first = 0, size = whole->dims[axis];
    extents->is_all[axis] = true;
    for (struct wire_field f; wire_next(&in, &f);) {
        if (f.tag == EXTENT_START)
            first = (int64_t)f.number;
        if (f.tag == EXTENT_LENGTH) {
            size = (int64_t)f.number;
            extents->is_all[axis] = false;
        }
    }
    extents->box.first[axis] = first;
    extents->box.size[axis] = size;
    return !in.bad && first >= 0 && size >= 0 && first <= whole->dims[axis] &&
           size <= whole->dims[axis] - first;
}

/* ---- a whole ---- */

struct slice_joiner {
    struct bundle *bundle;
    const struct bundle_entry *whole;
    VEC(struct piece) pieces;
    uint64_t bytes; /* of all pieces */
};

static int take_piece(struct slice_joiner *j, struct bundle_slices *slices, const char *name,
                      struct wire_bytes in, struct error *err)
{
    const struct bundle_entry *whole = j->whole;
    struct piece piece = {.slice = NULL};
    bool fits = true;
    for (struct wire_field f; wire_next(&in, &f);)
        if (f.tag == SLICE_EXTENT)
            fits = fits && parse_extent(f.bytes, &whole->shape, &piece.extents);
    if (in.bad || !fits || piece.extents.box.rank != whole->shape.rank)
        return error_set(err, ERR_DATA, "a slice that is none of its shape");
    piece.slice = find(slices, name, &piece.extents);
    if (!piece.slice)
        return error_set(err, ERR_DATA, "one of its slices is missing");
    const struct bundle_entry *e = &piece.slice->entry;
    piece.slice->used = true;
    if (e->has_slices || e->type != whole->type || e->shape.rank != whole->shape.rank)
        return error_set(err, ERR_DATA, "one of its slices has another type or shape");
    for (int i = 0; i < e->shape.rank; i++)
        if (e->shape.dims[i] != piece.extents.box.size[i])
            return error_set(err, ERR_DATA, "one of its slices has another type or shape");
    j->bytes += e->size;
    vec_push(&j->pieces, piece);
    return bundle_find_data(j->bundle, e, err);
}

/* Joins the pieces. Together they have as many elements as the whole; so if two overlapped, some
 * element would be in none. */
static int join(struct slice_joiner *j, struct tensor *value, struct error *err)
{
    size_t count = (size_t)tensor_count(value);
    uint8_t *filled = mem_try(count);
    if (!filled)
        return error_set(err, ERR_OS, "no memory to join its slices");
    memset(filled, 0, count);
    struct box all = {.rank = value->shape.rank};
    memcpy(all.size, value->shape.dims, sizeof all.size);
    for (size_t i = 0; i < j->pieces.n && !err->code; i++) {
        const struct piece *piece = &j->pieces.items[i];
        struct tensor part = TENSOR_INIT;
        if (!bundle_read_numbers(j->bundle, &piece->slice->entry, &part, err)) {
            box_copy(value->data, &all, part.data, &piece->extents.box, dtype_bytes(value->type));
            memset(part.data, 1, (size_t)tensor_count(&part)); /* of no use any more */
            box_copy(filled, &all, part.data, &piece->extents.box, 1);
        }
        tensor_release(&part);
    }
    if (!err->code && memchr(filled, 0, count))
        error_set(err, ERR_DATA, "its slices overlap");
    mem_free(filled);
    return err->code;
}

int bundle_slices_join(struct bundle *bundle, struct bundle_slices *slices, const char *name,
                       const struct bundle_entry *whole, struct tensor *value, struct error *err)
{
    struct slice_joiner j = {.bundle = bundle, .whole = whole};
    if (whole->type == STRING)
        return error_set(err, ERR_DATA, "strings that are cut into slices");
    if (whole->type > 31 || !(DTYPE_BIT(whole->type) & DTYPES_ANY) || whole->type == RESOURCE)
        return error_set(err, ERR_DATA, "no tensor has TensorFlow's type %llu",
                         (unsigned long long)whole->type);
    struct wire_bytes in = whole->message;
    for (struct wire_field f; !err->code && wire_next(&in, &f);)
        if (f.tag == ENTRY_SLICES)
            take_piece(&j, slices, name, f.bytes, err);
    if (!err->code && (int64_t)j.bytes != shape_bytes(&whole->shape, (enum dtype)whole->type))
        error_set(err, ERR_DATA, "its slices are not all of it");
    if (!err->code && !tensor_alloc(value, (enum dtype)whole->type, &whole->shape, err) &&
        join(&j, value, err))
        tensor_release(value);
    vec_release(&j.pieces);
    return err->code;
}
