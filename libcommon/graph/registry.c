/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops by name, with their declarations parsed.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"
#include "graph/index_rule.h"

struct op_parser {
    struct arena *arena;
    const struct op_def *def;
    const char *at;
    struct error *err;
    VEC(struct op_arg) args;
    VEC(struct op_attr) attrs;
};

static int malformed(struct op_parser *p, const char *what)
{
    return error_set(p->err, ERR_INTERNAL, "declaration of %s: expected %s at '%.30s'",
                     p->def->name, what, p->at);
}

static void skip(struct op_parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool accept(struct op_parser *p, const char *token)
{
    skip(p);
    if (!str_starts(p->at, token))
        return false;
    p->at += strlen(token);
    return true;
}

/* Parses an identifier; NULL: there is none. */
static const char *word(struct op_parser *p)
{
    skip(p);
    size_t n = 0;
    while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_')
        n++;
    if (!n)
        return NULL;
    const char *text = arena_strndup(p->arena, p->at, n);
    p->at += n;
    return text;
}

static int find_attr(const struct op_parser *p, const char *name)
{
    size_t i = vec_find(&p->attrs, name);
    return i < p->attrs.n ? (int)i : -1;
}

/* Adds one name of a set of types. */
static bool type_class(const char *name, dtype_set *set)
{
    dtype_set types = dtype_set_of(name, strlen(name));
    *set |= types;
    return types;
}

/* Parses a kind, a set of types or a set of strings. */
static int parse_kind(struct op_parser *p, struct op_attr *attr)
{
    if (accept(p, "{")) {
        const char **strings = arena_array(p->arena, 16, sizeof *strings);
        int n = 0;
        do {
            skip(p);
            if (*p->at != '"' || n == 15)
                return malformed(p, "a quoted string");
            size_t length = strcspn(p->at + 1, "\"");
            strings[n++] = arena_strndup(p->arena, p->at + 1, length);
            p->at += length + 2;
        } while (accept(p, ","));
        attr->kind = ATTR_STRING;
        attr->strings = strings;
        return accept(p, "}") ? 0 : malformed(p, "'}'");
    }
    bool list = accept(p, "list(");
    const char *name = word(p);
    if (!name)
        return malformed(p, "a kind");
    skip(p); /* bool and string are kinds, too: they are types only in a set with others */
    if ((*p->at == '|' || !attr_kind_parse(name, strlen(name), &attr->kind) ||
         attr->kind == ATTR_TYPE) &&
        type_class(name, &attr->types)) {
        attr->kind = ATTR_TYPE;
        while (accept(p, "|"))
            if (!(name = word(p)) || !type_class(name, &attr->types))
                return malformed(p, "a type");
    } else if (attr->kind == ATTR_NONE) {
        return malformed(p, "a kind");
    }
    if (list) {
        if (attr->kind == ATTR_TENSOR || !accept(p, ")"))
            return malformed(p, "')'");
        attr->kind = (enum attr_kind)(attr->kind - ATTR_INT + ATTR_LIST_INT);
    }
    return 0;
}

static int parse_attr(struct op_parser *p)
{
    struct op_attr attr = {.name = word(p)};
    if (!attr.name || !accept(p, ":"))
        return malformed(p, "'name: kind'");
    int code = parse_kind(p, &attr);
    if (code)
        return code;
    if (accept(p, "=")) {
        struct error why = ERROR_INIT;
        const char *end =
            attr_parse(p->arena, p->at, attr.kind, DTYPE_INVALID, &attr.default_value, &why);
        if (!end)
            return malformed(p, "a default");
        p->at = end;
        attr.has_default = true;
    }
    if (accept(p, ">=")) {
        struct attr_value minimum;
        struct error why = ERROR_INIT;
        const char *end = attr_parse(p->arena, p->at, ATTR_INT, DTYPE_INVALID, &minimum, &why);
        if (!end)
            return malformed(p, "a minimum");
        p->at = end;
        attr.minimum = minimum.i;
        attr.has_minimum = true;
    }
    vec_push(&p->attrs, attr);
    return 0;
}

static int parse_arg(struct op_parser *p)
{
    struct op_arg arg = {.name = word(p), .type_attr = -1, .number_attr = -1, .type_list_attr = -1};
    if (!arg.name || !accept(p, ":"))
        return malformed(p, "'name: type'");
    arg.is_ref = accept(p, "Ref(");
    const char *name = word(p);
    if (!name)
        return malformed(p, "a type");
    if (accept(p, "*")) {
        arg.number_attr = find_attr(p, name);
        if (arg.number_attr < 0 || !(name = word(p)))
            return malformed(p, "'N*T' with N an attribute");
    }
    if (accept(p, "...")) {
        arg.type_list_attr = find_attr(p, name);
        if (arg.type_list_attr < 0)
            return malformed(p, "a list(type) attribute");
    } else if (!dtype_parse(name, &arg.type)) {
        arg.type_attr = find_attr(p, name);
        if (arg.type_attr < 0)
            return malformed(p, "a type or a type attribute");
    }
    if (arg.is_ref && !accept(p, ")"))
        return malformed(p, "')'");
    vec_push(&p->args, arg);
    return 0;
}

static int parse_items(struct op_parser *p, const char *text, int (*item)(struct op_parser *))
{
    int code = 0;
    if (!text || !*text)
        return 0;
    p->at = text;
    do
        code = item(p);
    while (!code && accept(p, ","));
    skip(p);
    return code ? code : *p->at ? malformed(p, "the end") : 0;
}

/* ---- rules (index_rule.h) ---- */

static int find_arg(const struct op_arg *args, int n, const char *name)
{
    int i = name ? (int)names_find(args, (size_t)n, name) : n;
    return i < n ? i : -1;
}

static bool parse_axis(struct op_parser *p, const struct op *op, struct rule_operand *o)
{
    skip(p);
    int letter = islower((unsigned char)*p->at) ? *p->at++ : 0, axis = RULE_RUN, input = 0;
    if (!accept(p, "...")) {
        if (letter)
            axis = accept(p, ":") ? -letter : accept(p, "^") ? toupper(letter) : letter;
        else if (accept(p, "-"))
            input = o->listing = find_arg(op->inputs, op->n_inputs, word(p));
        else {
            axis = RULE_NUMBER;
            input = accept(p, "<") ? find_arg(op->inputs, op->n_inputs, word(p)) : -1;
            input = accept(p, ">") ? input : -1;
        }
    }
    o->axes[o->n++] = (int8_t)axis;
    return input >= 0;
}

static int parse_operand(struct op_parser *p, const struct op *op, struct index_rule *rule,
                         bool is_result)
{
    struct rule_operand *o = &rule->operands[rule->n];
    const char *name = rule->n++ < RULE_OPERANDS_MAX ? word(p) : NULL;
    int at = is_result ? find_arg(op->outputs, op->n_outputs, name)
                       : find_arg(op->inputs, op->n_inputs, name);
    if (at < 0)
        return malformed(p, is_result ? "an output before" : "an input before");
    *o = (struct rule_operand){.argument = at, .is_shape = accept(p, "#")};
    if (!o->is_shape && !accept(p, "[]")) {
        bool fits = accept(p, "[");
        while (fits && o->n < RULE_AXES_MAX && (fits = parse_axis(p, op, o)) && accept(p, ","))
            continue;
        if (!fits || !accept(p, "]"))
            return malformed(p, "axes");
    }
    o->swapped = accept(p, "~") ? word(p) : NULL;
    o->has_format = accept(p, "@");
    if ((o->swapped && op_find_attr(op, o->swapped) < 0) ||
        (o->has_format && op_find_attr(op, "data_format") < 0))
        return malformed(p, "an attribute before");
    return 0;
}

static int parse_rule(struct op_parser *p, struct op *op)
{
    static const struct {
        const char *text;
        enum rule_sign sign;
    } signs[] = {{"=", RULE_IS},       {"+=", RULE_SUM},     {"mean=", RULE_MEAN},
                 {"*=", RULE_OTHER},   {"max=", RULE_OTHER}, {"min=", RULE_OTHER},
                 {"any=", RULE_OTHER}, {"all=", RULE_ALL}};
    struct index_rule *rule = arena_alloc(p->arena, sizeof *rule);
    int code = 0;
    p->at = p->def->rule;
    op->rule = rule;
    if (!strcmp(p->at, "each"))
        return 0;
    do
        code = parse_operand(p, op, rule, true);
    while (!code && accept(p, ","));
    rule->n_results = rule->n;
    for (size_t i = 0; !code && !rule->sign && i < sizeof signs / sizeof *signs; i++)
        if (accept(p, signs[i].text))
            rule->sign = signs[i].sign;
    for (bool first = true; !code && (first || *p->at); first = false) {
        code = rule->sign ? parse_operand(p, op, rule, false) : malformed(p, "a sign");
        skip(p);
    }
    return code;
}

/* Parses a declaration; everything is in the arena. ERR_INTERNAL. */
static int parse_op(struct arena *arena, const struct op_def *def, struct op *op, struct error *err)
{
    struct op_parser p = {.arena = arena, .def = def, .err = err};
    op->def = def;
    int code = parse_items(&p, def->attrs, parse_attr);
    if (!code && !(code = parse_items(&p, def->inputs, parse_arg))) {
        /* Type variables and counts that some input determines may be left out. */
        vec_each(arg, &p.args) {
            int indices[] = {arg->type_attr, arg->number_attr, arg->type_list_attr};
            for (int k = 0; k < 3; k++)
                if (indices[k] >= 0)
                    p.attrs.items[indices[k]].inferred = true;
        }
        op->n_inputs = (int)p.args.n;
        op->inputs = arena_copy(arena, p.args.items, p.args.n * sizeof *p.args.items);
        p.args.n = 0;
        code = parse_items(&p, def->outputs, parse_arg);
    }
    if (!code) {
        op->n_outputs = (int)p.args.n;
        op->outputs = arena_copy(arena, p.args.items, p.args.n * sizeof *p.args.items);
        op->n_attrs = (int)p.attrs.n;
        op->attrs = arena_copy(arena, p.attrs.items, p.attrs.n * sizeof *p.attrs.items);
    }
    vec_release(&p.args);
    vec_release(&p.attrs);
    if (!code && def->rule)
        code = parse_rule(&p, op);
    if (!code)
        op->rows = rule_rows(op);
    return code;
}

/* ---- the registry ---- */

struct registry {
    struct arena arena;
    VEC(const struct op *) ops; /* sorted by name */
    struct map names;           /* -> pointer */
};

struct registry *registry_new(void)
{
    return mem_alloc(sizeof(struct registry));
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    vec_release(&registry->ops);
    map_release(&registry->names);
    arena_release(&registry->arena);
    mem_free(registry);
}

static int compare_ops(const void *a, const void *b)
{
    return strcmp((*(const struct op *const *)a)->def->name,
                  (*(const struct op *const *)b)->def->name);
}

int registry_add(struct registry *registry, const struct op_def *const *ops, size_t n,
                 struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct op *op = arena_alloc(&registry->arena, sizeof *op);
        if (registry_find(registry, ops[i]->name))
            return error_set(err, ERR_INTERNAL, "op %s is declared twice", ops[i]->name);
        int code = parse_op(&registry->arena, ops[i], op, err);
        if (code)
            return code;
        map_put(&registry->names, ops[i]->name, (int64_t)(intptr_t)op);
        vec_push(&registry->ops, op);
    }
    if (registry->ops.n)
        qsort(registry->ops.items, registry->ops.n, sizeof *registry->ops.items, compare_ops);
    return 0;
}

