/* SPDX-License-Identifier: Apache-2.0 */
#include "data/cells.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/str.h"
#include "tensor/literal.h"

#define SHOWN 40 /* characters of a bad field in a message */

/* ---- kinds of fields ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

void cell_trim(const char **text, size_t *n)
{
    for (; *n && is_blank(**text); --*n)
        ++*text;
    while (*n && is_blank((*text)[*n - 1]))
        --*n;
}

static bool is_word(const char *text, size_t n, const char *word)
{
    return n == strlen(word) && strncasecmp(text, word, n) == 0;
}

static bool parse_bool(const char *text, size_t n, int64_t *value)
{
    *value = is_word(text, n, "true");
    return *value || is_word(text, n, "false");
}

bool cell_is_missing(const char *text, size_t n)
{
    cell_trim(&text, &n);
    return n == 0 || (n == 1 && *text == '?') || (n == 2 && !memcmp(text, "NA", 2)) ||
           (n == 3 && !memcmp(text, "N/A", 3)) || (n == 4 && !memcmp(text, "#N/A", 4)) ||
           is_word(text, n, "null");
}

bool cell_is_nan(const char *text, size_t n)
{
    cell_trim(&text, &n);
    return is_word(text, n, "nan");
}

enum cell_kind cell_kind(const char *text, size_t n)
{
    double number;
    int64_t truth;
    cell_trim(&text, &n);
    if (cell_is_missing(text, n))
        return CELL_MISSING;
    if (number_float64(text, n, &number) != NUMBER_INVALID)
        return CELL_NUMBER;
    return parse_bool(text, n, &truth) ? CELL_BOOL : CELL_TEXT;
}

size_t cell_amount(const char *text, size_t n, char plain[CELL_AMOUNT_BYTES])
{
    static const char *const signs[] = {"$", "€", "£", "¥"}, digits[] = "0123456789";
    double number;
    if (n >= CELL_AMOUNT_BYTES || memchr(text, '\0', n))
        return 0;
    memcpy(plain, text, n);
    plain[n] = '\0';
    bool is_grouped = strspn(plain + strcspn(plain, digits), digits) <= 3;
    for (char *at = plain; *at;) {
        size_t skip = *at == ',' && at > plain && isdigit((unsigned char)at[-1]) && is_grouped &&
                      strspn(at + 1, digits) == 3 && !memchr(plain, '.', (size_t)(at - plain));
        bool is_first = at == plain || (at == plain + 1 && strchr("+-", *plain));
        for (size_t k = 0; k < sizeof signs / sizeof *signs; k++) {
            size_t length = strlen(signs[k]);
            if (!strncmp(at, signs[k], length) && (is_first || !at[length]))
                skip = length;
        }
        memmove(at, at + skip, strlen(at + skip) + 1);
        at += !skip;
    }
    n = strlen(plain);
    return number_float64(plain, n, &number) == NUMBER_OK ? n : 0;
}

/* ---- elements ---- */

void cells_release(struct cells *cells)
{
    mem_free(cells->data);
    vec_release(&cells->ends);
    cells->data = NULL;
    cells->bytes = cells->capacity = 0;
}

int cells_add_bytes(struct cells *cells, const void *bytes, size_t n, struct error *err)
{
    if (cells->capacity - cells->bytes < n) {
        size_t capacity = cells->capacity * 2 + n + 256;
        char *grown = mem_try_grow(cells->data, cells->bytes, capacity);
        if (!grown)
            return error_set(err, ERR_OS, "no memory for %zu bytes of data", capacity);
        cells->data = grown;
        cells->capacity = capacity;
    }
    if (n)
        memcpy(cells->data + cells->bytes, bytes, n);
    cells->bytes += n;
    return 0;
}

int cell_refuse(const char *text, size_t n, const char *what, struct error *err)
{
    char shown[SHOWN * 4 + 1];
    str_escape(shown, sizeof shown, text, n < SHOWN ? n : SHOWN);
    return error_set(err, ERR_DATA, "'%s%s' %s", shown, n > SHOWN ? "..." : "", what);
}

static int complain(const struct cells *cells, enum number_status status, const char *text,
                    size_t n, struct error *err)
{
    double number;
    char plain[CELL_AMOUNT_BYTES];
    if (status == NUMBER_RANGE && cell_refuse(text, n, "is out of the range of ", err))
        return error_append(err, "%s", dtype_name(cells->type));
    const char *what = cells->type == BOOL ? "is not 0, 1, true or false" : "is not a whole number";
    if (number_float64(text, n, &number))
        what = cell_amount(text, n, plain) ? "is a number only as :amount" : "is not a number";
    return cell_refuse(text, n, what, err);
}

static int add_float(struct cells *cells, const char *text, size_t n, struct error *err)
{
    double wide;
    float narrow;
    int64_t truth;
    char item[sizeof wide];
    struct tensor one = {.type = cells->type, .data = item};
    enum number_status status =
        cells->type == FLOAT64 ? number_float64(text, n, &wide) : number_float32(text, n, &narrow);
    if (status == NUMBER_INVALID && parse_bool(text, n, &truth))
        wide = (double)truth;
    else if (status)
        return complain(cells, status, text, n, err);
    else if (cells->type != FLOAT64)
        wide = (double)narrow;
    tensor_set_float64(&one, 0, wide);
    return cells_add_bytes(cells, item, dtype_bytes(cells->type), err);
}

int cells_add(struct cells *cells, const char *text, size_t n, struct error *err)
{
    if (cells->type == STRING) {
        int code = cells_add_bytes(cells, text, n, err);
        vec_push(&cells->ends, cells->bytes);
        return code;
    }
    cell_trim(&text, &n);
    char plain[CELL_AMOUNT_BYTES];
    size_t length = cells->are_amounts ? cell_amount(text, n, plain) : 0;
    text = length ? plain : text;
    n = length ? length : n;
    if (dtype_is_floating(cells->type))
        return add_float(cells, text, n, err);
    int64_t value;
    enum number_status status = literal_integer(cells->type, text, n, &value);
    if (status == NUMBER_INVALID && parse_bool(text, n, &value))
        status = NUMBER_OK;
    if (status)
        return complain(cells, cells->type == BOOL ? NUMBER_INVALID : status, text, n, err);
    return cells_add_bytes(cells, &value, dtype_bytes(cells->type), err); /* little-endian */
}

int cells_take(struct cells *cells, const struct shape *shape, struct tensor *tensor,
               struct error *err)
{
    if (cells->type == STRING) {
        const size_t n = cells->ends.n, bytes = cells->bytes;
        cells->ends.n = cells->bytes = 0;
        if (tensor_alloc_strings(tensor, shape, bytes, err))
            return err->code;
        uint64_t *offsets = tensor->data;
        offsets[0] = 0;
        for (size_t i = 0; i < n; i++)
            offsets[i + 1] = cells->ends.items[i];
        if (bytes)
            memcpy(offsets + n + 1, cells->data, bytes);
        return 0;
    }
    if (!cells->data)
        return tensor_alloc(tensor, cells->type, shape, err);
    *tensor = tensor_adopt(cells->type, shape, cells->data, cells->bytes);
    cells->data = NULL;
    cells->bytes = cells->capacity = 0;
    return 0;
}
