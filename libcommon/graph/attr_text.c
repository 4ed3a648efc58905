/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes as text, both ways.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/attr.h"
#include "tensor/literal.h"

/* A float's text always shows that it is one, so that it is parsed as the same kind. */
static void print_float(struct str *out, double value)
{
    size_t start = out->n;
    str_append_float64(out, value);
    if (!strpbrk(out->data + start, ".enia"))
        str_append(out, ".0");
}

void attr_print(struct str *out, const struct attr_value *v, int64_t limit)
{
    switch (v->kind) {
    case ATTR_NONE:
        break;
    case ATTR_INT:
        str_printf(out, "%" PRId64, v->i);
        break;
    case ATTR_FLOAT:
        print_float(out, v->f);
        break;
    case ATTR_BOOL:
        str_append(out, v->b ? "true" : "false");
        break;
    case ATTR_STRING:
        literal_print_string(out, v->s, strlen(v->s));
        break;
    case ATTR_TYPE:
        str_append(out, dtype_name(v->type));
        break;
    case ATTR_SHAPE:
        shape_print(out, v->shape);
        break;
    case ATTR_TENSOR:
        tensor_print(out, v->tensor, limit);
        break;
    default:
        str_append_char(out, '[');
        for (int i = 0; i < v->n; i++) {
            if (i)
                str_append_char(out, ',');
            struct attr_value item = attr_item(v, i);
            attr_print(out, &item, limit);
        }
        str_append_char(out, ']');
    }
}

/* ---- parsing ---- */

static const char *skip_blanks(const char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

static const char *expected(const char *what, const char *text, struct error *err)
{
    error_set(err, ERR_DATA, "expected %s at '%.20s'", what, text);
    return NULL;
}

static const char *parse_string(struct arena *arena, const char *text, const char **value,
                                struct error *err)
{
    size_t n;
    const char *end = *text == '"' ? literal_string(text, NULL, &n) : NULL;
    if (!end)
        return expected("a quoted string", text, err);
    char *out = arena_alloc(arena, n + 1);
    literal_string(text, out, &n);
    if (memchr(out, '\0', n))
        return expected("a string without NUL", text, err);
    *value = out;
    return end;
}

static const char *parse_item(struct arena *arena, const char *text, enum attr_kind kind,
                              struct attr_value *v, struct error *err)
{
    char word[8 * 24], *end;
    const char *what;
    size_t n = 0, size = sizeof word;
    struct shape *shape = NULL;
    switch (kind) {
    case ATTR_INT:
        errno = 0;
        v->i = strtoll(text, &end, 10);
        if (end == text || errno || *end == '.' || isalpha((unsigned char)*end))
            return expected("an integer of 64 bits", text, err);
        return end;
    case ATTR_BOOL:
        v->b = str_starts(text, "true");
        if (!v->b && !str_starts(text, "false"))
            return expected("true or false", text, err);
        return text + (v->b ? 4 : 5);
    case ATTR_STRING:
        return parse_string(arena, text, &v->s, err);
    case ATTR_FLOAT:
        what = "a number";
        size = 64;
        n = strcspn(text, ",]}) \t");
        break;
    case ATTR_TYPE:
        what = "a type";
        size = 16;
        while (isalnum((unsigned char)text[n]))
            n++;
        break;
    default:
        what = "a shape";
        v->shape = shape = arena_alloc(arena, sizeof *shape);
        n = *text == '[' ? strcspn(text, "]") + 1 : 1;
        if (!text[n - 1])
            n = 0;
        break;
    }
    if (n == 0 || n >= size)
        return expected(what, text, err);
    memcpy(word, text, n);
    word[n] = '\0';
    bool parsed = kind == ATTR_FLOAT  ? str_to_float64(word, &v->f)
                  : kind == ATTR_TYPE ? dtype_parse(word, &v->type)
                                      : shape_parse(word, shape);
    return parsed ? text + n : expected(what, text, err);
}

static const char *parse_list(struct arena *arena, const char *text, enum attr_kind kind,
                              struct attr_value *v, struct error *err)
{
    if (*text != '[')
        return expected("a list", text, err);
    text = skip_blanks(text + 1);
    while (*text != ']') {
        struct attr_value item = {.kind = (enum attr_kind)(kind - ATTR_LIST_INT + ATTR_INT)};
        if (v->n && *text++ != ',')
            return expected("',' or ']'", text - 1, err);
        text = parse_item(arena, skip_blanks(text), item.kind, &item, err);
        if (!text)
            return NULL;
        attr_add(arena, v, &item);
        text = skip_blanks(text);
    }
    return text + 1;
}

const char *attr_parse(struct arena *arena, const char *text, enum attr_kind kind, enum dtype type,
                       struct attr_value *value, struct error *err)
{
    struct attr_value v = {.kind = kind};
    text = skip_blanks(text);
    if (kind == ATTR_TENSOR) {
        struct tensor t = TENSOR_INIT;
        text = tensor_parse(&t, text, type, err);
        if (!text)
            return NULL;
        v.tensor = &t;
        *value = attr_copy(arena, &v);
        tensor_release(&t);
        return text;
    }
    text = kind >= ATTR_LIST_INT ? parse_list(arena, text, kind, &v, err)
                                 : parse_item(arena, text, kind, &v, err);
    if (text)
        *value = v;
    return text;
}
