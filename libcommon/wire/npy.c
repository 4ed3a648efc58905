/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/npy.h"

#include <string.h>

#include "base/memory.h"
#include "base/number.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define HEADER_BYTES_MAX 65536 /* NumPy itself stops at 10,000 */
#define BIG_BYTES (1 << 20)    /* from here on, ask whether the data can come */
#define ALIGNMENT 64           /* of the data in the file */
#define TEXT_CHARACTERS_MAX (1 << 28)

/* ---- the header: a literal of a Python dict with the keys descr, fortran_order and shape ---- */

struct cursor {
    const char *at, *end;
};

enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4 };

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && strchr(" \t\r\n", *c->at) && *c->at)
        c->at++;
}

/* Skips `symbol` if it comes next. */
static bool accept(struct cursor *c, char symbol)
{
    skip_space(c);
    if (c->at == c->end || *c->at != symbol)
        return false;
    c->at++;
    return true;
}

static bool accept_word(struct cursor *c, const char *word)
{
    size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n))
        return false;
    c->at += n;
    return true;
}

/* Parses a quoted text without escapes; *text points into the header. */
static bool read_quoted(struct cursor *c, const char **text, size_t *n)
{
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    char quote = *c->at++;
    const char *close = memchr(c->at, quote, (size_t)(c->end - c->at));
    if (!close)
        return false;
    *text = c->at;
    *n = (size_t)(close - c->at);
    c->at = close + 1;
    return true;
}

static int read_descr(struct cursor *c, struct npy_header *header, struct error *err)
{
    const char *descr;
    size_t n;
    skip_space(c);
    if (c->at < c->end && *c->at == '[')
        return error_set(err, ERR_DATA, "arrays of records are not supported");
    if (!read_quoted(c, &descr, &n))
        return error_set(err, ERR_DATA, "malformed .npy header: no type");
    /* "<f4": byte order, kind and size. One-byte types may have any order. */
    static const enum dtype types[] = {
#define X(constant, name, number, bytes, npy) constant,
        DTYPE_LIST(X)
#undef X
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const char *own = dtype_npy(types[i]);
        if (!own || n != strlen(own) || memcmp(descr + 1, own + 1, n - 1) ||
            !memchr("<>=|", descr[0], 4))
            continue;
        size_t bytes = dtype_bytes(types[i]);
        if (descr[0] == '|' && bytes > 1)
            continue;
        header->type = types[i];
        header->swap_bytes = 1;
        if (descr[0] == '>')
            header->swap_bytes = (int)(types[i] == COMPLEX64 ? bytes / 2 : bytes);
        return 0;
    }
    if (n > 2 && memchr("US", descr[1], 2) && memchr("<>=|", descr[0], 4) &&
        number_int64(descr + 2, n - 2, &header->text_bytes) == NUMBER_OK &&
        header->text_bytes > 0 && header->text_bytes <= TEXT_CHARACTERS_MAX) {
        header->type = STRING;
        header->text_is_unicode = descr[1] == 'U';
        header->text_bytes *= header->text_is_unicode ? 4 : 1;
        header->swap_bytes = header->text_is_unicode && descr[0] == '>' ? 4 : 1;
        return 0;
    }
    return error_set(err, ERR_DATA, "arrays of type '%.*s'%s are not supported",
                     (int)(n < 40 ? n : 40), descr,
                     n && memchr(descr, 'O', n) ? " (Python objects)" : "");
}

static int read_item(struct cursor *c, struct npy_header *header, int *seen, struct error *err)
{
    const char *key;
    size_t n;
    if (!read_quoted(c, &key, &n) || !accept(c, ':'))
        return error_set(err, ERR_DATA, "malformed .npy header");
    int which = n == 5 && !memcmp(key, "descr", n)            ? SEEN_DESCR
                : n == 13 && !memcmp(key, "fortran_order", n) ? SEEN_ORDER
                : n == 5 && !memcmp(key, "shape", n)          ? SEEN_SHAPE
                                                              : 0;
    if (!which || (*seen & which))
        return error_set(err, ERR_DATA, "malformed .npy header: key '%.*s'", (int)(n < 40 ? n : 40),
                         key);
    *seen |= which;
    if (which == SEEN_DESCR)
        return read_descr(c, header, err);
    if (which == SEEN_SHAPE) {
        header->shape = SHAPE_SCALAR;
        if (!accept(c, '('))
            return error_set(err, ERR_DATA, "malformed .npy header: no shape");
        while (!accept(c, ')')) {
            if (header->shape.rank == SHAPE_RANK_MAX)
                return error_set(err, ERR_DATA,
                                 "arrays of more than %d dimensions are not supported",
                                 SHAPE_RANK_MAX);
            skip_space(c);
            int64_t *dim = &header->shape.dims[header->shape.rank++];
            const char *start = c->at;
            *dim = 0;
            for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
                if (__builtin_mul_overflow(*dim, (int64_t)10, dim) ||
                    __builtin_add_overflow(*dim, (int64_t)(*c->at - '0'), dim))
                    return error_set(err, ERR_DATA, "malformed .npy header: bad dimension");
            if (c->at == start)
                return error_set(err, ERR_DATA, "malformed .npy header: bad dimension");
            if (c->at < c->end && *c->at == 'L') /* a long of Python 2 */
                c->at++;

            if (accept(c, ','))
                continue;
            if (header->shape.rank == 1 || !accept(c, ')')) /* (3) is a number, not a tuple */
                return error_set(err, ERR_DATA, "malformed .npy header: bad shape");
            break;
        }
        return 0;
    }
    header->fortran_order = accept_word(c, "True");
    if (!header->fortran_order && !accept_word(c, "False"))
        return error_set(err, ERR_DATA, "malformed .npy header: no order");
    return 0;
}

int npy_parse_header(const char *text, size_t n, struct npy_header *header, struct error *err)
{
    struct cursor c = {text, text + n};
    int seen = 0;
    memset(header, 0, sizeof *header);
    if (!accept(&c, '{'))
        return error_set(err, ERR_DATA, "malformed .npy header");
    while (!accept(&c, '}')) {
        if (read_item(&c, header, &seen, err))
            return err->code;
        if (accept(&c, ','))
            continue;
        if (!accept(&c, '}'))
            return error_set(err, ERR_DATA, "malformed .npy header");
        break;
    }
    skip_space(&c);
    if (seen != (SEEN_DESCR | SEEN_ORDER | SEEN_SHAPE) || c.at != c.end)
        return error_set(err, ERR_DATA, "malformed .npy header");
    return 0;
}

/* ---- reading ---- */

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

/* ---- writing ---- */

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
