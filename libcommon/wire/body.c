/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/body.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "wire/internal.h"

#define BIG_TENSOR ((size_t)1 << 20) /* worth asking whether its data can be there */

struct body {
    struct input *in;
    XXH3_state_t *sum; /* NULL: not checked */
};

bool record_carries(enum dtype type)
{
    return type == STRING || (dtype_bytes(type) && type != RESOURCE);
}

bool record_name_fits(const char *name)
{
    size_t n = strlen(name);
    return n <= LIMIT_NAME_BYTES && str_is_printable(name, n);
}

static int read_shape(const msgpack_object *dims, struct shape *shape)
{
    if (!dims || dims->type != MSGPACK_OBJECT_ARRAY || dims->via.array.size > SHAPE_RANK_MAX)
        return -1;
    *shape = (struct shape){.rank = (int)dims->via.array.size};
    for (int i = 0; i < shape->rank; i++) {
        const msgpack_object *dim = &dims->via.array.ptr[i];
        if (dim->type != MSGPACK_OBJECT_POSITIVE_INTEGER || dim->via.u64 > INT64_MAX)
            return -1;
        shape->dims[i] = dim->via.i64;
    }
    return 0;
}

/* Ends the text in place: behind it lies the tag of an object that is already unpacked, at the
 * latest that of the checksum. */
static const char *terminate(const msgpack_object *text)
{
    if (!text || text->type != MSGPACK_OBJECT_STR ||
        (text->via.str.size && memchr(text->via.str.ptr, 0, text->via.str.size)))
        return NULL;
    char *end = (char *)(uintptr_t)text->via.str.ptr + text->via.str.size;
    *end = '\0';
    return text->via.str.ptr;
}

/* Takes one entry of the list; the tensor has its memory then, but no data. */
static int describe(struct input *in, const msgpack_object *entry, struct named_tensor *named,
                    int64_t *n_bins, struct error *err)
{
    enum dtype type;
    struct shape shape;
    int64_t bytes;
    const char *type_name = terminate(record_field(entry, "type"));
    named->name = terminate(record_field(entry, "name"));
    if (!named->name || !type_name || read_shape(record_field(entry, "shape"), &shape) ||
        !record_get_int(entry, "bins", n_bins) || !record_get_int(entry, "bytes", &bytes) ||
        *n_bins < 0)
        return error_set(err, ERR_DATA, "malformed list of tensors");
    if (!record_name_fits(named->name))
        return error_set(err, ERR_DATA, "a tensor's name is not fit to print: '%.40s'",
                         named->name);
    if (!dtype_parse(type_name, &type) || !record_carries(type))
        return error_set(err, ERR_DATA, "tensor '%s': type '%s' is not carried by streams",
                         named->name, type_name);
    if (bytes < 0 || (uint64_t)bytes > LIMIT_TENSOR_BYTES)
        return error_set(err, ERR_DATA, "tensor '%s': %lld bytes are beyond the limit of %zu",
                         named->name, (long long)bytes, LIMIT_TENSOR_BYTES);
    int64_t count = shape_count(&shape), least = shape_bytes(&shape, type);
    if (type == STRING)
        least = count >= 0 && count < bytes / 8 ? (count + 1) * 8 : -1;
    if (least < 0 || (type == STRING ? bytes < least : bytes != least))
        return error_set(err, ERR_DATA, "tensor '%s': %lld bytes are not a %s", named->name,
                         (long long)bytes, shape_text_typed(type, &shape));
    if ((size_t)bytes >= BIG_TENSOR && !input_may_have(in, (size_t)bytes))
        return BODY_TRUNCATED;
    if (type == STRING)
        return tensor_alloc_strings(&named->tensor, &shape, (size_t)(bytes - least), err);
    return tensor_alloc(&named->tensor, type, &shape, err);
}

/* Length of the bin that starts here. */
static int read_bin_length(struct input *in, size_t *length, struct error *err)
{
    size_t got;
    if (input_peek(in, 1, &got, err))
        return err->code;
    if (!got)
        return BODY_TRUNCATED;
    uint8_t tag = in->data[in->start];
    if (tag < 0xc4 || tag > 0xc6)
        return error_set(err, ERR_DATA, "damaged: no tensor data at byte %llu",
                         (unsigned long long)in->offset);
    size_t n = 1 + ((size_t)1 << (tag - 0xc4));
    if (input_peek(in, n, &got, err))
        return err->code;
    if (got < n)
        return BODY_TRUNCATED;
    *length = 0;
    for (size_t i = 1; i < n; i++)
        *length = *length << 8 | in->data[in->start + i];
    input_skip(in, n);
    return 0;
}

