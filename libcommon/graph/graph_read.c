/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a graph record. Unknown fields are ignored; a known field must have its type.
 */
#include <inttypes.h>
#include <string.h>

#include "graph/assemble.h"
#include "graph/graph_io.h"

struct graph_reader {
    const struct record *record;
    struct raw_graph raw;
    char *used;          /* by tensor of the record: whether an attribute uses it */
    const char *last[5]; /* texts, which are often the same for the next node */
    struct error *err;
};

static bool is_key(const msgpack_object *key, const char *name)
{
    return key->type == MSGPACK_OBJECT_STR && key->via.str.size == strlen(name) &&
           !memcmp(key->via.str.ptr, name, key->via.str.size);
}

static int malformed(struct graph_reader *r, const char *what)
{
    return error_set(r->err, ERR_DATA, "%s is malformed", what);
}

/* Returns NULL with the error set if the object is no text or contains a NUL. */
static const char *read_text(struct graph_reader *r, const msgpack_object *object, const char *what)
{
    if (object->type != MSGPACK_OBJECT_STR ||
        memchr(object->via.str.ptr, '\0', object->via.str.size)) {
        malformed(r, what);
        return NULL;
    }
    return arena_strndup(&r->raw.arena, object->via.str.ptr, object->via.str.size);
}

static const char *read_repeated(struct graph_reader *r, const msgpack_object *object,
                                 const char *what, const char **last)
{
    size_t n = object->via.str.size;
    if (object->type == MSGPACK_OBJECT_STR && *last && strlen(*last) == n &&
        !memcmp(*last, object->via.str.ptr, n))
        return *last;
    *last = read_text(r, object, what);
    return *last;
}

static bool read_type(const msgpack_object *object, enum dtype *type)
{
    char name[32];
    if (object->type != MSGPACK_OBJECT_STR || object->via.str.size >= sizeof name)
        return false;
    memcpy(name, object->via.str.ptr, object->via.str.size);
    name[object->via.str.size] = '\0';
    return dtype_parse(name, type);
}

/* ---- attributes ---- */

/* Reads a value whose kind is known, and is no list. */
static bool read_item(struct graph_reader *r, const msgpack_object *object, struct attr_value *item)
{
    struct shape *shape;
    switch (item->kind) {
    case ATTR_INT:
        return record_read_int(object, &item->i);
    case ATTR_FLOAT:
        return record_read_float(object, &item->f);
    case ATTR_BOOL:
        item->b = object->type == MSGPACK_OBJECT_BOOLEAN && object->via.boolean;
        return object->type == MSGPACK_OBJECT_BOOLEAN;
    case ATTR_STRING:
        item->s = read_text(r, object, "a string");
        return item->s;
    case ATTR_TYPE:
        return read_type(object, &item->type);
    default:
        item->shape = shape = arena_alloc(&r->raw.arena, sizeof *shape);
        *shape = SHAPE_ANY;
        return object->type == MSGPACK_OBJECT_NIL ||
               record_read_shape(object, SHAPE_UNKNOWN, shape);
    }
}

static bool read_list(struct graph_reader *r, const msgpack_object *object,
                      struct attr_value *value)
{
    bool fits = object->type == MSGPACK_OBJECT_ARRAY && object->via.array.size <= INT32_MAX;
    for (uint32_t i = 0; fits && i < object->via.array.size; i++) {
        struct attr_value item = {.kind = value->kind - (ATTR_LIST_INT - ATTR_INT)};
        fits = read_item(r, &object->via.array.ptr[i], &item);
        attr_add(&r->raw.arena, value, &item);
    }
    return fits;
}

