/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/npy.h"

#include <string.h>

#include "base/memory.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define HEADER_BYTES_MAX 65536 /* NumPy itself stops at 10,000 */
#define BIG_BYTES (1 << 20)    /* from here on, ask whether the data can come */
#define ALIGNMENT 64           /* of the data in the file */

static int read_header(struct gzfile *file, struct npy_header *header, struct error *err)
{
    uint8_t start[MAGIC_BYTES + 2], size[4];
    if (gzfile_read_exact(file, start, sizeof start, err))
        return err->code;
    if (memcmp(start, MAGIC, MAGIC_BYTES))
        return error_set(err, ERR_DATA, "%s: not a .npy file", gzfile_name(file));
    int major = start[MAGIC_BYTES], n_size = major == 1 ? 2 : 4;
    if (major < 1 || major > 3)
        return error_set(err, ERR_DATA, "%s: .npy format %d.%d is not supported", gzfile_name(file),
                         major, start[MAGIC_BYTES + 1]);
    if (gzfile_read_exact(file, size, (size_t)n_size, err))
        return err->code;
    size_t n = 0; /* little-endian */
    for (int i = n_size - 1; i >= 0; i--)
        n = n << 8 | size[i];
    if (n > HEADER_BYTES_MAX)
        return error_set(err, ERR_DATA, "%s: a .npy header of %zu bytes is beyond the limit of %d",
                         gzfile_name(file), n, HEADER_BYTES_MAX);
    char *text = mem_alloc(n);
    if (!gzfile_read_exact(file, text, n, err) && npy_parse_header(text, n, header, err))
        error_prefix(err, "%s: ", gzfile_name(file));
    mem_free(text);
    return err->code;
}

/* Copies column-major data to row-major, in the order of the result. */
static void reorder(char *out, const char *in, const struct shape *shape, size_t item)
{
    int64_t index[SHAPE_RANK_MAX] = {0}, strides[SHAPE_RANK_MAX], stride = 1, at = 0;
    int64_t count = shape_count(shape);
    for (int i = 0; i < shape->rank; i++) {
        strides[i] = stride;
        stride *= shape->dims[i];
    }
    for (int64_t n = 0; n < count; n++, out += item) {
        memcpy(out, in + (size_t)at * item, item);
        for (int axis = shape->rank - 1; axis >= 0; axis--) {
            at += strides[axis];
            if (++index[axis] < shape->dims[axis])
                break;
            at -= strides[axis] * shape->dims[axis];
            index[axis] = 0;
        }
    }
}

void npy_swap(char *data, size_t bytes, size_t item)
{
    for (char *p = data; item > 1 && p < data + bytes; p += item)
        for (size_t i = 0; i < item / 2; i++) {
            char kept = p[i];
            p[i] = p[item - 1 - i];
            p[item - 1 - i] = kept;
        }
}

/* Writes a character in UTF-8; returns where it ends, or NULL if it is none. */
static char *put_character(char *to, uint32_t c)
{
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return NULL;
    *to++ = (char)(more ? ~(0x7fu >> more) | c >> 6 * more : c);
    while (more--)
        *to++ = (char)(0x80 | (c >> 6 * more & 0x3f));
    return to;
}

/* Makes texts of the bytes that were read; those in UTF-8 take no more room. */
static int make_texts(struct tensor *t, const struct npy_header *header, struct error *err)
{
    int64_t count = shape_count(&header->shape), size = header->text_bytes;
    struct tensor texts;
    if (tensor_alloc_strings(&texts, &header->shape, tensor_bytes(t), err))
        return err->code;
    uint64_t *offsets = texts.data;
    char *begin = (char *)(offsets + count + 1), *to = begin;
    offsets[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *text = (const char *)t->data + i * size, *end = text + size;
        while (end > text && !end[-1])
            end--;
        for (uint32_t c; to && text < end; text += header->text_is_unicode ? sizeof c : 1) {
            if (!header->text_is_unicode) {
                *to++ = *text;
                continue;
            }
            memcpy(&c, text, sizeof c);
            to = put_character(to, c);
        }
        if (!to) {
            tensor_release(&texts);
            return error_set(err, ERR_DATA, "text %lld has what is no character", (long long)i + 1);
        }
        offsets[i + 1] = (uint64_t)(to - begin);
    }
    tensor_release(t);
    *t = texts;
    return 0;
}

