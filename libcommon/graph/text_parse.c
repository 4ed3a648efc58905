/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing the text form, line by line, into raw nodes.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "graph/assemble.h"
#include "graph/device_name.h"
#include "graph/marks.h"
#include "graph/text.h"

struct parser {
    const struct registry *registry;
    struct raw_graph raw;
    const char *at; /* within the line */
    int line;
    const char *last_file, *last_device; /* consecutive nodes often have equal texts */
    VEC(const char *) edges;             /* scratch */
    struct error *err;
};

static int expected(struct parser *p, const char *what)
{
    if (!*p->at)
        return error_set(p->err, ERR_DATA, "%s expected, but the line ends", what);
    return error_set(p->err, ERR_DATA, "%s expected at '%.24s'", what, p->at);
}

static void skip_space(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

/* Consumes `token` and the space after it. */
static bool take(struct parser *p, const char *token)
{
    if (!str_starts(p->at, token))
        return false;
    p->at += strlen(token);
    skip_space(p);
    return true;
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_.-/", c));
}

static char *take_name(struct parser *p)
{
    const char *start = p->at;
    while (is_name_char(*p->at))
        p->at++;
    char *name = arena_strndup(&p->raw.arena, start, (size_t)(p->at - start));
    skip_space(p);
    return name;
}

/* Consumes the text up to the end of the line, or a quoted one. */
static const char *take_rest(struct parser *p)
{
    struct attr_value value;
    if (*p->at == '"') {
        p->at = attr_parse(&p->raw.arena, p->at, ATTR_STRING, DTYPE_INVALID, &value, p->err);
        return p->at ? value.s : NULL;
    }
    const char *rest = arena_strdup(&p->raw.arena, p->at);
    p->at += strlen(p->at);
    return rest;
}

/* ---- edges ---- */

/* Parses edges, separated by commas, up to `end`. */
static int take_edges(struct parser *p, char end, const char *const **edges, int *n_edges)
{
    p->edges.n = 0;
    while (*p->at != end) {
        if (p->edges.n && !take(p, ","))
            return expected(p, end ? "',' or ')'" : "','");
        const char *start = p->at, *name = start + (*start == '^'); /* "n", "n:1" or "^n" */
        const char *at = name;
        while (is_name_char(*at))
            at++;
        if (at == name)
            return expected(p, "the name of a node");
        if (*at == ':' && isdigit((unsigned char)at[1]))
            at += 1 + strspn(at + 1, "0123456789");
        vec_push(&p->edges, arena_strndup(&p->raw.arena, start, (size_t)(at - start)));
        p->at = at;
        skip_space(p);
    }
    *n_edges = (int)p->edges.n;
    *edges = arena_copy(&p->raw.arena, p->edges.items, p->edges.n * sizeof *p->edges.items);
    return 0;
}

/* ---- tensors and their types ---- */

#define WORD "abcdefghijklmnopqrstuvwxyz0123456789"

/* Consumes "float32[2,?]". */
static bool take_type(struct parser *p, enum dtype *type, struct shape *shape)
{
    char text[256];
    size_t n = strspn(p->at, WORD);
    if (p->at[n] == '[') { /* without an end it is no type */
        n += strcspn(p->at + n, "]");
        n += p->at[n] == ']';
    }
    if (n >= sizeof text)
        return false;
    memcpy(text, p->at, n);
    text[n] = '\0';
    p->at += n;
    return shape_parse_typed(text, type, shape);
}

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

/* Parses the value of a tensor, of which type and shape may stand before parentheses. */
static int take_tensor(struct parser *p, enum dtype dtype, struct attr_value *value)
{
    struct tensor t = TENSOR_INIT, literal = TENSOR_INIT;
    struct shape shape;
    enum dtype type;
    const char *start = p->at;
    size_t n = strspn(start, WORD);
    bool announced = n && start[n] == '[';
    n += strcspn(start + n, "]");
    if (!announced || !start[n] || start[n + 1] != '(') {
        p->at = attr_parse(&p->raw.arena, start, ATTR_TENSOR, dtype, value, p->err);
        return p->err->code;
    }
    if (!take_type(p, &type, &shape) || !shape_is_known(&shape) || *p->at++ != '(') {
        p->at = start;
        return expected(p, "a type and a known shape");
    }
    bool given = *p->at != ')';
    if (given && !(p->at = tensor_parse(&literal, p->at, type, p->err)))
        return p->err->code;
    int code = expand(&t, type, &shape, given ? &literal : NULL, p->err);
    tensor_release(&literal);
    if (!code && *p->at != ')')
        code = expected(p, "')'");
    else if (!code && p->raw.arena.total > TEXT_BYTES_MAX)
        code = error_set(p->err, ERR_DATA, "constants of more than %zu GiB in all",
                         TEXT_BYTES_MAX >> 30);
    if (!code) {
        struct attr_value borrowed = attr_tensor(&t);
        *value = attr_copy(&p->raw.arena, &borrowed);
        p->at++;
    }
    tensor_release(&t);
    return code;
}

/* ---- attributes ---- */

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

/* Parses "name=value" or, for free attributes, "_name:kind=value". `dtype` is the element type of
 * tensors that do not state one. */
static int take_attr(struct parser *p, const struct op *op, enum dtype dtype, struct attr *attr)
{
    size_t n = 0;
    enum attr_kind kind = ATTR_NONE;
    while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_')
        n++;
    if (!n)
        return expected(p, "an attribute");
    attr->name = arena_strndup(&p->raw.arena, p->at, n);
    p->at += n;
    /* The kind is announced in the text, declared, or shown by the value. */
    if (*p->at == ':' && *attr->name == '_') {
        n = strcspn(p->at + 1, "=");
        if (attr_kind_parse(p->at + 1, n, &kind))
            p->at += 1 + n;
    }
    if (*p->at != '=')
        return expected(p, "'='");
    p->at++;
    if (kind == ATTR_NONE && *attr->name == '_') {
        const struct op_attr *mark = mark_find(attr->name);
        kind = mark ? mark->kind : guess_kind(p->at);
    } else if (kind == ATTR_NONE) {
        int index = op_find_attr(op, attr->name);
        if (index < 0)
            return op_unknown_attr(op, attr->name, p->err);
        kind = op->attrs[index].kind;
    }
    if (kind == ATTR_TENSOR)
        take_tensor(p, dtype, &attr->value);
    else
        p->at = attr_parse(&p->raw.arena, p->at, kind, dtype, &attr->value, p->err);
    if (p->err->code)
        return error_prefix(p->err, "attribute '%s': ", attr->name);
    skip_space(p);
    return 0;
}

static int take_attrs(struct parser *p, const struct op *op, struct raw_node *node)
{
    VEC(struct attr) attrs = VEC_INIT;
    enum dtype dtype = DTYPE_INVALID;
    while (*p->at != '}') {
        struct attr attr;
        if (attrs.n && !take(p, ","))
            return expected(p, "',' or '}'");
        if (take_attr(p, op, dtype, &attr))
            return error_prefix(p->err, "node '%s': %s: ", node->name, node->op);
        if (attr.value.kind == ATTR_TYPE && !strcmp(attr.name, "dtype"))
            dtype = attr.value.type;
        vec_push_in(&p->raw.arena, &attrs, attr);
    }
    take(p, "}");
    node->attrs = attrs.items;
    node->n_attrs = (int)attrs.n;
    return 0;
}

/* ---- nodes ---- */

static int take_op(struct parser *p, struct raw_node *node, const struct op **op)
{
    char *name = take_name(p), *dot = strchr(name, '.');
    if (!*name)
        return expected(p, "an op");
    if (dot) {
        if (!str_to_int64(dot + 1, &node->version) || node->version < 0)
            return error_set(p->err, ERR_DATA, "'%s' is not the version of an op", dot + 1);
        *dot = '\0';
    }
    node->op = name;
    *op = registry_find(p->registry, name);
    if (*op)
        return 0;
    registry_unknown(p->registry, name, p->err);
    return error_prefix(p->err, "node '%s': ", node->name);
}

/* Parses "@?REQUESTED @ASSIGNED"; either may be missing. */
static int take_devices(struct parser *p, struct raw_node *node)
{
    while (*p->at == '@') {
        bool asked = p->at[1] == '?';
        const char *start = p->at + 1 + asked;
        size_t n = strcspn(start, " \t");
        const char *device = p->last_device;
        struct device_name name;
        if (!device || strlen(device) != n || memcmp(device, start, n) != 0) {
            if (device_name_parse(&name, arena_strndup(&p->raw.arena, start, n), p->err))
                return p->err->code;
            device = p->last_device = device_name_text(&p->raw.arena, &name);
        }
        if (asked ? node->device != NULL : node->assigned != NULL)
            return expected(p, "one device");
        device_name_parse(&name, device, p->err);
        if (!asked && !device_name_is_full(&name))
            return error_set(p->err, ERR_DATA,
                             "node '%s': '@%s' lacks job, task, type or index of the device; to "
                             "ask for a device write '@?%s'",
                             node->name, device, device);
        *(asked ? &node->device : &node->assigned) = device;
        p->at = start + n;
        skip_space(p);
    }
    return 0;
}

/* Parses the types of the first outputs, which are inferred again and then compared. */
static int take_types(struct parser *p, struct raw_node *node)
{
    struct attr_value types = {.kind = ATTR_LIST_TYPE};
    const char *start = p->at, *end;
    do {
        struct attr_value item = {.kind = ATTR_TYPE};
        struct shape shape;
        end = p->at;
        if (!take_type(p, &item.type, &shape)) {
            p->at = end;
            return expected(p, "a type");
        }
        attr_add(&p->raw.arena, &types, &item);
        end = p->at;
        skip_space(p);
    } while (take(p, ","));
    node->types = types.types;
    node->n_types = types.n;
    node->types_text = arena_strndup(&p->raw.arena, start, (size_t)(end - start));
    return 0;
}

/* Sets ERR_DATA, and the line of the text, for a node whose types differ from those on its line.
 * Shapes may differ, as editing one changes the shapes of everything computed from it. */
static int check_types(struct parser *p, const struct graph *graph)
{
    p->line = 0;
    vec_each(said, &p->raw.nodes) {
        const struct node *node = graph_find(graph, said->name);
        bool right = said->n_types <= node->n_outputs;
        for (int k = 0; right && k < said->n_types; k++)
            right = said->types[k] == node->outputs[k].type;
        if (right)
            continue;
        struct str is = STR_INIT;
        graph_print_types(&is, node);
        p->line = said->text_line;
        error_set(p->err, ERR_DATA, "node '%s': is said to be %s, but is %s", said->name,
                  said->types_text, str_text(&is));
        str_release(&is);
        return p->err->code;
    }
    return 0;
}

/* Parses "FILE:LINE"; the file may be quoted. */
static int take_place(struct parser *p, struct raw_node *node)
{
    const char *colon = strrchr(p->at, ':');
    int64_t line;
    if (!colon || !str_to_int64(colon + 1, &line) || line < 0 || line > INT32_MAX)
        return expected(p, "FILE:LINE");
    size_t n = (size_t)(colon - p->at);
    if (*p->at == '"') {
        if (!(node->file = take_rest(p)))
            return p->err->code;
        if (p->at != colon)
            return expected(p, "':'");
    } else if (p->last_file && strlen(p->last_file) == n && !memcmp(p->last_file, p->at, n)) {
        node->file = p->last_file;
    } else {
        p->last_file = node->file = arena_strndup(&p->raw.arena, p->at, n);
    }
    node->line = (int)line;
    p->at = colon + strlen(colon);
    return 0;
}

/* ---- other lines ---- */

static int parse_line(struct parser *p)
{
    skip_space(p);
    if (!*p->at || *p->at == '#')
        return 0;
    char *word = take_name(p);
    if (!*word)
        return expected(p, "the name of a node");
    if (take(p, "=")) {
        struct raw_node node = {.name = word, .text_line = p->line};
        const struct op *op;
        if (take_op(p, &node, &op))
            return p->err->code;
        if (!take(p, "("))
            return expected(p, "'('");
        if (take_edges(p, ')', &node.inputs, &node.n_inputs))
            return p->err->code;
        take(p, ")");
        if (take(p, "{") && take_attrs(p, op, &node))
            return p->err->code;
        if (take_devices(p, &node))
            return p->err->code;
        if (take(p, ":") && take_types(p, &node))
            return p->err->code;
        if (take(p, "at ") && take_place(p, &node))
            return p->err->code;
        if (*p->at)
            return expected(p, "the end of the line");
        vec_push(&p->raw.nodes, node);
        return 0;
    }
    if (!strcmp(word, "entry") || !strcmp(word, "alias")) {
        /* Parse "NAME = edges" after "entry" or "alias". */
        bool alias = *word == 'a';
        struct raw_name name = {.name = take_name(p), .text_line = p->line};
        if (!*name.name)
            return expected(p, "a name");
        if (!take(p, "="))
            return expected(p, "'='");
        if (take_edges(p, '\0', &name.edges, &name.n_edges))
            return p->err->code;
        if (alias && name.n_edges != 1)
            return error_set(p->err, ERR_DATA, "alias '%s' must name one tensor", name.name);
        if (alias)
            vec_push(&p->raw.aliases, name);
        else
            vec_push(&p->raw.entries, name);
        return 0;
    }
    if (!strcmp(word, "made")) {
        const char *made = take_rest(p);
        if (!made)
            return p->err->code;
        vec_push(&p->raw.made, made);
        return 0;
    }
    if (!strcmp(word, "removed")) {
        const char *name = take_name(p);
        if (!*name)
            return expected(p, "a name");
        vec_push(&p->raw.removed, name);
        return 0;
    }
    if (!strcmp(word, "graph")) {
        int64_t version;
        if (!str_to_int64(p->at, &version) || version < 1)
            return expected(p, "the version of the text form");
        if (version > TEXT_VERSION)
            return error_set(p->err, ERR_PROTOCOL,
                             "the text form has version %" PRId64 "; this program knows version %d",
                             version, TEXT_VERSION);
        return 0;
    }
    return expected(p, "'='");
}

int graph_parse_text(const char *text, size_t n, const char *name, const struct registry *registry,
                     struct graph **graph, struct error *err)
{
    struct parser p = {.registry = registry, .err = err};
    struct graph *made = NULL;
    error_clear(err);
    char *copy = mem_try(n + 1);
    if (!copy)
        return error_set(err, ERR_OS, "%s: no memory for %zu bytes", name, n);
    memcpy(copy, text, n);
    int code = 0;
    for (char *start = copy, *end = copy + n, *stop; !code && start < end; start = stop + 1) {
        char *newline = memchr(start, '\n', (size_t)(end - start));
        stop = newline ? newline : end;
        *stop = '\0';
        if (stop > start && stop[-1] == '\r')
            stop[-1] = '\0';
        p.line++;
        p.at = start;
        if (memchr(start, '\0', (size_t)(stop - start) - (stop > start && !stop[-1])))
            code = error_set(err, ERR_DATA, "a NUL byte in a text");
        else
            code = parse_line(&p);
    }
    if (!code) {
        code = graph_assemble(registry, &p.raw, &made, err);
        p.line = p.raw.failed_line;
    }
    if (!code && (code = check_types(&p, made)) == 0)
        code = graph_check(made, err);
    if (code)
        graph_free(made);
    if (!code)
        *graph = made;
    else if (p.line)
        error_prefix(err, "%s:%d: ", name, p.line);
    else
        error_prefix(err, "%s: ", name);
    mem_free(copy);
    vec_release(&p.edges);
    raw_graph_release(&p.raw);
    return code;
}
