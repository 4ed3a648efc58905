/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ops/case.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* "@mod M SCALE OFFSET": element i is (i * 7919 mod M) * SCALE + OFFSET, for large inputs. */
static int generate(struct tensor *t, const char *text, struct error *err)
{
    long long modulus;
    double scale, offset;
    if (sscanf(text, "@mod %lld %lf %lf", &modulus, &scale, &offset) != 3 || modulus < 1)
        return error_set(err, ERR_DATA, "expected '@mod M SCALE OFFSET'");
    for (int64_t i = 0; i < tensor_count(t); i++)
        tensor_set_float64(t, i, (double)(i * 7919 % modulus) * scale + offset);
    return 0;
}

/* "TYPE[SHAPE] LITERAL"; the literal may be left out when there are no elements. */
static int parse_tensor(const char *text, struct tensor *t, struct error *err)
{
    char head[128];
    int used = 0;
    enum dtype type;
    struct shape shape;
    if (sscanf(text, "%127s %n", head, &used) != 1 || !shape_parse_typed(head, &type, &shape) ||
        !shape_is_known(&shape))
        return error_set(err, ERR_DATA, "expected a type and a shape before '%.40s'", text);
    const char *literal = text + used;
    if (*literal == '@' || !shape_count(&shape)) {
        if (tensor_alloc(t, type, &shape, err))
            return err->code;
        return *literal == '@' ? generate(t, literal, err) : 0;
    }
    const char *end = tensor_parse(t, literal, type, err);
    if (!end)
        return err->code;
    if (*end || tensor_count(t) != shape_count(&shape))
        return error_set(err, ERR_DATA, "literal does not fit %s", head);
    t->shape = shape;
    return 0;
}

/* "EDGE TENSOR", or "TENSOR" alone; "any" as a tensor is not checked. */
static int parse_value(struct test_case *test, const char *text, bool has_edge,
                       struct case_value *value, struct error *err)
{
    memset(value, 0, sizeof *value);
    if (has_edge) {
        size_t n = strcspn(text, " ");
        value->edge = arena_strndup(&test->arena, text, n);
        text += n + strspn(text + n, " ");
    }
    if (!strcmp(text, "any")) {
        value->any = true;
        return 0;
    }
    return parse_tensor(text, &value->tensor, err);
}

static bool next_line(struct case_reader *reader)
{
    ssize_t n = getline(&reader->text, &reader->capacity, reader->file);
    if (n < 0)
        return false;
    reader->line++;
    if (n && reader->text[n - 1] == '\n')
        reader->text[n - 1] = 0;
    return true;
}

static int read_graph(struct case_reader *reader, struct test_case *test, struct error *err)
{
    struct str graph = STR_INIT;
    while (next_line(reader)) {
        if (!strcmp(reader->text, "end graph")) {
            test->graph = arena_strdup(&test->arena, str_text(&graph));
            str_release(&graph);
            return 0;
        }
        str_append(&graph, reader->text);
        str_append_char(&graph, '\n');
    }
    str_release(&graph);
    return error_set(err, ERR_DATA, "no 'end graph'");
}

static struct case_step *last_step(struct test_case *test)
{
    return test->steps.n ? &test->steps.items[test->steps.n - 1] : NULL;
}

static int parse_of_step(struct test_case *test, const char *key, const char *rest,
                         struct error *err)
{
    struct case_step *step = last_step(test);
    struct case_value value;
    if (!step)
        return error_set(err, ERR_DATA, "'%s' before the first 'step'", key);
    if (parse_value(test, rest, true, &value, err))
        return err->code;
    if (!strcmp(key, "feed"))
        vec_push(&step->feeds, value);
    else
        vec_push(&step->fetches, value);
    return 0;
}

static int parse_attr(struct test_case *test, const char *rest, struct error *err)
{
    const char *equals = strchr(rest, '=');
    if (!equals)
        return error_set(err, ERR_DATA, "expected 'attr NAME=VALUE'");
    struct case_attr attr = {arena_strndup(&test->arena, rest, (size_t)(equals - rest)),
                             arena_strdup(&test->arena, equals + 1)};
    vec_push(&test->attrs, attr);
    return 0;
}

