/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses a tensor's literal in two passes over the text: the first checks the nesting and finds
 * shape, kind and size, the second fills the tensor.
 */
#include <string.h>

#include "tensor/literal.h"
#include "tensor/tensor.h"

/* The form in which the elements are written. */
enum kind {
    KIND_NONE,
    KIND_WHOLE,
    KIND_FLOAT,
    KIND_COMPLEX,
    KIND_BOOL,
    KIND_STRING,
};

struct scan {
    const char *at;
    enum kind kind;
    int rank, depth; /* rank SHAPE_UNKNOWN: not known yet */
    int64_t dims[SHAPE_RANK_MAX], counts[SHAPE_RANK_MAX];
    size_t text_bytes; /* of all strings */
};

static const char *after_space(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
        p++;
    return p;
}

static bool is_word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.';
}

static const char *skip_word(const char *p, const char *word)
{
    size_t n = strlen(word);
    return !strncmp(p, word, n) && !is_word_char(p[n]) ? p + n : NULL;
}

static int expected_at(const char *what, const char *at, struct error *err)
{
    size_t n = strcspn(at, "\n");
    if (!*at)
        return error_set(err, ERR_DATA, "expected %s but the text ends", what);
    return error_set(err, ERR_DATA, "expected %s at '%.*s'", what, (int)(n < 24 ? n : 24), at);
}

/* Parses one element in the first pass: gets its kind, and returns its end. */
static const char *classify(struct scan *s, enum kind *kind, struct error *err)
{
    const char *p = s->at, *end;
    float parts[2];
    bool imaginary, whole;
    size_t length;
    if (*p == '"') {
        end = literal_string(p, NULL, &length);
        *kind = KIND_STRING;
        s->text_bytes += length;
        if (!end)
            expected_at("a well-formed string", p, err);
        return end;
    }
    *kind = KIND_BOOL;
    if ((end = skip_word(p, "true")) || (end = skip_word(p, "false")))
        return end;
    end = literal_number(p, &whole);
    *kind = whole ? KIND_WHOLE : KIND_FLOAT;
    if (end && (*end == 'j' || *end == '+' || *end == '-')) {
        end = literal_complex(p, &imaginary, parts);
        *kind = KIND_COMPLEX;
    }
    if (!end || is_word_char(*end)) {
        expected_at("a value", p, err);
        return NULL;
    }
    return end;
}

static int add_element(struct scan *s, struct error *err)
{
    enum kind kind;
    const char *end = classify(s, &kind, err);
    if (!end)
        return err->code;
    if (s->rank != SHAPE_UNKNOWN && s->rank != s->depth)
        return error_set(err, ERR_DATA, "elements at different depths (%d and %d)", s->rank,
                         s->depth);
    s->rank = s->depth;
    bool numbers = kind <= KIND_COMPLEX && s->kind <= KIND_COMPLEX;
    if (s->kind != KIND_NONE && s->kind != kind && !numbers)
        return expected_at("elements of one kind", s->at, err);
    s->kind = kind > s->kind ? kind : s->kind;
    s->at = end;
    return 0;
}

static int close_list(struct scan *s, struct error *err)
{
    int level = --s->depth;
    if (s->rank == SHAPE_UNKNOWN)
        s->rank = level + 1;
    if (!s->counts[level] && s->rank != level + 1)
        return error_set(err, ERR_DATA, "elements at different depths (%d and %d)", s->rank,
                         level + 1);
    if (s->dims[level] == SHAPE_UNKNOWN)
        s->dims[level] = s->counts[level];
    if (s->dims[level] != s->counts[level])
        return error_set(err, ERR_DATA, "lists of different lengths (%lld and %lld)",
                         (long long)s->dims[level], (long long)s->counts[level]);
    s->at++;
    return 0;
}

/* Called after a value inside a list: closes the lists that end here, skips the comma. */
static int after_value(struct scan *s, struct error *err)
{
    while (s->depth) {
        s->counts[s->depth - 1]++;
        s->at = after_space(s->at);
        if (*s->at == ',') {
            s->at = after_space(s->at + 1);
            return 0;
        }
        if (*s->at != ']')
            return expected_at("',' or ']'", s->at, err);
        if (close_list(s, err))
            return err->code;
    }
    return 0;
}