/* Makes the array of what was read, items of some bytes. */
static int convert(struct tensor *t, const struct npy_header *header, struct error *err)
{
    size_t bytes = tensor_bytes(t);
    bool is_text = header->type == STRING;
    struct tensor ordered;
    if (header->swap_bytes > 1)
        npy_swap(t->data, bytes, (size_t)header->swap_bytes);
    if (t->type == BOOL)
        for (size_t i = 0; i < bytes; i++)
            ((uint8_t *)t->data)[i] = ((uint8_t *)t->data)[i] != 0;
    if (header->fortran_order && header->shape.rank > 1 && bytes) {
        if (tensor_alloc(&ordered, t->type, &t->shape, err))
            return err->code;
        reorder(ordered.data, t->data, &header->shape,
                is_text ? (size_t)header->text_bytes : dtype_bytes(t->type));
        tensor_release(t);
        *t = ordered;
    }
    return is_text ? make_texts(t, header, err) : 0;
}

int npy_read_file(struct gzfile *file, struct tensor *t, struct error *err)
{
    struct npy_header header;
    struct tensor result;
    error_clear(err);
    if (read_header(file, &header, err))
        return err->code;
    enum dtype type = header.type == STRING ? UINT8 : header.type;
    struct shape shape = header.shape;
    int64_t count = shape_count(&shape);
    if (header.type == STRING && count >= 0) /* a row of bytes each, until texts are made of them */
        shape = shape_matrix(count, header.text_bytes);
    int64_t claimed = shape_bytes(&shape, type);
    if (claimed >= BIG_BYTES && !gzfile_may_have(file, (uint64_t)claimed))
        return error_set(err, ERR_DATA, "%s: truncated: %lld bytes of data are not there",
                         gzfile_name(file), (long long)claimed);
    if (tensor_alloc(&result, type, &shape, err))
        return error_prefix(err, "%s: ", gzfile_name(file));
    if (!gzfile_read_exact(file, result.data, tensor_bytes(&result), err) &&
        convert(&result, &header, err))
        error_prefix(err, "%s: ", gzfile_name(file));
    if (err->code) {
        tensor_release(&result);
        return err->code;
    }
    *t = result;
    return 0;
}

int npy_read(const char *path, struct tensor *t, struct error *err)
{
    struct gzfile *file;
    if (gzfile_open(path, &file, err))
        return err->code;
    int status = npy_read_file(file, t, err);
    gzfile_close(file);
    return status;
}

int npy_read_memory(const void *data, size_t n, const char *name, struct tensor *t,
                    struct error *err)
{
    struct gzfile *file = gzfile_open_memory(data, n, name);
    int status = npy_read_file(file, t, err);
    gzfile_close(file);
    return status;
}

void npy_print_header(struct str *out, const struct tensor *t)
{
    static const char blanks[] = "                                                                ";
    str_append_bytes(out, MAGIC "\x01\x00\x00\x00", MAGIC_BYTES + 4);
    str_printf(out, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype_npy(t->type));
    for (int i = 0; i < t->shape.rank; i++)
        str_printf(out, "%s%lld", i ? ", " : "", (long long)t->shape.dims[i]);
    str_append(out, t->shape.rank == 1 ? ",), }" : "), }");
    str_append_bytes(out, blanks, ALIGNMENT - 1 - out->n % ALIGNMENT);
    str_append_char(out, '\n');
    size_t n = out->n - MAGIC_BYTES - 4;
    out->data[MAGIC_BYTES + 2] = (char)(n & 0xff);
    out->data[MAGIC_BYTES + 3] = (char)(n >> 8);
}

int npy_write(FILE *file, const struct tensor *t, struct error *err)
{
    struct str header = STR_INIT;
    size_t bytes = tensor_bytes(t);
    if (!dtype_npy(t->type))
        return error_set(err, ERR_DATA, ".npy has no type %s", dtype_name(t->type));
    npy_print_header(&header, t);
    bool written = fwrite(header.data, 1, header.n, file) == header.n &&
                   (!bytes || fwrite(t->data, 1, bytes, file) == bytes);
    str_release(&header);
    return written ? 0 : error_set_errno(err, ERR_IO, "writing .npy");
}
