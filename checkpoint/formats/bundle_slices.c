/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "checkpoint/formats/bundle_private.h"

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

struct extent {
    int64_t start, length;
    bool is_all; /* written as the whole extent */
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
                                 const struct extent *extents, int rank)
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
    if (rank)
        str_append_char(&wanted.key, 1); /* a number of one byte */
    str_append_char(&wanted.key, (char)rank);
    for (int i = 0; i < rank; i++) {
        put_signed(&wanted.key, extents[i].is_all ? 0 : extents[i].start);
        put_signed(&wanted.key, extents[i].is_all ? -1 : extents[i].length);
    }
    struct bundle_slice *found =
        bsearch(&wanted, slices->items.items, slices->items.n, sizeof *slices->items.items, by_key);
    str_release(&wanted.key);
    return found && !found->used ? found : NULL;
}

/* ---- one slice ---- */

struct piece {
    struct extent extents[SHAPE_RANK_MAX];
    struct bundle_slice *slice;
};

static bool parse_extent(struct wire_bytes in, int64_t whole, struct extent *extent)
{
    *extent = (struct extent){.length = whole, .is_all = true};
    while (in.p < in.end && !in.bad) {
        uint64_t number = 0;
        struct wire_bytes ignored;
        switch (wire_field(&in, &number, &ignored)) {
        case EXTENT_START:
            extent->start = (int64_t)number;
            break;
        case EXTENT_LENGTH:
            extent->length = (int64_t)number;
            extent->is_all = false;
            break;
        }
    }
    return !in.bad && extent->start >= 0 && extent->length >= 0 && extent->start <= whole &&
           extent->length <= whole - extent->start;
}

/* ---- a whole ---- */

struct slice_joiner {
    struct bundle *bundle;
    const struct bundle_entry *whole;
    VEC(struct piece) pieces;
    uint8_t *filled; /* a bit for each element */
    uint64_t bytes;  /* of all pieces */
};

static int take_piece(struct slice_joiner *j, struct bundle_slices *slices, const char *name,
                      struct wire_bytes in, struct error *err)
{
    const struct bundle_entry *whole = j->whole;
    struct piece piece;
    int rank = 0;
    while (in.p < in.end && !in.bad) {
        uint64_t number = 0;
        struct wire_bytes extent = {0};
        if (wire_field(&in, &number, &extent) != SLICE_EXTENT)
            continue;
        if (rank == whole->shape.rank ||
            !parse_extent(extent, whole->shape.dims[rank], &piece.extents[rank]))
            return error_set(err, ERR_DATA, "a slice that is none of its shape");
        rank++;
    }
    if (in.bad || rank != whole->shape.rank)
        return error_set(err, ERR_DATA, "a slice that is none of its shape");
    piece.slice = find(slices, name, piece.extents, whole->shape.rank);
    if (!piece.slice)
        return error_set(err, ERR_DATA, "one of its slices is missing");
    const struct bundle_entry *e = &piece.slice->entry;
    piece.slice->used = true;
    if (e->has_slices || e->type != whole->type || e->shape.rank != whole->shape.rank)
        return error_set(err, ERR_DATA, "one of its slices has another type or shape");
    for (int i = 0; i < e->shape.rank; i++)
        if (e->shape.dims[i] != piece.extents[i].length)
            return error_set(err, ERR_DATA, "one of its slices has another type or shape");
    j->bytes += e->size;
    vec_push(&j->pieces, piece);
    return bundle_find_data(j->bundle, e, err);
}

/* Copies a piece, one row of the last dimension at a time. */
static bool copy_piece(struct slice_joiner *j, const struct piece *piece, const struct tensor *part,
                       struct tensor *value)
{
    const struct shape *whole = &j->whole->shape;
    int64_t at[SHAPE_RANK_MAX] = {0}, count = tensor_count(part);
    size_t element = dtype_bytes(part->type);
    int last = whole->rank - 1;
    int64_t row = last < 0 ? 1 : piece->extents[last].length;
    for (int64_t done = 0; done < count; done += row) {
        int64_t to = 0;
        for (int i = 0; i <= last; i++)
            to = to * whole->dims[i] + piece->extents[i].start + at[i];
        /* no element may be in two slices */
        for (int64_t i = to; i < to + row; i++) {
            if (j->filled[i / 8] >> (i % 8) & 1)
                return false;
            j->filled[i / 8] |= (uint8_t)(1 << (i % 8));
        }
        memcpy((char *)value->data + (size_t)to * element,
               (const char *)part->data + (size_t)done * element, (size_t)row * element);
        for (int i = last - 1; i >= 0 && ++at[i] == piece->extents[i].length; i--)
            at[i] = 0;
    }
    return true;
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
    struct wire_bytes in = j.whole->message;
    while (in.p < in.end && !in.bad && !err->code) {
        uint64_t number = 0;
        struct wire_bytes slice = {0};
        if (wire_field(&in, &number, &slice) == ENTRY_SLICES)
            take_piece(&j, slices, name, slice, err);
    }
    if (!err->code && (int64_t)j.bytes != shape_bytes(&j.whole->shape, (enum dtype)j.whole->type))
        error_set(err, ERR_DATA, "its slices are not all of it");
    if (!err->code) {
        int64_t count = shape_count(&j.whole->shape);
        if (!tensor_alloc(value, (enum dtype)j.whole->type, &j.whole->shape, err)) {
            j.filled = mem_try((size_t)count / 8 + 1);
            if (!j.filled)
                error_set(err, ERR_OS, "no memory to join its slices");
            else
                memset(j.filled, 0, (size_t)count / 8 + 1);
            for (size_t i = 0; i < j.pieces.n && !err->code; i++) {
                const struct piece *piece = &j.pieces.items[i];
                struct tensor part = TENSOR_INIT;
                if (!bundle_read_numbers(j.bundle, &piece->slice->entry, &part, err) &&
                    !copy_piece(&j, piece, &part, value))
                    error_set(err, ERR_DATA, "its slices overlap");
                tensor_release(&part);
            }
            mem_free(j.filled);
            if (err->code)
                tensor_release(value);
        }
    }
    vec_release(&j.pieces);
    return err->code;
}
