/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/header.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "wire/internal.h"

/* ---- validating ---- */

enum content { CONTENT_BYTES, CONTENT_ARRAY, CONTENT_MAP, CONTENT_NONE };

/* A tag is followed by a length of `length` bytes, and by `fixed` bytes. */
struct tag {
    uint8_t length, fixed;
    enum content content;
};

/* The tags 0xc0 to 0xdf, by the msgpack specification. */
static const struct tag tags[32] = {
    {0, 0, CONTENT_BYTES},                                                /* nil */
    {0, 0, CONTENT_NONE},                                                 /* never used */
    {0, 0, CONTENT_BYTES},  {0, 0, CONTENT_BYTES},                        /* false, true */
    {1, 0, CONTENT_BYTES},  {2, 0, CONTENT_BYTES}, {4, 0, CONTENT_BYTES}, /* bin */
    {1, 1, CONTENT_BYTES},  {2, 1, CONTENT_BYTES}, {4, 1, CONTENT_BYTES}, /* ext */
    {0, 4, CONTENT_BYTES},  {0, 8, CONTENT_BYTES},                        /* float */
    {0, 1, CONTENT_BYTES},  {0, 2, CONTENT_BYTES}, {0, 4, CONTENT_BYTES}, /* uint */
    {0, 8, CONTENT_BYTES},  {0, 1, CONTENT_BYTES}, {0, 2, CONTENT_BYTES}, /* uint 64, int */
    {0, 4, CONTENT_BYTES},  {0, 8, CONTENT_BYTES}, {0, 2, CONTENT_BYTES}, /* int, fixext */
    {0, 3, CONTENT_BYTES},  {0, 5, CONTENT_BYTES}, {0, 9, CONTENT_BYTES}, /* fixext */
    {0, 17, CONTENT_BYTES}, {1, 0, CONTENT_BYTES}, {2, 0, CONTENT_BYTES}, /* fixext 16, str */
    {4, 0, CONTENT_BYTES},  {2, 0, CONTENT_ARRAY}, {4, 0, CONTENT_ARRAY},
    {2, 0, CONTENT_MAP},    {4, 0, CONTENT_MAP},
};

/* Measures one object at p: its bytes without its elements, and how many elements follow. */
static inline bool measure(const uint8_t *p, size_t left, size_t *bytes, size_t *elements)
{
    *bytes = 1;
    *elements = 0;
    if (*p < 0x80 || *p >= 0xe0)
        return true;
    if (*p < 0xc0) {
        if (*p >= 0xa0)
            *bytes += *p & 0x1f;
        else
            *elements = *p < 0x90 ? (*p & 0xf) * 2u : *p & 0xf;
    } else {
        const struct tag *tag = &tags[*p - 0xc0];
        if (tag->content == CONTENT_NONE || left < 1u + tag->length)
            return false;
        size_t length = wire_uint(p + 1, tag->length);
        *bytes += (size_t)tag->length + tag->fixed;
        if (tag->content == CONTENT_BYTES)
            *bytes += length;
        else
            *elements = tag->content == CONTENT_MAP ? length * 2 : length;
    }
    return *bytes <= left && *elements <= left - *bytes;
}

int header_measure(const uint8_t *data, size_t n, size_t *n_objects, struct error *err)
{
    size_t outer[LIMIT_HEADER_DEPTH]; /* elements left in the enclosing containers */
    size_t at = 0, count = 0, left = 1, bytes, elements;
    int depth = 0;
    if (!n || (((*data) & 0xf0) != 0x80 && (*data) != 0xde && (*data) != 0xdf))
        return error_set(err, ERR_DATA, "a header is not a map");
    while (left) {
        if (at >= n || !measure(data + at, n - at, &bytes, &elements))
            return error_set(err, ERR_DATA, "malformed header");
        if (++count > LIMIT_HEADER_OBJECTS)
            return error_set(err, ERR_DATA, "a header of more than %zu objects",
                             LIMIT_HEADER_OBJECTS);
        at += bytes;
        left--;
        if (elements && depth == LIMIT_HEADER_DEPTH)
            return error_set(err, ERR_DATA, "a header is nested deeper than %d",
                             LIMIT_HEADER_DEPTH);
        if (elements) {
            outer[depth++] = left;
            left = elements;
        }
        while (!left && depth)
            left = outer[--depth];
    }
    *n_objects = count;
    if (at != n)
        return error_set(err, ERR_DATA, "a header has %zu bytes too many", n - at);
    return 0;
}

