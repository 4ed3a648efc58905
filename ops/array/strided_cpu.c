/* SPDX-License-Identifier: Apache-2.0
 *
 * First the dimensions are merged as far as both sides allow. What remains is a contiguous run, a
 * strided run or, if the two sides have different innermost dimensions (a transpose), a matrix that
 * is copied in tiles, so that both sides use whole cache lines.
 */
#include "ops/array/strided.h"

#include <string.h>

#include "ops/array/strided_kernels.h"
#include "ops/math/parallel_cpu.h"

#define PARALLEL_BYTES (1 << 18) /* below this a second thread gains nothing */
#define LINE 64                  /* bytes */

static void merge_dims(struct strided *s)
{
    struct strided merged = {.item_bytes = s->item_bytes};
    for (int i = 0; i < s->rank; i++) {
        int last = merged.rank - 1;
        if (s->dims[i] == 1)
            continue;
        if (last >= 0 && merged.to[last] == s->to[i] * s->dims[i] &&
            merged.from[last] == s->from[i] * s->dims[i]) {
            merged.dims[last] *= s->dims[i];
            merged.to[last] = s->to[i];
            merged.from[last] = s->from[i];
        } else {
            strided_add(&merged, s->dims[i], s->to[i], s->from[i]);
        }
    }
    *s = merged;
}

/* ---- innermost loops ---- */