static bool read_value(struct graph_reader *r, const msgpack_object *object,
                       struct attr_value *value)
{
    static const enum attr_kind kinds[] = {
        [MSGPACK_OBJECT_POSITIVE_INTEGER] = ATTR_INT, [MSGPACK_OBJECT_NEGATIVE_INTEGER] = ATTR_INT,
        [MSGPACK_OBJECT_FLOAT32] = ATTR_FLOAT,        [MSGPACK_OBJECT_FLOAT64] = ATTR_FLOAT,
        [MSGPACK_OBJECT_BOOLEAN] = ATTR_BOOL,         [MSGPACK_OBJECT_STR] = ATTR_STRING};
    int64_t index;
    bool is_known = (size_t)object->type < sizeof kinds / sizeof *kinds;
    *value = (struct attr_value){.kind = is_known ? kinds[object->type] : ATTR_NONE};
    if (value->kind)
        return read_item(r, object, value);
    /* The others are a map of one entry, kind and value. */
    if (object->type != MSGPACK_OBJECT_MAP || object->via.map.size != 1)
        return false;
    const msgpack_object *key = &object->via.map.ptr->key, *val = &object->via.map.ptr->val;
    if (key->type != MSGPACK_OBJECT_STR ||
        !attr_kind_parse(key->via.str.ptr, key->via.str.size, &value->kind) ||
        value->kind <= ATTR_STRING)
        return false;
    if (value->kind != ATTR_TENSOR)
        return value->kind < ATTR_LIST_INT ? read_item(r, val, value) : read_list(r, val, value);
    if (!record_read_int(val, &index) || index < 0 || index >= r->record->n_tensors ||
        r->used[index])
        return false; /* a second use would be a second copy: a small record could become a
                       * large graph */
    r->used[index] = 1;
    value->tensor = &r->record->tensors[index].tensor;
    return true;
}

/* ---- nodes and names ---- */

static int read_edges(struct graph_reader *r, const msgpack_object *object,
                      const char *const **edges, int *n_edges)
{
    if (object->type != MSGPACK_OBJECT_ARRAY)
        return malformed(r, "a list of edges");
    size_t n = object->via.array.size;
    const char **list = arena_array(&r->raw.arena, n, sizeof *list);
    for (size_t i = 0; i < n; i++)
        if (!(list[i] = read_text(r, &object->via.array.ptr[i], "an edge")))
            return r->err->code;
    *edges = list;
    *n_edges = (int)n;
    return 0;
}

static int read_node_field(struct graph_reader *r, const msgpack_object *key,
                           const msgpack_object *val, struct raw_node *node)
{
    static const char *const keys[][2] = {{"name", "'name'"},
                                          {"op", "'op'"},
                                          {"file", "'file'"},
                                          {"device", "'device'"},
                                          {"assigned", "'assigned'"}};
    const char **texts[] = {&node->name, &node->op, &node->file, &node->device, &node->assigned};
    int64_t line;
    for (int i = 0; i < 5; i++)
        if (is_key(key, keys[i][0]))
            return (*texts[i] = read_repeated(r, val, keys[i][1], &r->last[i])) ? 0 : r->err->code;
    if (is_key(key, "inputs"))
        return read_edges(r, val, &node->inputs, &node->n_inputs);
    if (is_key(key, "attrs")) {
        if (val->type != MSGPACK_OBJECT_MAP)
            return malformed(r, "'attrs'");
        size_t n = val->via.map.size;
        struct attr *attrs = arena_array(&r->raw.arena, n, sizeof *attrs);
        for (size_t i = 0; i < n; i++) {
            attrs[i].name = read_text(r, &val->via.map.ptr[i].key, "the name of an attribute");
            if (!attrs[i].name)
                return r->err->code;
            if (!read_value(r, &val->via.map.ptr[i].val, &attrs[i].value))
                return error_set(r->err, ERR_DATA, "attribute '%s' is malformed", attrs[i].name);
        }
        node->attrs = attrs;
        node->n_attrs = (int)n;
        return 0;
    }
    if (is_key(key, "version"))
        return record_read_int(val, &node->version) ? 0 : malformed(r, "'version'");
    if (!is_key(key, "line"))
        return 0;
    if (!record_read_int(val, &line) || line < 0 || line > INT32_MAX)
        return malformed(r, "'line'");
    node->line = (int)line;
    return 0;
}

static int read_nodes(struct graph_reader *r, const msgpack_object *object, const char *what,
                      void *to)
{
    (void)to;
    if (object->type != MSGPACK_OBJECT_ARRAY)
        return malformed(r, what);
    vec_reserve(&r->raw.nodes, object->via.array.size);
    for (size_t i = 0; i < object->via.array.size; i++) {
        const msgpack_object *item = &object->via.array.ptr[i];
        struct raw_node node = {0};
        bool is_map = item->type == MSGPACK_OBJECT_MAP;
        int code = is_map ? 0 : error_set(r->err, ERR_DATA, "is not a map");
        for (size_t k = 0; !code && k < item->via.map.size; k++)
            code = read_node_field(r, &item->via.map.ptr[k].key, &item->via.map.ptr[k].val, &node);
        if (!code && (!node.name || !node.op))
            code = error_set(r->err, ERR_DATA, "'%s' is missing", node.name ? "op" : "name");
        if (code)
            return node.name ? error_prefix(r->err, "node '%s': ", node.name)
                             : error_prefix(r->err, "node %zu: ", i);
        vec_push(&r->raw.nodes, node);
    }
    return 0;
}