/* ---- unpacking ---- */

/* A container with elements left to unpack. */
struct open {
    msgpack_object *next;
    size_t left;
};

_Static_assert(sizeof(msgpack_object_kv) == 2 * sizeof(msgpack_object), "a pair is two objects");
_Static_assert(offsetof(msgpack_object, via.array.size) == offsetof(msgpack_object, via.map.size),
               "arrays and maps start alike");

static void set_unsigned(msgpack_object *object, uint64_t value)
{
    object->type = MSGPACK_OBJECT_POSITIVE_INTEGER;
    object->via.u64 = value;
}

static void set_signed(msgpack_object *object, int64_t value)
{
    object->type = value < 0 ? MSGPACK_OBJECT_NEGATIVE_INTEGER : MSGPACK_OBJECT_POSITIVE_INTEGER;
    object->via.i64 = value;
}

static void set_float(msgpack_object *object, const uint8_t *p, size_t n)
{
    uint64_t bits = wire_uint(p, n);
    uint32_t low = (uint32_t)bits;
    float single;
    memcpy(&single, &low, sizeof single);
    memcpy(&object->via.f64, &bits, sizeof bits);
    object->type = n == 4 ? MSGPACK_OBJECT_FLOAT32 : MSGPACK_OBJECT_FLOAT64;
    if (n == 4)
        object->via.f64 = single;
}

static const uint8_t *set_text(msgpack_object *object, const uint8_t *p, size_t n)
{
    object->type = MSGPACK_OBJECT_STR;
    object->via.str.size = (uint32_t)n;
    object->via.str.ptr = (const char *)p;
    return p + n;
}

/* p is at the extension's type. */
static const uint8_t *set_extension(msgpack_object *object, const uint8_t *p, size_t n)
{
    object->type = MSGPACK_OBJECT_EXT;
    object->via.ext.type = (int8_t)*p;
    object->via.ext.size = (uint32_t)n;
    object->via.ext.ptr = (const char *)p + 1;
    return p + 1 + n;
}

/* Sets an array of n elements, or a map of n pairs; *elements: how many objects follow. */
static void set_container(msgpack_object *object, bool map, size_t n, size_t *elements)
{
    object->type = map ? MSGPACK_OBJECT_MAP : MSGPACK_OBJECT_ARRAY;
    object->via.array.size = (uint32_t)n; /* also for a map, whose size comes first as well */
    *elements = map ? 2 * n : n;
}

/* Unpacks one object; *elements is the number of its elements, which follow. Returns its end. */
static inline const uint8_t *set_object(msgpack_object *object, const uint8_t *p, size_t *elements)
{
    uint8_t tag = *p++;
    if (tag >= 0xc0 && tag < 0xe0) {
        /* Tags 0xc0 to 0xdf; p is after the tag. In tag order, lengths have 1, 2 or 4 bytes. */
        size_t n;
        switch (tag) {
        case 0xc0:
            object->type = MSGPACK_OBJECT_NIL;
            return p;
        case 0xc2:
        case 0xc3:
            object->type = MSGPACK_OBJECT_BOOLEAN;
            object->via.boolean = tag == 0xc3;
            return p;
        case 0xc4:
        case 0xc5:
        case 0xc6:
            n = (size_t)1 << (tag - 0xc4);
            object->type = MSGPACK_OBJECT_BIN;
            object->via.bin.size = (uint32_t)wire_uint(p, n);
            object->via.bin.ptr = (const char *)p + n;
            return p + n + object->via.bin.size;
        case 0xc7:
        case 0xc8:
        case 0xc9:
            n = (size_t)1 << (tag - 0xc7);
            return set_extension(object, p + n, wire_uint(p, n));
        case 0xca:
        case 0xcb:
            n = tag == 0xca ? 4 : 8;
            set_float(object, p, n);
            return p + n;
        case 0xd9:
        case 0xda:
        case 0xdb:
            n = (size_t)1 << (tag - 0xd9);
            return set_text(object, p + n, wire_uint(p, n));
        case 0xdc:
        case 0xdd:
        case 0xde:
        case 0xdf:
            n = tag & 1 ? 4 : 2;
            set_container(object, tag >= 0xde, wire_uint(p, n), elements);
            return p + n;
        default:
            break;
        }
        if (tag >= 0xd4) /* fixext, 1 to 16 bytes */
            return set_extension(object, p, (size_t)1 << (tag - 0xd4));
        n = (size_t)1 << (tag & 3);
        if (tag < 0xd0)
            set_unsigned(object, wire_uint(p, n));
        else
            set_signed(object, (int64_t)(wire_uint(p, n) << (64 - 8 * n)) >> (64 - 8 * n));
        return p + n;
    }
    if (tag < 0x80)
        set_unsigned(object, tag);
    else if (tag >= 0xe0)
        set_signed(object, (int8_t)tag);
    else if (tag >= 0xa0)
        return set_text(object, p, tag & 0x1f);
    else
        set_container(object, tag < 0x90, tag & 0xf, elements);
    return p;
}

