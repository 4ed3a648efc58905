/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/header.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "wire/internal.h"
#include "wire/unpack.h"
#include "wire/validate.h"

int64_t header_length(const uint8_t prefix[HEADER_PREFIX_BYTES])
{
    if (prefix[0] != RECORD_TAG)
        return -1;
    return (int64_t)prefix[1] << 24 | prefix[2] << 16 | prefix[3] << 8 | prefix[4];
}

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
        XXH3_64bits(header, n - SUM_BYTES) != wire_uint64(header + n - 8))
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