const struct op *registry_find(const struct registry *registry, const char *name)
{
    int64_t value;
    return map_get(&registry->names, name, &value) ? (const struct op *)(intptr_t)value : NULL;
}

size_t registry_count(const struct registry *registry)
{
    return registry->ops.n;
}

const struct op *registry_at(const struct registry *registry, size_t index)
{
    return registry->ops.items[index];
}

const char *registry_nearest(const struct registry *registry, const char *name)
{
    const char **names = mem_array(registry->ops.n + 1, sizeof *names);
    for (size_t i = 0; i < registry->ops.n; i++)
        names[i] = registry->ops.items[i]->def->name;
    const char *nearest = str_nearest(name, names);
    mem_free(names);
    return nearest;
}

int registry_unknown(const struct registry *registry, const char *name, struct error *err)
{
    const char *nearest = registry_nearest(registry, name);
    return error_set(
        err, ERR_DATA, "unknown op '%s'%s%s%s; ops of your own come with --ops FILE.so", name,
        nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
}

int op_find_attr(const struct op *op, const char *name)
{
    int i = (int)names_find(op->attrs, (size_t)op->n_attrs, name);
    return i < op->n_attrs ? i : -1;
}

int op_unknown_attr(const struct op *op, const char *name, struct error *err)
{
    const char **names = mem_array((size_t)op->n_attrs + 1, sizeof *names);
    for (int i = 0; i < op->n_attrs; i++)
        names[i] = op->attrs[i].name;
    error_set(err, ERR_DATA, "there is no attribute '%s'%s", name, str_hint(name, names));
    mem_free(names);
    return err->code;
}
