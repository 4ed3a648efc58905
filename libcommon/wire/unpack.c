/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/unpack.h"

#include <string.h>

#include "wire/limits.h"

/* A container with elements left to unpack. */
struct open {
    msgpack_object *next;
    size_t left;
};

_Static_assert(sizeof(msgpack_object_kv) == 2 * sizeof(msgpack_object), "a pair is two objects");
_Static_assert(offsetof(msgpack_object, via.array.size) == offsetof(msgpack_object, via.map.size),
               "arrays and maps start alike");

static uint64_t read_int(const uint8_t *p, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | p[i];
    return value;
}

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
    uint64_t bits = read_int(p, n);
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
            object->via.bin.size = (uint32_t)read_int(p, n);
            object->via.bin.ptr = (const char *)p + n;
            return p + n + object->via.bin.size;
        case 0xc7:
        case 0xc8:
        case 0xc9:
            n = (size_t)1 << (tag - 0xc7);
            return set_extension(object, p + n, read_int(p, n));
        case 0xca:
        case 0xcb:
            n = tag == 0xca ? 4 : 8;
            set_float(object, p, n);
            return p + n;
        case 0xd9:
        case 0xda:
        case 0xdb:
            n = (size_t)1 << (tag - 0xd9);
            return set_text(object, p + n, read_int(p, n));
        case 0xdc:
        case 0xdd:
        case 0xde:
        case 0xdf:
            n = tag & 1 ? 4 : 2;
            set_container(object, tag >= 0xde, read_int(p, n), elements);
            return p + n;
        default:
            break;
        }
        if (tag >= 0xd4) /* fixext, 1 to 16 bytes */
            return set_extension(object, p, (size_t)1 << (tag - 0xd4));
        n = (size_t)1 << (tag & 3);
        if (tag < 0xd0)
            set_unsigned(object, read_int(p, n));
        else
            set_signed(object, (int64_t)(read_int(p, n) << (64 - 8 * n)) >> (64 - 8 * n));
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
