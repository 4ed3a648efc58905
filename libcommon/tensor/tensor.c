/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/tensor.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"

/* Up to this size the reference count shares a block with the data; a larger block starts with the
 * data, so that a power of two does not spill into one more huge page. */
#define JOINT_BYTES ((size_t)64 << 10)

/* Up to this size memory is from the allocator's per-thread cache, which has no aligned blocks. */
#define SMALL_BYTES ((size_t)256)

_Static_assert(sizeof(struct buffer) <= MEM_ALIGNMENT, "data behind the count must stay aligned");

static void free_joint(struct buffer *buffer)
{
    mem_free(buffer);
}

static void free_apart(struct buffer *buffer)
{
    mem_free(buffer->data);
    mem_free(buffer);
}

struct buffer *buffer_new(size_t bytes)
{
    struct buffer *buffer;
    char *data;
    if (bytes <= SMALL_BYTES) {
        /* The count is at the start of the block, the data at the first aligned address after. */
        if (!(buffer = mem_try_unaligned(sizeof *buffer + MEM_ALIGNMENT - 1 + bytes)))
            return NULL;
        data = (char *)(buffer + 1);
        data += MEM_ALIGNMENT - 1 - ((uintptr_t)data + MEM_ALIGNMENT - 1) % MEM_ALIGNMENT;
    } else {
        if (!(data = mem_try(bytes <= JOINT_BYTES ? MEM_ALIGNMENT + bytes : bytes)))
            return NULL;
        buffer = bytes <= JOINT_BYTES ? (void *)data : mem_alloc(sizeof *buffer);
        data += bytes <= JOINT_BYTES ? MEM_ALIGNMENT : 0;
    }
    atomic_init(&buffer->holders, 1);
    buffer->bytes = bytes;
    buffer->data = data;
    buffer->free = bytes <= JOINT_BYTES ? free_joint : free_apart;
    buffer->owner = NULL;
    buffer->is_read = NULL;
    return buffer;
}

static int alloc_bytes(struct tensor *t, enum dtype type, const struct shape *shape, int64_t bytes,
                       struct error *err)
{
    if (bytes < 0 || bytes > TENSOR_BYTES_MAX)
        return error_set(err, ERR_DATA, "tensor %s is too large", shape_text_typed(type, shape));
    struct buffer *buffer = buffer_new((size_t)bytes);
    if (!buffer)
        return error_set(err, ERR_OS, "no memory for tensor %s (%lld bytes)%s",
                         shape_text_typed(type, shape), (long long)bytes, mem_limit_text());
    *t = (struct tensor){type, *shape, buffer->data, buffer, NULL};
    return 0;
}

int tensor_alloc(struct tensor *t, enum dtype type, const struct shape *shape, struct error *err)
{
    if (!dtype_bytes(type))
        return error_set(err, ERR_INTERNAL, "a tensor of type %s cannot be allocated by its shape",
                         dtype_name(type));
    if (!shape_is_known(shape))
        return error_set(err, ERR_INTERNAL, "a tensor of unknown shape %s cannot be allocated",
                         shape_text(shape));
    return alloc_bytes(t, type, shape, shape_bytes(shape, type), err);
}

int tensor_alloc_strings(struct tensor *t, const struct shape *shape, size_t text_bytes,
                         struct error *err)
{
    int64_t count = shape_count(shape), bytes = -1;
    if (count >= 0 && count < TENSOR_BYTES_MAX / 8 && text_bytes <= TENSOR_BYTES_MAX)
        bytes = (count + 1) * 8 + (int64_t)text_bytes;
    return alloc_bytes(t, STRING, shape, bytes, err);
}

struct tensor tensor_borrow(enum dtype type, const struct shape *shape, void *data)
{
    return (struct tensor){type, *shape, data, NULL, NULL};
}

struct tensor tensor_adopt(enum dtype type, const struct shape *shape, void *data, size_t bytes)
{
    struct tensor t = tensor_borrow(type, shape, data);
    t.buffer = mem_alloc(sizeof *t.buffer);
    t.buffer->data = data;
    t.buffer->bytes = bytes;
    t.buffer->free = free_apart;
    atomic_init(&t.buffer->holders, 1);
    return t;
}

int tensor_from_strings(struct tensor *t, const struct shape *shape, const char *const *texts,
                        const size_t *lengths, struct error *err)
{
    int64_t count = shape_count(shape);
    size_t total = 0;
    for (int64_t i = 0; i < count; i++)
        total += lengths ? lengths[i] : strlen(texts[i]);
    if (tensor_alloc_strings(t, shape, total, err))
        return err->code;
    uint64_t *offsets = t->data;
    char *bytes = (char *)(offsets + count + 1);
    offsets[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t n = lengths ? lengths[i] : strlen(texts[i]);
        if (n)
            memcpy(bytes + offsets[i], texts[i], n);
        offsets[i + 1] = offsets[i] + n;
    }
    return 0;
}

void tensor_string(const struct tensor *t, int64_t index, const char **text, size_t *length)
{
    const uint64_t *offsets = t->data;
    *text = (const char *)(offsets + tensor_count(t) + 1) + offsets[index];
    *length = (size_t)(offsets[index + 1] - offsets[index]);
}

void tensor_share(struct tensor *copy, const struct tensor *t)
{
    BUG_ON(!t->buffer);
    atomic_fetch_add_explicit(&t->buffer->holders, 1, memory_order_relaxed);
    *copy = *t;
}

int tensor_copy(struct tensor *copy, const struct tensor *t, struct error *err)
{
    struct tensor result;
    size_t bytes = tensor_bytes(t);
    BUG_ON(t->layout);
    if (alloc_bytes(&result, t->type, &t->shape, (int64_t)bytes, err))
        return err->code;
    if (bytes)
        memcpy(result.data, t->data, bytes);
    *copy = result;
    return 0;
}

void tensor_release(struct tensor *t)
{
    struct buffer *buffer = t->buffer;
    if (buffer && atomic_fetch_sub_explicit(&buffer->holders, 1, memory_order_acq_rel) == 1)
        buffer->free(buffer);
    memset(t, 0, sizeof *t);
}

int64_t tensor_count(const struct tensor *t)
{
    return shape_count_of(&t->shape, 0, t->shape.rank);
}

size_t tensor_bytes(const struct tensor *t)
{
    size_t count = (size_t)tensor_count(t);
    if (t->type == STRING)
        return (count + 1) * sizeof(uint64_t) + (size_t)((const uint64_t *)t->data)[count];
    return count * dtype_bytes(t->type);
}

bool tensor_equal(const struct tensor *a, const struct tensor *b)
{
    if (a->type != b->type || !shape_equal(&a->shape, &b->shape))
        return false;
    size_t bytes = tensor_bytes(a);
    return bytes == tensor_bytes(b) && (!bytes || !memcmp(a->data, b->data, bytes));
}
