/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes in the text form: kinds of free attributes, and tensors with type and shape.
 */
#include "graph/text_attr.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "graph/marks.h"
#include "graph/text.h"

static const char *fail(struct error *err, const char *what, const char *at)
{
    error_set(err, ERR_DATA, "%s expected at '%.24s'", what, at);
    return NULL;
}

/* ---- tensors ---- */

/* A few bytes of text must not request unlimited memory: the limit of one constant, and of all that
 * is parsed. */
#define FILL_BYTES_MAX ((int64_t)1 << 30)
#define TEXT_BYTES_MAX ((size_t)4 << 30)

/* Makes the tensor of the given type and shape from the literal in parentheses: nothing for no
 * elements, one element to fill with, or all elements. */
static int expand(struct tensor *t, enum dtype type, const struct shape *shape,
                  struct tensor *literal, struct error *err)
{
    if (literal && shape_equal(&literal->shape, shape)) {
        *t = *literal;
        memset(literal, 0, sizeof *literal);
        return 0;
    }
    if (literal && literal->shape.rank != 0)
        return error_set(err, ERR_DATA, "a literal of shape %s where %s is announced",
                         shape_text(&literal->shape), shape_text(shape));
    if (!literal && shape_count(shape) != 0)
        return error_set(err, ERR_DATA, "no elements where %s is announced", shape_text(shape));
    if (type == STRING && literal)
        return error_set(err, ERR_DATA, "strings must be given one by one");
    if (type == STRING)
        return tensor_from_strings(t, shape, NULL, NULL, err);
    if (shape_bytes(shape, type) < 0 || shape_bytes(shape, type) > FILL_BYTES_MAX)
        return error_set(err, ERR_DATA, "%s is too large to be filled with one value",
                         shape_text_typed(type, shape));
    if (tensor_alloc(t, type, shape, err))
        return err->code;
    if (literal) {
        size_t bytes = dtype_bytes(t->type);
        int64_t n = tensor_count(t);
        for (int64_t i = 0; i < n; i++)
            memcpy((char *)t->data + (size_t)i * bytes, literal->data, bytes);
    }
    return 0;
}

static const char *parse_tensor(struct arena *arena, const char *text, enum dtype dtype,
                                struct attr_value *value, struct error *err)
{
    struct tensor t = TENSOR_INIT, literal = TENSOR_INIT;
    struct shape shape;
    enum dtype type;
    char head[256]; /* "float32[2,3]", followed by a parenthesis */
    size_t n = 0;
    while (isalnum((unsigned char)text[n]))
        n++;
    bool announced = n && text[n] == '[';
    n += strcspn(text + n, "]");
    if (!announced || text[n] != ']' || text[++n] != '(')
        return attr_parse(arena, text, ATTR_TENSOR, dtype, value, err);
    if (n >= sizeof head)
        return fail(err, "a type and a shape", text);
    memcpy(head, text, n);
    head[n] = '\0';
    if (!shape_parse_typed(head, &type, &shape) || !shape_is_known(&shape))
        return fail(err, "a type and a known shape", text);
    text += n + 1;
    bool given = *text != ')';
    if (given && !(text = tensor_parse(&literal, text, type, err)))
        return NULL;
    int code = expand(&t, type, &shape, given ? &literal : NULL, err);
    tensor_release(&literal);
    if (!code && *text != ')') {
        fail(err, "')'", text);
        code = err->code;
    } else if (!code && arena->total > TEXT_BYTES_MAX) {
        code =
            error_set(err, ERR_DATA, "constants of more than %zu GiB in all", TEXT_BYTES_MAX >> 30);
    }
    if (!code) {
        struct attr_value borrowed = attr_tensor(&t);
        *value = attr_copy(arena, &borrowed);
    }
    tensor_release(&t);
    return code ? NULL : text + 1;
}

/* ---- kinds ---- */

/* Guesses the kind of a free attribute that does not name it. */
static enum attr_kind guess_kind(const char *text)
{
    size_t n = strcspn(text, ",} ");
    if (*text == '"')
        return ATTR_STRING;
    if (*text == '[')
        return text[1] == '"' ? ATTR_LIST_STRING : ATTR_LIST_INT;
    if (str_starts(text, "true") || str_starts(text, "false"))
        return ATTR_BOOL;
    if (!isdigit((unsigned char)*text) && *text != '-')
        return ATTR_TYPE;
    for (size_t i = 0; i < n; i++)
        if (strchr(".einf", text[i]))
            return ATTR_FLOAT;
    return ATTR_INT;
}

const char *text_parse_attr(struct arena *arena, const char *text, const struct op *op,
                            enum dtype dtype, struct attr *attr, struct error *err)
{
    size_t n = 0;
    enum attr_kind kind = ATTR_NONE;
    while (isalnum((unsigned char)text[n]) || text[n] == '_')
        n++;
    if (!n)
        return fail(err, "an attribute", text);
    attr->name = arena_strndup(arena, text, n);
    text += n;
    /* The kind is announced in the text, declared, or shown by the value. */
    if (*text == ':') {
        n = strcspn(text + 1, "=");
        if (*attr->name != '_' || !attr_kind_parse(text + 1, n, &kind))
            return fail(err, "'='", text);
        text += 1 + n;
    }
    if (*text != '=')
        return fail(err, "'='", text);
    text++;
    if (kind == ATTR_NONE && *attr->name == '_') {
        const struct op_attr *mark = mark_find(attr->name);
        kind = mark ? mark->kind : guess_kind(text);
    } else if (kind == ATTR_NONE) {
        int index = op_find_attr(op, attr->name);
        if (index < 0) {
            op_unknown_attr(op, attr->name, err);
            return NULL;
        }
        kind = op->attrs[index].kind;
    }
    if (kind == ATTR_TENSOR)
        text = parse_tensor(arena, text, dtype, &attr->value, err);
    else
        text = attr_parse(arena, text, kind, dtype, &attr->value, err);
    if (!text)
        error_prefix(err, "attribute '%s': ", attr->name);
    return text;
}

/* ---- types ---- */

int text_check_types(const struct raw_graph *raw, const struct graph *graph, int *line,
                     struct error *err)
{
    vec_each(said, &raw->nodes) {
        *line = said->text_line;
        if (said->types) {
            /* The text states types of the first outputs, separated by commas. */
            const struct node *node = graph_find(graph, said->name);
            struct str is = STR_INIT;
            const char *at = said->types;
            bool right = true;
            for (int k = 0; right && *at && k < node->n_outputs; k++) {
                char text[256];
                enum dtype type;
                struct shape shape;
                size_t n = strcspn(at, ",["), n_shape = at[n] == '[' ? strcspn(at + n, "]") + 1 : 0;
                snprintf(text, sizeof text, "%.*s", (int)(n + n_shape), at);
                text[strcspn(text, " ")] = '\0';
                right = shape_parse_typed(text, &type, &shape) && type == node->outputs[k].type;
                at += n + n_shape;
                at += strspn(at, " ,");
            }
            if (!right || *at) {
                graph_print_types(&is, node);
                error_set(err, ERR_DATA, "node '%s': is said to be %s, but is %s", said->name,
                          said->types, str_text(&is));
            }
            str_release(&is);
            if (err->code)
                return err->code;
        }
    }
    *line = 0;
    return 0;
}