static int read_named(struct graph_reader *r, const msgpack_object *object, const char *what,
                      void *to)
{
    raw_names *names = to;
    if (object->type != MSGPACK_OBJECT_MAP)
        return malformed(r, what);
    for (size_t i = 0; i < object->via.map.size; i++) {
        msgpack_object edges = object->via.map.ptr[i].val, alias = edges;
        if (names == &r->raw.aliases) /* of one edge, which is no list */
            edges = (msgpack_object){MSGPACK_OBJECT_ARRAY, {.array = {1, &alias}}};
        struct raw_name name = {.name = read_text(r, &object->via.map.ptr[i].key, what)};
        if (!name.name || read_edges(r, &edges, &name.edges, &name.n_edges))
            return r->err->code;
        vec_push(names, name);
    }
    return 0;
}

static int read_texts(struct graph_reader *r, const msgpack_object *object, const char *what,
                      void *to)
{
    raw_texts *texts = to;
    if (object->type != MSGPACK_OBJECT_ARRAY)
        return malformed(r, what);
    for (size_t i = 0; i < object->via.array.size; i++) {
        const char *text = read_text(r, &object->via.array.ptr[i], what);
        if (!text)
            return r->err->code;
        vec_push(texts, text);
    }
    return 0;
}

int graph_from_record(const struct registry *registry, const struct record *record,
                      struct graph **graph, struct error *err)
{
    struct graph_reader r = {.record = record, .err = err};
    const struct {
        const char *name, *what;
        int (*read)(struct graph_reader *r, const msgpack_object *object, const char *what,
                    void *to);
        void *to;
    } fields[] = {{"nodes", "'nodes'", read_nodes, NULL},
                  {"entries", "'entries'", read_named, &r.raw.entries},
                  {"aliases", "'aliases'", read_named, &r.raw.aliases},
                  {"made", "'made'", read_texts, &r.raw.made},
                  {"removed", "'removed'", read_texts, &r.raw.removed}};
    struct graph *made = NULL;
    int code = 0;
    error_clear(err);
    r.used = arena_alloc(&r.raw.arena, (size_t)record->n_tensors);
    for (size_t i = 0; !code && i < sizeof fields / sizeof *fields; i++) {
        const msgpack_object *object = record_field(&record->header, fields[i].name);
        if (object)
            code = fields[i].read(&r, object, fields[i].what, fields[i].to);
        else if (i == 0)
            code = error_set(err, ERR_DATA, "the graph has no 'nodes'");
    }
    if (!code)
        code = graph_assemble(registry, &r.raw, &made, err);
    if (!code && (code = graph_check(made, err)))
        graph_free(made);
    if (!code)
        *graph = made;
    raw_graph_release(&r.raw);
    return code;
}

/* ---- records of a stream ---- */

int graph_read(struct stream_reader *reader, const struct registry *registry, struct graph **graph,
               struct error *err)
{
    struct record record = {0};
    bool more;
    int code = stream_read(reader, &record, &more, err);
    if (!code && !more)
        code = error_set(err, ERR_NOINPUT, "%s: there is no graph", stream_reader_name(reader));
    else if (!code) {
        if (record.kind != RECORD_GRAPH)
            code = error_set(err, ERR_DATA, "a graph is expected, not a '%s' record",
                             record_kind_name(record.kind));
        else
            code = graph_from_record(registry, &record, graph, err);
        if (code)
            error_prefix(err, "%s: ", stream_reader_name(reader));
    }
    record_release(&record);
    return code;
}

int graph_read_whole(struct stream_reader *reader, const struct registry *registry,
                     struct graph **graph, struct error *err)
{
    struct record record = {0};
    bool more = false;
    int code = graph_read(reader, registry, graph, err);
    if (code)
        return code;
    code = stream_read(reader, &record, &more, err);
    if (!code && more)
        code = error_set(err, ERR_DATA, "%s: one graph is expected, but a '%s' record follows",
                         stream_reader_name(reader), record_kind_name(record.kind));
    if (code) {
        graph_free(*graph);
        *graph = NULL;
    }
    record_release(&record);
    return code;
}
