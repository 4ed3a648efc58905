/* SPDX-License-Identifier: Apache-2.0
 *
 * The header of a .npy file is a literal of a Python dict with the keys descr, fortran_order and
 * shape.
 */
#include <string.h>

#include "base/number.h"
#include "wire/npy.h"

#define TEXT_CHARACTERS_MAX (1 << 28)

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
