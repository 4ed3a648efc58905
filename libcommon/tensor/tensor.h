/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors: a type, a shape and a reference-counted buffer, on the host or on a device.
 *
 * Ownership: a `struct tensor` is a value. tensor_share makes a second holder of the same buffer,
 * tensor_release drops one holder; the last one frees. A tensor whose `buffer` is NULL borrows its
 * memory (from a plan's arena, a graph, a record) and must not outlive the lender; tensor_release
 * is harmless on it, and on a zeroed tensor. Counting is thread-safe, writing the data is not.
 *
 * A string tensor's memory holds count + 1 uint64 offsets and then the bytes: string i is
 * [offset[i], offset[i+1]) of the bytes. Booleans are one byte, 0 or 1.
 */
#ifndef TF_TENSOR_TENSOR_H
#define TF_TENSOR_TENSOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/str.h"
#include "tensor/shape.h"

/* Elements of one tensor are limited so that byte sizes never overflow. */
#define TENSOR_BYTES_MAX ((int64_t)1 << 46)

struct buffer {
    atomic_size_t holders;
    size_t bytes;
    void *data;
    void (*free)(struct buffer *buffer); /* called once, by the last holder */
    void *owner;                         /* for `free`: the device, the mapping, ... */
    /* Returns whether other processes may still read the memory, which must not be written then.
     * Called from any thread. NULL: none can. */
    bool (*is_read)(const struct buffer *buffer);
};

static inline bool buffer_is_read(const struct buffer *buffer)
{
    return buffer->is_read && buffer->is_read(buffer);
}

/* Returns whether the caller, who holds the buffer, is its sole holder and may write to it. */
static inline bool buffer_is_sole(const struct buffer *buffer)
{
    return atomic_load_explicit(&buffer->holders, memory_order_acquire) == 1 &&
           !buffer_is_read(buffer);
}

/* Allocates host memory, not zeroed, with one holder; no owner. NULL: out of memory. */
struct buffer *buffer_new(size_t bytes);

/* A device's private layout of a tensor's elements (for example a blocked convolution layout).
 * Opaque except to its owner; NULL means row-major. Lives as long as the plan that made it. */
struct layout;

struct tensor {
    enum dtype type;
    struct shape shape; /* fully known */
    void *data;         /* the first element; a device address if on a device */
    struct buffer *buffer;
    const struct layout *layout;
};

#define TENSOR_INIT                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

/* Allocates host memory, not zeroed. ERR_OS if out of memory, ERR_DATA if the size is absurd. Not
 * for STRING (tensor_from_strings). */
int tensor_alloc(struct tensor *t, enum dtype type, const struct shape *shape, struct error *err);

/* Returns a tensor that borrows `data`. */
struct tensor tensor_borrow(enum dtype type, const struct shape *shape, void *data);

/* The same, and owns it: `data` is freed with mem_free. */
struct tensor tensor_adopt(enum dtype type, const struct shape *shape, void *data, size_t bytes);

/* Copies n strings; lengths NULL: they are NUL-terminated. */
int tensor_from_strings(struct tensor *t, const struct shape *shape, const char *const *texts,
                        const size_t *lengths, struct error *err);

/* Allocates strings of `text_bytes` bytes in all; the caller fills offsets and bytes. */
int tensor_alloc_strings(struct tensor *t, const struct shape *shape, size_t text_bytes,
                         struct error *err);
void tensor_string(const struct tensor *t, int64_t index, const char **text, size_t *length);

/* Returns whether the offsets of strings ascend from 0, up to the end of that many bytes in all. */
static inline bool tensor_strings_fit(const struct tensor *t, uint64_t bytes)
{
    const uint64_t *offsets = (const uint64_t *)t->data;
    int64_t count = shape_count_of(&t->shape, 0, t->shape.rank);
    bool fit = !offsets[0] && offsets[count] == bytes - (uint64_t)(count + 1) * 8;
    for (int64_t i = 0; fit && i < count; i++)
        fit = offsets[i] <= offsets[i + 1];
    return fit;
}
void tensor_share(struct tensor *copy, const struct tensor *t); /* t must not borrow */
/* A deep copy on the host. */
int tensor_copy(struct tensor *copy, const struct tensor *t, struct error *err);

/* Releases the memory and zeroes the tensor. */
void tensor_release(struct tensor *t);

int64_t tensor_count(const struct tensor *t);
size_t tensor_bytes(const struct tensor *t); /* for STRING: offsets and bytes */

/* Bitwise: type, shape and bytes. */
bool tensor_equal(const struct tensor *a, const struct tensor *b);

/* An element as a number, for printing and for shape functions; host tensors only. */
double tensor_get_float64(const struct tensor *t, int64_t index);
int64_t tensor_get_int64(const struct tensor *t, int64_t index);
void tensor_set_float64(struct tensor *t, int64_t index, double value); /* converts to the type */
void tensor_set_int64(struct tensor *t, int64_t index, int64_t value);

/* Prints one element in its shortest exact form; strings are quoted. */
void tensor_print_element(struct str *out, const struct tensor *t, int64_t index);

/* The same, but strings are as they are, without quotes. */
void tensor_print_plain(struct str *out, const struct tensor *t, int64_t index);

/* Prints nested lists, "[[1,2],[3,4]]": the text form's literal. Elements beyond `limit` are cut
 * ("..."); limit < 0 prints all. An empty tensor prints at most a few thousand empty lists. */
void tensor_print(struct str *out, const struct tensor *t, int64_t limit);

/* Returns the index of the first NaN or infinity; -1: none, or not floating. Host tensors only. */
int64_t tensor_find_not_finite(const struct tensor *t);
/* Prints that element and its position: "NaN at [3,1] of float32[64,10]"; for a scalar "NaN". */
void tensor_print_not_finite(struct str *out, const struct tensor *t, int64_t index);
/* The same for a value at that index of a tensor of that shape; NULL: of a list. */
void str_print_not_finite(struct str *out, double value, enum dtype type, const struct shape *shape,
                          int64_t index);

/* Parses such a literal; a list without elements ends the shape ("[[],[]]" is [2,0]). `type`
 * DTYPE_INVALID: int32 if all elements are whole and have no point, else float32 ("true" and
 * "false": bool; "..." : string). Returns the end of the literal, or NULL with the error set. */
const char *tensor_parse(struct tensor *t, const char *text, enum dtype type, struct error *err);

#endif
