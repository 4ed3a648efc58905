/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/internal.h"

#include <string.h>

#include "base/memory.h"

struct kind_name {
    const char *text;
    size_t n;
};

#define KIND(text)                                                                                 \
    {                                                                                              \
        text, sizeof text - 1                                                                      \
    }

static const struct kind_name kind_names[] = {
    [RECORD_HELLO] = KIND("hello"),     [RECORD_GRAPH] = KIND("graph"),
    [RECORD_FEED] = KIND("feed"),       [RECORD_FETCH] = KIND("fetch"),
    [RECORD_STEP] = KIND("step"),       [RECORD_TENSOR] = KIND("tensor"),
    [RECORD_PLAN] = KIND("plan"),       [RECORD_TRACE] = KIND("trace"),
    [RECORD_ERROR] = KIND("error"),     [RECORD_END] = KIND("end"),
    [RECORD_REQUEST] = KIND("request"), [RECORD_REPLY] = KIND("reply"),
    [RECORD_VALUE] = KIND("value"),     [RECORD_ANNOUNCE] = KIND("announce"),
    [RECORD_GRANT] = KIND("grant"),     [RECORD_PING] = KIND("ping"),
    [RECORD_REDUCE] = KIND("reduce"),   [RECORD_SHARE] = KIND("share"),
};

#define N_KINDS (int)(sizeof kind_names / sizeof kind_names[0])

const char *record_kind_name(enum record_kind kind)
{
    return (int)kind < N_KINDS ? kind_names[kind].text : "unknown";
}

static bool text_is(const msgpack_object *object, const char *text, size_t n)
{
    return object->type == MSGPACK_OBJECT_STR && object->via.str.size == n &&
           (!n || (*object->via.str.ptr == *text && !memcmp(object->via.str.ptr, text, n)));
}

bool record_parse_kind(const msgpack_object *name, enum record_kind *kind)
{
    for (int i = 0; i < N_KINDS; i++) {
        if (text_is(name, kind_names[i].text, kind_names[i].n)) {
            *kind = (enum record_kind)i;
            return true;
        }
    }
    return false;
}

bool record_carries(enum dtype type)
{
    return type == STRING || (dtype_bytes(type) && type != RESOURCE);
}

bool record_name_fits(const char *name)
{
    size_t n = strlen(name);
    return n <= LIMIT_NAME_BYTES && str_is_printable(name, n);
}

void record_release_tensors(struct record *record)
{
    for (int i = 0; i < record->n_tensors; i++)
        tensor_release(&record->tensors[i].tensor);
    record->n_tensors = 0;
    if (record->arena.blocks)
        arena_release(&record->arena);
}

void record_release(struct record *record)
{
    record_release_tensors(record);
    mem_free(record->objects);
    mem_free(record->tensors);
    mem_free(record->bytes);
    memset(record, 0, sizeof *record);
}

const msgpack_object *record_find(const msgpack_object *map, const char *name, size_t length)
{
    if (map->type != MSGPACK_OBJECT_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->via.map.size; i++)
        if (text_is(&map->via.map.ptr[i].key, name, length))
            return &map->via.map.ptr[i].val;
    return NULL;
}

bool record_read_float(const msgpack_object *object, double *value)
{
    switch (object ? object->type : MSGPACK_OBJECT_NIL) {
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        *value = object->via.f64;
        return true;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        *value = (double)object->via.u64;
        return true;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        *value = (double)object->via.i64;
        return true;
    default:
        return false;
    }
}

bool record_read_shape(const msgpack_object *object, int64_t least, struct shape *shape)
{
    bool fits =
        object && object->type == MSGPACK_OBJECT_ARRAY && object->via.array.size <= SHAPE_RANK_MAX;
    *shape = (struct shape){.rank = fits ? (int)object->via.array.size : 0};
    for (int i = 0; i < shape->rank; i++)
        fits = fits && record_read_int(&object->via.array.ptr[i], &shape->dims[i]) &&
               shape->dims[i] >= least;
    return fits;
}

bool record_get_float(const msgpack_object *map, const char *name, double *value)
{
    return record_read_float(record_field(map, name), value);
}

bool record_get_bool(const msgpack_object *map, const char *name, bool *value)
{
    const msgpack_object *field = record_field(map, name);
    if (!field || field->type != MSGPACK_OBJECT_BOOLEAN)
        return false;
    *value = field->via.boolean;
    return true;
}

static bool is_text(const msgpack_object *field)
{
    return field && field->type == MSGPACK_OBJECT_STR &&
           !(field->via.str.size && memchr(field->via.str.ptr, 0, field->via.str.size));
}

/* The byte after the text is the tag of an object that is already unpacked, at the latest that of
 * the checksum, so it may be overwritten. */
const char *record_end_text(const msgpack_object *field)
{
    if (!is_text(field))
        return NULL;
    ((char *)(uintptr_t)field->via.str.ptr)[field->via.str.size] = '\0';
    return field->via.str.ptr;
}

bool record_get_text(const msgpack_object *map, const char *name, struct arena *arena,
                     const char **text)
{
    const msgpack_object *field = record_field(map, name);
    if (!is_text(field))
        return false;
    *text = arena_strndup(arena, field->via.str.ptr, field->via.str.size);
    return true;
}