static int parse_error(struct test_case *test, const char *rest)
{
    struct case_step *step = last_step(test);
    const char **error = step ? &step->error : &test->error;
    *error = arena_strdup(&test->arena, rest);
    return 0;
}

static int parse_field(struct case_reader *reader, struct test_case *test, const char *key,
                       const char *rest, struct error *err)
{
    struct case_value value;
    const char *copy = arena_strdup(&test->arena, rest);
    if (!strcmp(key, "op"))
        return test->ops = copy, 0;
    if (!strcmp(key, "attr"))
        return parse_attr(test, rest, err);
    if (!strcmp(key, "graph"))
        return read_graph(reader, test, err);
    if (!strcmp(key, "error"))
        return parse_error(test, rest);
    if (!strcmp(key, "nograd"))
        return test->nograd = copy, 0;
    if (!strcmp(key, "grad"))
        return test->grad = copy, 0;
    if (!strcmp(key, "grad2"))
        return test->grad2 = true, 0;
    if (!strcmp(key, "symmetric"))
        return test->symmetric = true, 0;
    if (!strcmp(key, "tol"))
        return test->tolerance = atof(rest), 0;
    if (!strcmp(key, "feed") || !strcmp(key, "fetch"))
        return parse_of_step(test, key, rest, err);
    if (!strcmp(key, "step")) {
        struct case_step step = {.targets = copy};
        vec_push(&test->steps, step);
        return 0;
    }
    if (strcmp(key, "in") && strcmp(key, "out"))
        return error_set(err, ERR_DATA, "unknown field '%s'", key);
    if (parse_value(test, rest, false, &value, err))
        return err->code;
    if (!strcmp(key, "in"))
        vec_push(&test->in, value);
    else
        vec_push(&test->out, value);
    return 0;
}

static int read_fields(struct case_reader *reader, struct test_case *test, struct error *err)
{
    char key[16];
    int used;
    while (next_line(reader)) {
        used = 0;
        if (sscanf(reader->text, "%15s %n", key, &used) < 1 || *reader->text == '#')
            continue;
        if (!strcmp(key, "end"))
            return 0;
        if (parse_field(reader, test, key, used ? reader->text + used : "", err))
            return err->code;
    }
    return error_set(err, ERR_DATA, "the case has no 'end'");
}

int case_read(struct case_reader *reader, struct test_case *test, bool *more, struct error *err)
{
    char name[256];
    *more = false;
    memset(test, 0, sizeof *test);
    test->tolerance = -1;
    test->file = reader->path;
    while (next_line(reader)) {
        if (!*reader->text || *reader->text == '#')
            continue;
        if (sscanf(reader->text, "case %255s", name) != 1)
            return error_set(err, ERR_DATA, "%s:%d: expected 'case NAME'", reader->path,
                             reader->line);
        test->name = arena_strdup(&test->arena, name);
        test->line = reader->line;
        *more = true;
        if (read_fields(reader, test, err))
            return error_prefix(err, "%s:%d: %s: ", reader->path, reader->line, name);
        return 0;
    }
    return 0;
}

static void release_values(struct case_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tensor_release(&values[i].tensor);
}

void case_release(struct test_case *test)
{
    release_values(test->in.items, test->in.n);
    release_values(test->out.items, test->out.n);
    for (size_t i = 0; i < test->steps.n; i++) {
        struct case_step *step = &test->steps.items[i];
        release_values(step->feeds.items, step->feeds.n);
        release_values(step->fetches.items, step->fetches.n);
        vec_release(&step->feeds);
        vec_release(&step->fetches);
    }
    vec_release(&test->attrs);
    vec_release(&test->in);
    vec_release(&test->out);
    vec_release(&test->steps);
    arena_release(&test->arena);
}

bool case_lists(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' '))
            return true;
    return false;
}
