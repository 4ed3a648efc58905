/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/body.h"

#include <string.h>

#include "base/memory.h"
#include "wire/internal.h"

bool record_carries(enum dtype type)
{
    return type == STRING || (dtype_bytes(type) && type != RESOURCE);
}

bool record_name_fits(const char *name)
{
    size_t n = strlen(name);
    return n <= LIMIT_NAME_BYTES && str_is_printable(name, n);
}

int body_entry(const msgpack_object *object, struct body_entry *entry, struct error *err)
{
    enum dtype type;
    struct shape shape;
    int64_t bytes;
    const char *type_name = record_text(object, "type");
    entry->name = record_text(object, "name");
    if (!entry->name || !type_name ||
        !record_read_shape(record_field(object, "shape"), 0, &shape) ||
        !record_get_int(object, "bins", &entry->n_bins) ||
        !record_get_int(object, "bytes", &bytes) || entry->n_bins < 0)
        return error_set(err, ERR_DATA, "malformed list of tensors");
    if (!record_name_fits(entry->name))
        return error_set(err, ERR_DATA, "a tensor's name is not fit to print: '%.40s'",
                         entry->name);
    if (!dtype_parse(type_name, &type) || !record_carries(type))
        return error_set(err, ERR_DATA, "tensor '%s': type '%s' is not carried by streams",
                         entry->name, type_name);
    if (bytes < 0 || (uint64_t)bytes > LIMIT_TENSOR_BYTES)
        return error_set(err, ERR_DATA, "tensor '%s': %lld bytes are beyond the limit of %zu",
                         entry->name, (long long)bytes, LIMIT_TENSOR_BYTES);
    int64_t count = shape_count(&shape), least = shape_bytes(&shape, type);
    if (type == STRING)
        least = count >= 0 && count < bytes / 8 ? (count + 1) * 8 : -1;
    if (least < 0 || (type == STRING ? bytes < least : bytes != least))
        return error_set(err, ERR_DATA, "tensor '%s': %lld bytes are not a %s", entry->name,
                         (long long)bytes, shape_text_typed(type, &shape));
    entry->like = (struct tensor){.type = type, .shape = shape};
    entry->bytes = (size_t)bytes;
    entry->text_bytes = (size_t)(bytes - least);
    return 0;
}

int body_alloc(struct tensor *t, const struct body_entry *entry, struct error *err)
{
    const struct tensor *like = &entry->like;
    if (like->type == STRING)
        return tensor_alloc_strings(t, &like->shape, entry->text_bytes, err);
    return tensor_alloc(t, like->type, &like->shape, err);
}

static bool booleans_are_valid(const struct tensor *t)
{
    const uint8_t *values = t->data;
    int64_t count = tensor_count(t);
    uint8_t all = 0;
    for (int64_t i = 0; i < count; i++)
        all |= values[i];
    return all <= 1;
}

int body_check(const struct named_tensor *named, size_t bytes, struct error *err)
{
    const struct tensor *t = &named->tensor;
    bool good =
        t->type == STRING ? tensor_strings_fit(t, bytes) : t->type != BOOL || booleans_are_valid(t);
    if (good)
        return 0;
    return error_set(err, ERR_DATA, "tensor '%s': data that is no %s", named->name,
                     dtype_name(t->type));
}

int body_list(struct record *record, const msgpack_object **list, struct error *err)
{
    *list = record_field(&record->header, "tensors");
    if (!*list)
        return 0;
    if ((*list)->type != MSGPACK_OBJECT_ARRAY)
        return error_set(err, ERR_DATA, "malformed list of tensors");
    if ((*list)->via.array.size > LIMIT_RECORD_TENSORS)
        return error_set(err, ERR_DATA, "%u tensors in a record are beyond the limit of %zu",
                         (*list)->via.array.size, LIMIT_RECORD_TENSORS);
    int n = (int)(*list)->via.array.size;
    if (n > record->tensors_capacity) {
        mem_free(record->tensors);
        record->tensors = mem_array((size_t)n, sizeof *record->tensors);
        record->tensors_capacity = n;
    }
    return 0;
}
