/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/idx.h"

#include <inttypes.h>

#include "base/memory.h"
#include "wire/internal.h"
#include "wire/npy.h"

static const enum dtype types[] = {[0x08] = UINT8, [0x09] = INT8,    [0x0b] = INT16,
                                   [0x0c] = INT32, [0x0d] = FLOAT32, [0x0e] = FLOAT64};

static int read_header(struct gzfile *file, enum dtype *type, struct shape *shape,
                       struct error *err)
{
    const char *name = gzfile_name(file);
    unsigned char magic[4], dims[SHAPE_RANK_MAX][4];
    int code = gzfile_read_exact(file, magic, sizeof magic, err);
    if (code)
        return code;
    *type = magic[2] < sizeof types / sizeof *types ? types[magic[2]] : DTYPE_INVALID;
    if (magic[0] || magic[1] || *type == DTYPE_INVALID)
        return error_set(err, ERR_DATA, "%s: not an IDX file: it starts with %02x %02x %02x %02x",
                         name, magic[0], magic[1], magic[2], magic[3]);
    if (magic[3] > SHAPE_RANK_MAX)
        return error_set(err, ERR_DATA, "%s: IDX of rank %d; at most %d", name, magic[3],
                         SHAPE_RANK_MAX);
    *shape = SHAPE_SCALAR;
    shape->rank = magic[3];
    code = gzfile_read_exact(file, dims, 4 * (size_t)shape->rank, err);
    for (int i = 0; i < shape->rank && !code; i++)
        shape->dims[i] = (int64_t)wire_uint(dims[i], sizeof dims[i]);
    return code;
}

int idx_read(struct gzfile *file, struct tensor *tensor, struct error *err)
{
    enum dtype type;
    struct shape shape;
    int code = read_header(file, &type, &shape, err);
    if (code)
        return code;
    int64_t bytes = shape_bytes(&shape, type);
    if (bytes < 0 || bytes > TENSOR_BYTES_MAX)
        return error_set(err, ERR_DATA, "%s: IDX of %s is too large", gzfile_name(file),
                         shape_text(&shape));
    uint8_t *data;
    size_t n;
    /* One byte more than there may be, which tells whether there is any. */
    code = gzfile_read_all(file, (size_t)bytes + 1, &data, &n, err);
    if (!code && n < (size_t)bytes)
        code = error_set(err, ERR_DATA, "%s: truncated after %" PRIu64 " bytes", gzfile_name(file),
                         gzfile_offset(file));
    else if (!code && n > (size_t)bytes)
        code = error_set(err, ERR_DATA, "%s: data after the %s that the header announces",
                         gzfile_name(file), shape_text_typed(type, &shape));
    if (code) {
        mem_free(data);
        return code;
    }
    npy_swap((char *)data, (size_t)bytes, dtype_bytes(type));
    *tensor = tensor_adopt(type, &shape, data, (size_t)bytes);
    return 0;
}