static int scan_all(struct scan *s, struct error *err)
{
    do {
        bool empty = false;
        while (*s->at == '[' && !empty) {
            if (s->depth == SHAPE_RANK_MAX)
                return error_set(err, ERR_DATA, "more than %d nested lists", SHAPE_RANK_MAX);
            s->counts[s->depth++] = 0;
            s->at = after_space(s->at + 1);
            empty = *s->at == ']';
        }
        if (empty ? close_list(s, err) : add_element(s, err))
            return err->code;
        if (after_value(s, err))
            return err->code;
    } while (s->depth);
    return 0;
}

static const char *fill_number(struct tensor *t, int64_t i, const char *text, struct error *err)
{
    bool ignored;
    int64_t value;
    if (t->type == COMPLEX64)
        return literal_complex(text, &ignored, (float *)t->data + 2 * i);
    const char *end = literal_number(text, &ignored);
    size_t n = (size_t)(end - text);
    if (t->type == FLOAT32) {
        ((float *)t->data)[i] = (float)literal_float(text, end, true);
    } else if (dtype_is_floating(t->type)) {
        tensor_set_float64(t, i, literal_float(text, end, false));
    } else if (!literal_integer(t->type, text, n, &value)) {
        tensor_set_int64(t, i, value);
    } else {
        error_set(err, ERR_DATA, "%.*s does not fit in %s", (int)(n < 48 ? n : 48), text,
                  dtype_name(t->type));
        return NULL;
    }
    return end;
}

static const char *fill_bool(struct tensor *t, int64_t i, const char *text, struct error *err)
{
    bool value = *text == 't' || *text == '1';
    const char *end = text + 1;
    if (*text == 't' || *text == 'f')
        end = text + (value ? 4 : 5);
    else if (*text != '0' && *text != '1')
        end = NULL;
    if (!end || is_word_char(*end)) {
        expected_at("true or false", text, err);
        return NULL;
    }
    ((uint8_t *)t->data)[i] = value;
    return end;
}

static int fill(struct tensor *t, const char *p, struct error *err)
{
    int64_t count = tensor_count(t);
    if (t->type == STRING)
        *(uint64_t *)t->data = 0;
    for (int64_t i = 0; i < count; i++) {
        p += strspn(p, "[], \t\r\n");
        if (t->type == STRING) {
            uint64_t *offsets = t->data;
            size_t n;
            p = literal_string(p, (char *)(offsets + count + 1) + offsets[i], &n);
            offsets[i + 1] = offsets[i] + n;
        } else if (t->type == BOOL) {
            p = fill_bool(t, i, p, err);
        } else {
            p = fill_number(t, i, p, err);
        }
        if (!p)
            return err->code;
    }
    return 0;
}

/* Chooses the type that the elements require; an error if they cannot be of `type`. */
static int choose_type(enum kind kind, enum dtype type, enum dtype *chosen, struct error *err)
{
    static const enum dtype defaults[] = {FLOAT32, INT32, FLOAT32, COMPLEX64, BOOL, STRING};
    static const char *const texts[] = {
        "none",         "whole numbers", "numbers with a point", "complex numbers",
        "truth values", "strings"};
    bool good = kind == KIND_NONE || type == DTYPE_INVALID;
    *chosen = type == DTYPE_INVALID ? defaults[kind] : type;
    if (*chosen == STRING)
        good |= kind == KIND_STRING;
    else if (*chosen == BOOL)
        good |= kind == KIND_BOOL || kind == KIND_WHOLE;
    else
        good |= kind < KIND_COMPLEX || (kind == KIND_COMPLEX && *chosen == COMPLEX64);
    if (!good)
        return error_set(err, ERR_DATA, "%s where %s is expected", texts[kind], dtype_name(type));
    return 0;
}

const char *tensor_parse(struct tensor *t, const char *text, enum dtype type, struct error *err)
{
    struct scan s = {.at = after_space(text), .rank = SHAPE_UNKNOWN};
    struct tensor result;
    enum dtype chosen;
    int failed;
    const char *start = s.at;
    for (int i = 0; i < SHAPE_RANK_MAX; i++)
        s.dims[i] = SHAPE_UNKNOWN;
    if (scan_all(&s, err) || choose_type(s.kind, type, &chosen, err))
        return NULL;
    struct shape shape = shape_of(s.rank, s.dims);
    if (chosen == STRING)
        failed = tensor_alloc_strings(&result, &shape, s.text_bytes, err);
    else
        failed = tensor_alloc(&result, chosen, &shape, err);
    if (failed)
        return NULL;
    if (fill(&result, start, err)) {
        tensor_release(&result);
        return NULL;
    }
    *t = result;
    return s.at;
}