#define COPY_RUN(type)                                                                             \
    static void copy_run_##type(char *to, const char *from, int64_t n, int64_t ts, int64_t fs)     \
    {                                                                                              \
        if (ts == (int64_t)sizeof(type) && fs == 0) {                                              \
            type value = *(const type *)from;                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                ((type *)to)[i] = value;                                                           \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            *(type *)(to + i * ts) = *(const type *)(from + i * fs);                               \
    }

COPY_RUN(uint8_t)
COPY_RUN(uint16_t)
COPY_RUN(uint32_t)
COPY_RUN(uint64_t)

static void copy_run(const struct strided *s, char *to, const char *from)
{
    int last = s->rank - 1;
    int64_t n = s->dims[last], ts = s->to[last], fs = s->from[last];
    if (ts == (int64_t)s->item_bytes && fs == ts)
        memcpy(to, from, (size_t)n * s->item_bytes);
    else if (s->item_bytes == 4)
        copy_run_uint32_t(to, from, n, ts, fs);
    else if (s->item_bytes == 8)
        copy_run_uint64_t(to, from, n, ts, fs);
    else if (s->item_bytes == 2)
        copy_run_uint16_t(to, from, n, ts, fs);
    else
        copy_run_uint8_t(to, from, n, ts, fs);
}

/* The last two dimensions: the last is contiguous on the to side, the one before on the from side.
 * A full tile is a cache line long and high. It is copied through a buffer, so that each line is
 * touched once even if distant lines conflict in the cache. */
#define COPY_TILES(type)                                                                           \
    static void copy_tile_##type(char *to, int64_t ts, const char *from, int64_t fs)               \
    {                                                                                              \
        type tile[LINE / sizeof(type)][LINE / sizeof(type)];                                       \
        for (size_t k = 0; k < LINE / sizeof(type); k++) {                                         \
            type line[LINE / sizeof(type)];                                                        \
            memcpy(line, from + (int64_t)k * fs, LINE);                                            \
            for (size_t i = 0; i < LINE / sizeof(type); i++)                                       \
                tile[i][k] = line[i];                                                              \
        }                                                                                          \
        for (size_t i = 0; i < LINE / sizeof(type); i++)                                           \
            memcpy(to + (int64_t)i * ts, tile[i], LINE);                                           \
    }                                                                                              \
    static void copy_tiles_##type(const struct strided *s, char *to, const char *from)             \
    {                                                                                              \
        int64_t rows = s->dims[s->rank - 2], columns = s->dims[s->rank - 1];                       \
        int64_t ts = s->to[s->rank - 2], fs = s->from[s->rank - 1];                                \
        const int64_t edge = LINE / sizeof(type), item = sizeof(type);                             \
        for (int64_t r = 0; r < rows; r += edge) {                                                 \
            int64_t r_end = r + edge < rows ? r + edge : rows;                                     \
            for (int64_t c = 0; c < columns; c += edge) {                                          \
                int64_t c_end = c + edge < columns ? c + edge : columns;                           \
                if (r_end - r == edge && c_end - c == edge) {                                      \
                    copy_tile_##type(to + r * ts + c * item, ts, from + c * fs + r * item, fs);    \
                    continue;                                                                      \
                }                                                                                  \
                for (int64_t i = r; i < r_end; i++)                                                \
                    for (int64_t k = c; k < c_end; k++)                                            \
                        ((type *)(to + i * ts))[k] = ((const type *)(from + k * fs))[i];           \
            }                                                                                      \
        }                                                                                          \
    }

COPY_TILES(uint8_t)
COPY_TILES(uint16_t)
COPY_TILES(uint32_t)
COPY_TILES(uint64_t)

static void move_dim(struct strided *s, int dim, int place)
{
    struct strided old = *s;
    s->rank = 0;
    for (int i = 0, k = 0; i < old.rank; i++) {
        int take = i == place ? dim : k++;
        if (i != place && take == dim)
            take = k++;
        strided_add(s, old.dims[take], old.to[take], old.from[take]);
    }
}

/* Returns whether the block is essentially a transpose; if so, its matrix becomes the last two
 * dimensions. */
static bool find_matrix(struct strided *s)
{
    int64_t item = (int64_t)s->item_bytes;
    int last = s->rank - 1;
    if (last < 1 || s->to[last] != item || s->from[last] == item || s->from[last] == 0)
        return false;
    for (int i = 0; i < last; i++) {
        if (s->from[i] == item && s->dims[i] > 1) {
            move_dim(s, i, last - 1);
            return true;
        }
    }
    return false;
}

/* ---- all dimensions ---- */

static void copy_block(const struct strided *s, bool matrix, char *to, const char *from)
{
    static void (*const copy_tiles[])(const struct strided *s, char *to,
                                      const char *from) = {[1] = copy_tiles_uint8_t,
                                                           [2] = copy_tiles_uint16_t,
                                                           [4] = copy_tiles_uint32_t,
                                                           [8] = copy_tiles_uint64_t};
    int64_t index[STRIDED_RANK_MAX] = {0};
    int outer = s->rank - (matrix ? 2 : 1);
    for (;;) {
        if (matrix)
            copy_tiles[s->item_bytes](s, to, from);
        else
            copy_run(s, to, from);
        int d = outer - 1;
        for (; d >= 0; d--) {
            to += s->to[d];
            from += s->from[d];
            if (++index[d] < s->dims[d])
                break;
            to -= s->to[d] * s->dims[d];
            from -= s->from[d] * s->dims[d];
            index[d] = 0;
        }
        if (d < 0)
            return;
    }
}

struct strided_cut {
    const struct strided *whole;
    int dim;
    bool matrix;
    char *to;
    const char *from;
};

static void copy_strided(void *context, int number, int parts)
{
    const struct strided_cut *cut = context;
    const struct strided *s = cut->whole;
    struct strided part = *s;
    int d = cut->dim;
    int64_t start = s->dims[d] * number / parts, end = s->dims[d] * (number + 1) / parts;
    part.dims[d] = end - start;
    if (end > start)
        copy_block(&part, cut->matrix, cut->to + start * s->to[d], cut->from + start * s->from[d]);
}

void strided_copy(struct strided *s, void *to, const void *from, int threads)
{
    int64_t bytes = (int64_t)s->item_bytes;
    for (int i = 0; i < s->rank; i++)
        bytes *= s->dims[i];
    if (bytes == 0)
        return;
    merge_dims(s);
    if (s->rank == 0) {
        memcpy(to, from, s->item_bytes);
        return;
    }
    bool matrix = find_matrix(s);
    if (threads > 1 && bytes >= PARALLEL_WORTH(PARALLEL_BYTES)) {
        /* Each thread takes a part of the longest dimension. */
        struct strided_cut cut = {.whole = s, .matrix = matrix, .to = to, .from = from};
        for (int i = 1; i < s->rank; i++)
            if (s->dims[i] > s->dims[cut.dim])
                cut.dim = i;
        team_run(threads, copy_strided, &cut);
    } else
        copy_block(s, matrix, to, from);
}

/* ---- for kernels of any device ---- */

int strided_move(struct kernel_call *call, struct strided *s, void *to, const void *from)
{
    strided_copy(s, to, from, call->threads);
    return KERNEL_DONE;
}

int strided_fill(struct kernel_call *call, struct tensor *out, const void *value)
{
    size_t item = dtype_bytes(out->type);
    struct strided s = {.item_bytes = item};
    strided_add(&s, tensor_count(out), (int64_t)item, 0);
    return strided_move(call, &s, out->data, value);
}

int strided_fill_bits(struct kernel_call *call, struct tensor *out, uint64_t bits)
{
    return strided_fill(call, out, &bits);
}

#define X(kernel, its_prepare)                                                                     \
    const struct kernel_code kernel_##kernel = {.prepare = its_prepare, .run = run_##kernel};
STRIDED_KERNELS(X)
#undef X
