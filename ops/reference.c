/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reference.h"

#include <string.h>

#include "ops/ops.h"

/* Splits lists of arguments and attributes at commas outside of brackets and braces. */
static const char *next_item(const char *list, const char **item, size_t *n)
{
    int depth = 0;
    while (*list == ' ' || *list == ',')
        list++;
    *item = list;
    for (; *list && (*list != ',' || depth); list++)
        depth += strchr("([{", *list) ? 1 : strchr(")]}", *list) ? -1 : 0;
    *n = (size_t)(list - *item);
    return *n ? list : NULL;
}

void reference_list(struct str *out)
{
    size_t widest = 0;
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        size_t n = strlen(registry_at(ops_registry(), i)->def->name);
        widest = n > widest ? n : widest;
    }
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        const struct op_def *def = registry_at(ops_registry(), i)->def;
        str_printf(out, "%-*s  %s\n", (int)widest, def->name, def->doc ? def->doc : "");
    }
}

static void append_gradient(struct str *out, const struct op_def *def)
{
    const char *kind = def->flags & OP_CONTROL_FLOW  ? "by the structure of the graph"
                       : def->flags & OP_NO_GRADIENT ? "none, it contributes nothing"
                                                     : "none, asking for it is an error";
    str_printf(out, "%s%s%s\n", def->gradient ? "yes" : kind, def->no_gradient ? ": " : "",
               def->no_gradient ? def->no_gradient : "");
}

/* Adds the op's other declared traits, for those who plan or rewrite graphs. */
static void append_traits(struct str *out, const struct op_def *def, const char *before)
{
    static const struct {
        unsigned flag;
        const char *text;
    } traits[] = {{OP_COMMUTATIVE, "commutative"},
                  {OP_INVOLUTION, "undoes itself"},
                  {OP_IDEMPOTENT, "idempotent"},
                  {OP_SUMS, "sums its inputs"},
                  {OP_VIEW, "the elements of its input"},
                  {OP_SHAPE_ONLY, "looks at shapes only"},
                  {OP_RANDOM, "random"},
                  {OP_ASYNC, "may wait for others"},
                  {OP_SHAPED_BY_DATA, "data decide a shape"},
                  {OP_FED, "may be fed"},
                  {OP_OVERWRITES, "overwrites its variable"}};
    const char *separator = before;
    for (size_t i = 0; i < sizeof traits / sizeof *traits; i++) {
        if (!(def->flags & traits[i].flag))
            continue;
        str_printf(out, "%s%s", separator, traits[i].text);
        separator = ", ";
    }
    if (separator != before)
        str_append(out, "\n");
}

/* Calls `each` for every kernel of an op. */
static void each_kernel(const struct op *op, void (*each)(struct str *, const struct kernel_row *),
                        struct str *out)
{
    const struct kernel_table *table = ops_kernels();
    for (size_t i = 0; i < table->n; i++)
        if (!strcmp(table->rows[i].op, op->def->name))
            each(out, &table->rows[i]);
}

static void append_items(struct str *out, const char *title, const char *list)
{
    const char *item;
    size_t n;
    while (list && (list = next_item(list, &item, &n))) {
        str_printf(out, "%-12s%.*s\n", title, (int)n, item);
        title = "";
    }
}

/* Rows that ops/kernels_cpu.def lists as WIDENED or BOUNDED. */
static bool is_widened(const struct kernel_row *row)
{
    return !strncmp(row->code, "widened_", 8) || !strncmp(row->code, "bounded_", 8);
}

static void show_kernel(struct str *out, const struct kernel_row *row)
{
    str_printf(out, "%-12s%s %s%s\n", "kernel", row->device, row->types ? row->types : "any type",
               is_widened(row) ? ", by a wider type" : "");
}

void reference_show(struct str *out, const struct op *op)
{
    /* "MatMul(a, b) -> product" */
    str_printf(out, "%s(", op->def->name);
    for (int i = 0; i < op->n_inputs; i++)
        str_printf(out, "%s%s", i ? ", " : "", op->inputs[i].name);
    str_append(out, ")");
    for (int i = 0; i < op->n_outputs; i++)
        str_printf(out, "%s%s", i ? ", " : " -> ", op->outputs[i].name);
    str_printf(out, "\n            %s\n", op->def->doc ? op->def->doc : "");
    if (op->def->detail) {
        /* Wrapped at 100 columns, indented like the items. */
        const char *text = op->def->detail;
        size_t column = 0;
        while (*text) {
            size_t n = strcspn(text, " \n");
            if (!column || column + n > 86) {
                str_printf(out, "%s%12s", column ? "\n" : "", "");
                column = 0;
            }
            str_printf(out, "%s%.*s", column ? " " : "", (int)n, text);
            column += n + 1;
            text += n + strspn(text + n, " \n");
        }
        str_append(out, "\n");
    }
    append_items(out, "inputs", op->def->inputs);
    append_items(out, "outputs", op->def->outputs);
    append_items(out, "attributes", op->def->attrs);
    append_items(out, "axes", op->def->rule);
    if (op->def->flags & OP_STATEFUL)
        str_printf(out, "%-12s%s\n", "state", "has state or an effect: never merged or folded");
    append_traits(out, op->def, "traits      ");
    str_append(out, "gradient    ");
    append_gradient(out, op->def);
    each_kernel(op, show_kernel, out);
}

/* ---- JSON ---- */

static void append_json(struct str *out, const char *text, size_t n)
{
    str_append_char(out, '"');
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"' || text[i] == '\\')
            str_append_char(out, '\\');
        str_append_char(out, text[i] == '\n' ? ' ' : text[i]);
    }
    str_append_char(out, '"');
}

