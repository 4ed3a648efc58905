/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/attr.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "tensor/literal.h"

static const char *const kind_names[] = {
    [ATTR_NONE] = "none",
    [ATTR_INT] = "int",
    [ATTR_FLOAT] = "float",
    [ATTR_BOOL] = "bool",
    [ATTR_STRING] = "string",
    [ATTR_TYPE] = "type",
    [ATTR_SHAPE] = "shape",
    [ATTR_TENSOR] = "tensor",
    [ATTR_LIST_INT] = "list(int)",
    [ATTR_LIST_FLOAT] = "list(float)",
    [ATTR_LIST_BOOL] = "list(bool)",
    [ATTR_LIST_STRING] = "list(string)",
    [ATTR_LIST_TYPE] = "list(type)",
    [ATTR_LIST_SHAPE] = "list(shape)",
};

#define N_KINDS (sizeof kind_names / sizeof *kind_names)

/* Bytes of a value that is all of itself, and of one item of a list kind. */
static const size_t item_bytes[] = {
    [ATTR_INT] = sizeof(int64_t),
    [ATTR_FLOAT] = sizeof(double),
    [ATTR_BOOL] = sizeof(bool),
    [ATTR_TYPE] = sizeof(enum dtype),
    [ATTR_LIST_INT] = sizeof(int64_t),
    [ATTR_LIST_FLOAT] = sizeof(double),
    [ATTR_LIST_BOOL] = sizeof(bool),
    [ATTR_LIST_STRING] = sizeof(char *),
    [ATTR_LIST_TYPE] = sizeof(enum dtype),
    [ATTR_LIST_SHAPE] = sizeof(struct shape),
};

const char *attr_kind_name(enum attr_kind kind)
{
    return (size_t)kind < N_KINDS ? kind_names[kind] : "none";
}

bool attr_kind_parse(const char *text, size_t n, enum attr_kind *kind)
{
    for (size_t i = ATTR_INT; i < N_KINDS; i++) {
        if (strlen(kind_names[i]) == n && !memcmp(kind_names[i], text, n)) {
            *kind = (enum attr_kind)i;
            return true;
        }
    }
    return false;
}

struct attr_value attr_item(const struct attr_value *list, int i)
{
    const char *at = (const char *)list->ints + (size_t)i * item_bytes[list->kind];
    struct attr_value item = {.kind = list->kind - (ATTR_LIST_INT - ATTR_INT)};
    if (item.kind == ATTR_SHAPE)
        item.shape = (const struct shape *)(const void *)at;
    else
        memcpy(&item.i, at, item_bytes[list->kind]);
    return item;
}

void attr_add(struct arena *arena, struct attr_value *list, const struct attr_value *item)
{
    size_t bytes = item_bytes[list->kind];
    bool full = (list->n & (list->n - 1)) == 0; /* its room is a power of two */
    if (full) {
        void *grown = arena_array(arena, list->n ? (size_t)list->n * 2 : 1, bytes);
        if (list->n)
            memcpy(grown, list->ints, (size_t)list->n * bytes);
        list->ints = grown;
    }
    memcpy((char *)(uintptr_t)list->ints + (size_t)list->n++ * bytes,
           item->kind == ATTR_SHAPE ? (const void *)item->shape : (const void *)&item->i, bytes);
}

struct attr_value attr_copy(struct arena *arena, const struct attr_value *value)
{
    struct attr_value copy = *value;
    if (value->kind == ATTR_STRING)
        copy.s = arena_strdup(arena, value->s);
    if (value->kind == ATTR_SHAPE)
        copy.shape = arena_copy(arena, value->shape, sizeof *value->shape);
    if (value->kind == ATTR_TENSOR) {
        struct tensor *tensor = arena_copy(arena, value->tensor, sizeof *tensor);
        tensor->buffer = NULL;
        tensor->data = arena_copy(arena, tensor->data, tensor_bytes(tensor));
        copy.tensor = tensor;
    }
    if (value->kind >= ATTR_LIST_INT)
        copy.ints = arena_copy(arena, value->ints, (size_t)value->n * item_bytes[value->kind]);
    for (int i = 0; value->kind == ATTR_LIST_STRING && i < value->n; i++)
        ((const char **)(uintptr_t)copy.strings)[i] = arena_strdup(arena, value->strings[i]);
    return copy;
}

bool attr_equal(const struct attr_value *a, const struct attr_value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == ATTR_STRING)
        return !strcmp(a->s, b->s);
    if (a->kind == ATTR_SHAPE)
        return shape_equal(a->shape, b->shape);
    if (a->kind == ATTR_TENSOR)
        return tensor_equal(a->tensor, b->tensor);
    if (a->kind < ATTR_LIST_INT) /* floats by bits: -0 differs from 0, and a NaN equals itself */
        return !memcmp(&a->i, &b->i, item_bytes[a->kind]);
    bool equal = a->n == b->n;
    for (int i = 0; equal && i < a->n; i++) {
        struct attr_value one = attr_item(a, i), other = attr_item(b, i);
        equal = attr_equal(&one, &other);
    }
    return equal;
}

static uint64_t hash_shape(const struct shape *s, uint64_t seed)
{
    uint64_t hash = hash_bytes(&s->rank, sizeof s->rank, seed);
    return s->rank > 0 ? hash_bytes(s->dims, (size_t)s->rank * sizeof *s->dims, hash) : hash;
}

static uint64_t hash_value(const struct attr_value *v, uint64_t hash)
{
    if (v->kind == ATTR_STRING)
        return hash_bytes(v->s, strlen(v->s), hash);
    if (v->kind == ATTR_SHAPE)
        return hash_shape(v->shape, hash);
    if (v->kind == ATTR_TENSOR) {
        hash = hash_shape(&v->tensor->shape, hash ^ (uint64_t)v->tensor->type);
        return hash_bytes(v->tensor->data, tensor_bytes(v->tensor), hash);
    }
    if (v->kind < ATTR_LIST_INT)
        return v->kind ? hash_bytes(&v->i, item_bytes[v->kind], hash) : hash;
    hash = hash_bytes(&v->n, sizeof v->n, hash);
    for (int i = 0; i < v->n; i++) {
        struct attr_value item = attr_item(v, i);
        hash = hash_value(&item, hash);
    }
    return hash;
}

uint64_t attr_hash(const struct attr_value *v, uint64_t seed)
{
    return hash_value(v, hash_bytes(&v->kind, sizeof v->kind, seed));
}

/* ---- as text, both ways ---- */

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