static int read_bytes(struct body *body, char *out, size_t n, struct error *err)
{
    for (size_t done = 0, got; done < n; done += got) {
        size_t block = n - done < CHECKSUM_BLOCK_BYTES ? n - done : CHECKSUM_BLOCK_BYTES;
        if (input_read(body->in, out + done, block, &got, err))
            return err->code;
        if (!got)
            return BODY_TRUNCATED;
        if (body->sum)
            XXH3_64bits_update(body->sum, out + done, got);
    }
    return 0;
}

static int read_bins(struct body *body, struct named_tensor *named, size_t bytes, int64_t n_bins,
                     struct error *err)
{
    size_t done = 0, length = 0;
    int status;
    for (int64_t i = 0; i < n_bins; i++, done += length) {
        if ((status = read_bin_length(body->in, &length, err)))
            return status;
        if (length > bytes - done || length > LIMIT_BIN_BYTES)
            return error_set(err, ERR_DATA, "tensor '%s' has more data than its list says",
                             named->name);
        if ((status = read_bytes(body, (char *)named->tensor.data + done, length, err)))
            return status;
    }
    if (done != bytes)
        return error_set(err, ERR_DATA, "tensor '%s' has less data than its list says",
                         named->name);
    return 0;
}

static bool strings_are_valid(const struct tensor *t, size_t bytes)
{
    const uint64_t *offsets = t->data;
    int64_t count = tensor_count(t);
    for (int64_t i = 0; i < count; i++)
        if (offsets[i] > offsets[i + 1])
            return false;
    return !offsets[0] && offsets[count] == bytes - (size_t)(count + 1) * 8;
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

static int read_tensor(struct body *body, const msgpack_object *entry, struct record *record,
                       struct error *err)
{
    struct named_tensor *named = &record->tensors[record->n_tensors];
    struct tensor *t = &named->tensor;
    int64_t n_bins;
    memset(named, 0, sizeof *named);
    int status = describe(body->in, entry, named, &n_bins, err);
    if (status)
        return status;
    record->n_tensors++;
    size_t bytes = t->buffer->bytes;
    if ((status = read_bins(body, named, bytes, n_bins, err))) {
        if (t->type == STRING) /* nobody may look at offsets that were not read */
            memset(t->data, 0, (size_t)(tensor_count(t) + 1) * 8);
        return status;
    }
    bool good =
        t->type == STRING ? strings_are_valid(t, bytes) : t->type != BOOL || booleans_are_valid(t);
    if (!good)
        return error_set(err, ERR_DATA, "tensor '%s': data that is no %s", named->name,
                         dtype_name(t->type));
    return 0;
}

static int check_sum(struct body *body, struct error *err)
{
    struct input *in = body->in;
    uint64_t sum = 0;
    size_t got;
    if (input_peek(in, SUM_BYTES, &got, err))
        return err->code;
    if (got < SUM_BYTES)
        return BODY_TRUNCATED;
    const uint8_t *p = in->data + in->start;
    for (int i = 1; i < SUM_BYTES; i++)
        sum = sum << 8 | p[i];
    if (*p != 0xcf || (body->sum && XXH3_64bits_digest(body->sum) != sum))
        return error_set(err, ERR_DATA,
                         "damaged: the checksum of the tensor data that ends at byte %llu is wrong",
                         (unsigned long long)in->offset);
    input_skip(in, SUM_BYTES);
    return 0;
}

static int read_all(struct body *body, const msgpack_object *list, struct record *record,
                    struct error *err)
{
    uint64_t start = body->in->offset;
    for (uint32_t i = 0; i < list->via.array.size; i++) {
        int status = read_tensor(body, &list->via.array.ptr[i], record, err);
        if (status)
            return status;
    }
    return body->in->offset == start ? 0 : check_sum(body, err);
}

static void reserve(struct record *record, int n)
{
    if (n <= record->tensors_capacity)
        return;
    mem_free(record->tensors);
    record->tensors = mem_array((size_t)n, sizeof *record->tensors);
    record->tensors_capacity = n;
}

int body_read(struct input *in, struct record *record, bool check, struct error *err)
{
    const msgpack_object *list = record_field(&record->header, "tensors");
    XXH3_state_t sum;
    struct body body = {.in = in, .sum = check ? &sum : NULL};
    if (!list)
        return 0;
    if (list->type != MSGPACK_OBJECT_ARRAY)
        return error_set(err, ERR_DATA, "malformed list of tensors");
    if (list->via.array.size > LIMIT_RECORD_TENSORS)
        return error_set(err, ERR_DATA, "%u tensors in a record are beyond the limit of %zu",
                         list->via.array.size, LIMIT_RECORD_TENSORS);
    reserve(record, (int)list->via.array.size);
    XXH3_64bits_reset(&sum);
    return read_all(&body, list, record, err);
}