/* Prints "name: type" as {"name":...,"type":...}. */
static void append_json_items(struct str *out, const char *key, const char *list)
{
    const char *item, *separator = "";
    size_t n;
    str_printf(out, ",\"%s\":[", key);
    while (list && (list = next_item(list, &item, &n))) {
        size_t name = strcspn(item, ":"), rest = name + 1 + strspn(item + name + 1, " ");
        str_printf(out, "%s{\"name\":", separator);
        append_json(out, item, name);
        str_append(out, ",\"type\":");
        append_json(out, item + rest, n - rest);
        str_append(out, "}");
        separator = ",";
    }
    str_append(out, "]");
}

static void json_kernel(struct str *out, const struct kernel_row *row)
{
    str_printf(out, "%s{\"device\":\"%s\",\"types\":", out->data[out->n - 1] == '[' ? "" : ",",
               row->device);
    if (row->types)
        append_json(out, row->types, strlen(row->types));
    else
        str_append(out, "null");
    str_append(out, "}");
}

void reference_json(struct str *out, const struct op *op)
{
    const struct op_def *def = op->def;
    str_append(out, "{\"name\":");
    append_json(out, def->name, strlen(def->name));
    str_append(out, ",\"doc\":");
    append_json(out, def->doc ? def->doc : "", def->doc ? strlen(def->doc) : 0);
    if (def->detail) {
        str_append(out, ",\"detail\":");
        append_json(out, def->detail, strlen(def->detail));
    }
    append_json_items(out, "inputs", def->inputs);
    append_json_items(out, "outputs", def->outputs);
    append_json_items(out, "attributes", def->attrs);
    str_printf(out, ",\"stateful\":%s,\"gradient\":%s,\"version\":%d,\"kernels\":[",
               def->flags & OP_STATEFUL ? "true" : "false",
               def->gradient || def->flags & OP_CONTROL_FLOW ? "true" : "false", def->version);
    each_kernel(op, json_kernel, out);
    str_append(out, "]}\n");
}

/* ---- types ---- */

void reference_types(struct str *out)
{
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        const struct op *op = registry_at(ops_registry(), i);
        for (int k = 0; k < op->n_attrs; k++)
            if (op->attrs[k].kind == ATTR_TYPE) {
                dtype_set types = kernel_types(ops_kernels(), op, &op->attrs[k], "CPU");
                str_printf(out, "%s %s", op->def->name, op->attrs[k].name);
                for (int type = 1; type < 32; type++)
                    if (types & DTYPE_BIT(type))
                        str_printf(out, " %s", dtype_name((enum dtype)type));
                str_append(out, "\n");
            }
    }
}

/* ---- docs/ops.md ---- */

static void markdown_items(struct str *out, const char *title, const char *list)
{
    const char *item, *separator = "";
    size_t n;
    if (!list)
        return;
    str_printf(out, "- %s: ", title);
    while ((list = next_item(list, &item, &n))) {
        str_printf(out, "%s`%.*s`", separator, (int)n, item);
        separator = ", ";
    }
    str_append(out, "\n");
}

static void markdown_kernel(struct str *out, const struct kernel_row *row)
{
    str_printf(out, "- kernel: %s%s%s%s%s\n", row->device, row->types ? " `" : ", any type",
               row->types ? row->types : "", row->types ? "`" : "",
               is_widened(row) ? ", by a wider type" : "");
}

#define QUOTED_MAX 80

/* Wraps at 100 columns; list items stay indented. */
static void append_wrapped(struct str *out, const char *line)
{
    size_t indent = str_starts(line, "- ") ? 2 : 0, column = 0;
    bool quoted = false;
    while (*line) {
        /* Finds a blank outside of backquotes; within them, only where the line is full. */
        size_t n = 0;
        for (; line[n] && ((quoted && n < QUOTED_MAX) || line[n] != ' '); n++)
            quoted ^= line[n] == '`';
        bool wraps = column > indent && column + 1 + n > 100;
        if (wraps)
            str_printf(out, "\n%*s", (int)indent, "");
        else if (column)
            str_append(out, " ");
        column = wraps ? indent + n : column + (column > 0) + n;
        str_append_bytes(out, line, n);
        line += n + strspn(line + n, " ");
    }
    str_append(out, "\n");
}

void reference_markdown(struct str *out)
{
    struct str text = STR_INIT;
    str_append(out, "# Ops\n\nWritten by `make docs` from the declarations in `ops/`; "
                    "`tf-op show NAME` prints the same of one op.\n"
                    "How to read types and attributes: `libcommon/graph/op.h`.\n");
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        const struct op *op = registry_at(ops_registry(), i);
        const struct op_def *def = op->def;
        str_printf(&text, "\n## %s\n\n%s\n", def->name, def->doc ? def->doc : "");
        if (def->detail)
            str_printf(&text, "%s\n", def->detail);
        str_append(&text, "\n");
        markdown_items(&text, "inputs", def->inputs);
        markdown_items(&text, "outputs", def->outputs);
        markdown_items(&text, "attributes", def->attrs);
        markdown_items(&text, "axes", def->rule);
        if (def->flags & OP_STATEFUL)
            str_append(&text, "- has state or an effect\n");
        append_traits(&text, def, "- traits: ");
        str_append(&text, "- gradient: ");
        append_gradient(&text, def);
        each_kernel(op, markdown_kernel, &text);
    }
    for (char *rest = text.data, *line; *rest && (line = strsep(&rest, "\n")) && rest;)
        append_wrapped(out, line);
    str_release(&text);
}
