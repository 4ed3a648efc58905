/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/shape.h"

/* A type's name, two brackets, and eight dimensions of at most 19 digits with their commas. */
#define TEXT_BYTES 200
#define N_TEXTS 8

static void print(char text[TEXT_BYTES], const struct shape *shape)
{
    int n = 0;
    if (shape->rank < 0) {
        strcpy(text, "?");
        return;
    }
    text[n++] = '[';
    for (int i = 0; i < shape->rank; i++) {
        const char *comma = i ? "," : "";
        if (shape->dims[i] < 0)
            n += snprintf(text + n, (size_t)(TEXT_BYTES - n), "%s?", comma);
        else
            n += snprintf(text + n, (size_t)(TEXT_BYTES - n), "%s%lld", comma,
                          (long long)shape->dims[i]);
    }
    strcpy(text + n, "]");
}

void shape_print(struct str *out, const struct shape *shape)
{
    char text[TEXT_BYTES];
    print(text, shape);
    str_append(out, text);
}

void shape_print_typed(struct str *out, enum dtype type, const struct shape *shape)
{
    str_append(out, dtype_name(type));
    if (shape->rank >= 0)
        shape_print(out, shape);
}

/* Returns the next of this thread's buffers. */
static char *next_text(void)
{
    static _Thread_local char texts[N_TEXTS][TEXT_BYTES];
    static _Thread_local unsigned next;
    return texts[next++ % N_TEXTS];
}

const char *shape_text(const struct shape *shape)
{
    char *text = next_text();
    print(text, shape);
    return text;
}

const char *shape_text_typed(enum dtype type, const struct shape *shape)
{
    char *text = next_text();
    strcpy(text, dtype_name(type));
    if (shape->rank >= 0)
        print(text + strlen(text), shape);
    return text;
}

static const char *after_space(const char *text)
{
    return text + strspn(text, " \t");
}

/* Parses "?" or a whole number; returns what follows, or NULL. */
static const char *parse_dim(const char *text, int64_t *dim)
{
    if (*text == '?') {
        *dim = SHAPE_UNKNOWN;
        return text + 1;
    }
    if (*text < '0' || *text > '9')
        return NULL;
    char *end;
    errno = 0;
    *dim = strtoll(text, &end, 10);
    return errno ? NULL : end;
}

bool shape_parse(const char *text, struct shape *shape)
{
    struct shape result = SHAPE_SCALAR;
    if (!strcmp(text, "?")) {
        *shape = SHAPE_ANY;
        return true;
    }
    if (*text++ != '[')
        return false;
    text = after_space(text);
    while (*text != ']') {
        if (result.rank == SHAPE_RANK_MAX)
            return false;
        text = parse_dim(text, &result.dims[result.rank++]);
        if (!text)
            return false;
        text = after_space(text);
        if (*text == ',' && *after_space(text + 1) != ']')
            text = after_space(text + 1);
        else if (*text != ']')
            return false;
    }
    if (text[1])
        return false;
    *shape = result;
    return true;
}

bool shape_parse_typed(const char *text, enum dtype *type, struct shape *shape)
{
    char name[16];
    size_t n = strcspn(text, "[?");
    if (n >= sizeof name)
        return false;
    memcpy(name, text, n);
    name[n] = '\0';
    if (!dtype_parse(name, type))
        return false;
    *shape = SHAPE_ANY;
    return !text[n] || shape_parse(text + n, shape);
}
