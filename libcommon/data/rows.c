/* SPDX-License-Identifier: Apache-2.0 */
#include "data/rows.h"

#include <string.h>

#include "base/map.h"
#include "base/memory.h"

static size_t row_bytes(const struct tensor *t)
{
    return dtype_bytes(t->type) * (size_t)shape_count_of(&t->shape, 1, t->shape.rank);
}

/* `indices` NULL: takes n rows from `first` on. */
static int gather_strings(const struct tensor *from, const int64_t *indices, int64_t first,
                          int64_t n, struct tensor *to, struct error *err)
{
    int64_t width = shape_count_of(&from->shape, 1, from->shape.rank);
    size_t count = (size_t)(n * width);
    const char **texts = mem_array(count + 1, sizeof *texts);
    size_t *lengths = mem_array(count + 1, sizeof *lengths);
    for (size_t i = 0; i < count; i++) {
        int64_t row = (int64_t)i / width;
        row = indices ? indices[row] : first + row;
        tensor_string(from, row * width + (int64_t)i % width, &texts[i], &lengths[i]);
    }
    struct shape shape = from->shape;
    shape.dims[0] = n;
    int code = tensor_from_strings(to, &shape, texts, lengths, err);
    mem_free(texts);
    mem_free(lengths);
    return code;
}

int rows_slice(const struct tensor *from, int64_t first, int64_t n, struct tensor *to,
               struct error *err)
{
    if (from->type == STRING)
        return gather_strings(from, NULL, first, n, to, err);
    tensor_share(to, from);
    to->data = (char *)to->data + (size_t)first * row_bytes(from);
    to->shape.dims[0] = n;
    return 0;
}

int rows_gather(const struct tensor *from, const int64_t *indices, int64_t n, struct tensor *to,
                struct error *err)
{
    if (from->type == STRING)
        return gather_strings(from, indices, 0, n, to, err);
    struct shape shape = from->shape;
    shape.dims[0] = n;
    int code = tensor_alloc(to, from->type, &shape, err);
    size_t bytes = row_bytes(from);
    for (int64_t i = 0; i < n && !code; i++)
        memcpy((char *)to->data + (size_t)i * bytes,
               (const char *)from->data + (size_t)indices[i] * bytes, bytes);
    return code;
}

static uint64_t draw(uint64_t *state) /* splitmix64, Steele et al. 2014 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Uniform in [0, n), without bias: Lemire, "Fast random integer generation in an interval", 2019.
 */
static uint64_t draw_below(uint64_t *state, uint64_t n)
{
    unsigned __int128 product = (unsigned __int128)draw(state) * n;
    if ((uint64_t)product < n) {
        uint64_t least = (0 - n) % n;
        while ((uint64_t)product < least)
            product = (unsigned __int128)draw(state) * n;
    }
    return (uint64_t)(product >> 64);
}

int64_t *rows_permutation(int64_t n, uint64_t seed, int64_t epoch)
{
    int64_t *order = mem_try((size_t)n * sizeof *order);
    if (!order)
        return NULL;
    uint64_t state = hash_bytes(&epoch, sizeof epoch, seed);
    for (int64_t i = 0; i < n; i++) { /* Fisher and Yates, inside out */
        int64_t j = (int64_t)draw_below(&state, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}