void header_unpack(const uint8_t *data, msgpack_object *objects)
{
    struct open outer[LIMIT_HEADER_DEPTH], here = {objects, 1};
    msgpack_object *unused = objects + 1;
    int depth = 0;
    while (here.left || depth) {
        if (!here.left) {
            here = outer[--depth];
            continue;
        }
        msgpack_object *object = here.next++;
        size_t elements = 0;
        here.left--;
        data = set_object(object, data, &elements);
        if (object->type == MSGPACK_OBJECT_ARRAY)
            object->via.array.ptr = unused;
        else if (object->type == MSGPACK_OBJECT_MAP) /* a pair is two objects in a row */
            object->via.map.ptr = (msgpack_object_kv *)unused;
        if (elements) {
            outer[depth++] = here;
            here = (struct open){unused, elements};
            unused += elements;
        }
    }
}

/* ---- a record ---- */

int header_reserve(struct record *record, size_t n, struct error *err)
{
    if (n <= record->bytes_capacity)
        return 0;
    mem_free(record->bytes);
    record->bytes_capacity = n < 4096 ? 4096 : n;
    record->bytes = mem_try(record->bytes_capacity);
    if (record->bytes)
        return 0;
    record->bytes_capacity = 0;
    return error_set(err, ERR_OS, "no memory for a header of %zu bytes", n);
}

int header_parse(struct record *record, size_t n, struct error *err)
{
    static const char key[] = "\xa3sum\xcf";
    const uint8_t *header = record->bytes;
    size_t n_objects;
    if (n < sizeof key - 1 + 8 || memcmp(header + n - SUM_BYTES - 4, key, sizeof key - 1) ||
        XXH3_64bits(header, n - SUM_BYTES) != wire_uint(header + n - 8, 8))
        return error_set(err, ERR_DATA, "damaged: the checksum of the header at byte %llu is wrong",
                         (unsigned long long)record->offset);
    if (header_measure(header, n, &n_objects, err))
        return err->code;
    if (n_objects > record->objects_capacity) {
        mem_free(record->objects);
        record->objects_capacity = n_objects < 256 ? 256 : n_objects;
        record->objects = mem_try(record->objects_capacity * sizeof *record->objects);
        if (!record->objects) {
            record->objects_capacity = 0;
            return error_set(err, ERR_OS, "no memory for a header of %zu bytes", n);
        }
    }
    header_unpack(record->bytes, record->objects);
    record->header = record->objects[0];
    const msgpack_object *name = record_field(&record->header, "kind");
    if (!name || name->type != MSGPACK_OBJECT_STR)
        return error_set(err, ERR_DATA, "a record without a kind");
    if (!record_parse_kind(name, &record->kind))
        return error_set(err, ERR_DATA, "unknown record kind '%.*s'",
                         (int)(name->via.str.size < 64 ? name->via.str.size : 64),
                         name->via.str.ptr);
    return 0;
}
