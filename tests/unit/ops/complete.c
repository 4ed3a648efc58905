/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of each op (ops/oplist.def) for forgotten steps of adding it: documentation, shapes, cost,
 * a gradient or the reason why there is none, kernels for the declared types, a row of each device,
 * a case.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unit.h"

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "lib/kernel_types.h"
#include "ops/math/elementwise_ops.h"
#include "ops/ops.h"

#define CASES "tests/data/golden/*.txt"

/* ---- which ops have cases ---- */

struct cases {
    struct map ops;
    VEC(char *) texts; /* the memory of the keys */
};

/* "op A B": cases about these ops. "x = A(y)": a graph with such a node. */
static void read_line(struct cases *cases, char *line)
{
    char *rest, *equals = strstr(line, " = ");
    if (!strncmp(line, "op ", 3)) {
        for (char *word = strtok_r(line + 3, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
            map_put(&cases->ops, word, 1);
    } else if (equals && equals[3 + strcspn(equals + 3, " (")] == '(') {
        equals[3 + strcspn(equals + 3, "(")] = '\0';
        map_put(&cases->ops, equals + 3, 1);
    }
}

static void read_file(struct cases *cases, const char *path)
{
    FILE *file = fopen(path, "r");
    char *text, *rest;
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t n = (size_t)ftell(file);
    rewind(file);
    text = calloc(n + 1, 1);
    assert_int_equal(fread(text, 1, n, file), n);
    fclose(file);
    vec_push(&cases->texts, text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_line(cases, line);
}

static void read_cases(struct cases *cases)
{
    glob_t files;
    memset(cases, 0, sizeof *cases);
    assert_int_equal(glob(CASES, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++)
        read_file(cases, files.gl_pathv[i]);
    globfree(&files);
}

static void release_cases(struct cases *cases)
{
    map_release(&cases->ops);
    for (size_t i = 0; i < cases->texts.n; i++)
        free(cases->texts.items[i]);
    vec_release(&cases->texts);
}

/* ---- missing parts ---- */

static bool is_sentence(const char *text)
{
    return text && *text && text[strlen(text) - 1] == '.';
}

/* Goes on to the next combination of allowed types; false: that was the last. */
static bool next_types(const struct op *op, struct attr *attrs)
{
    for (int i = 0; i < op->n_attrs; i++) {
        if (op->attrs[i].kind != ATTR_TYPE)
            continue;
        do
            attrs[i].value.type++;
        while (attrs[i].value.type < 32 && !(op->attrs[i].types & DTYPE_BIT(attrs[i].value.type)));
        if (attrs[i].value.type < 32)
            return true;
        attrs[i].value.type = (enum dtype)__builtin_ctz(op->attrs[i].types);
    }
    return false;
}

/* Names the combinations of an op's types that no row of the device takes. */
static void find_missing_types(const struct op *op, const struct kernel_table *table,
                               const char *device, struct str *missing)
{
    struct attr attrs[32];
    struct node node = {.op = op, .attrs = attrs, .n_attrs = op->n_attrs};
    assert_true(op->n_attrs <= 32);
    memset(attrs, 0, sizeof attrs);
    for (int i = 0; i < op->n_attrs; i++) {
        bool is_type = op->attrs[i].kind == ATTR_TYPE;
        attrs[i].name = op->attrs[i].name;
        attrs[i].value.kind = op->attrs[i].kind;
        if (is_type)
            attrs[i].value = attr_type((enum dtype)__builtin_ctz(op->attrs[i].types));
    }
    do {
        if (kernel_find(table, &node, device))
            continue;
        str_append(missing, " kernel");
        for (int i = 0; i < op->n_attrs; i++)
            if (op->attrs[i].kind == ATTR_TYPE)
                str_printf(missing, ":%s=%s", attrs[i].name, dtype_name(attrs[i].value.type));
    } while (next_types(op, attrs));
}

/* Returns false if only other devices have a kernel for the op: then one is missing here, unless
 * merely the CPU's rows fuse others to it. */
static bool has_row(const struct op *op, const struct kernel_table *table, const char *device)
{
    bool is_fused = false, is_fused_there = false;
    for (size_t i = 0; i < table->n; i++) {
        const struct kernel_row *row = &table->rows[i];
        bool is_there = !strcmp(row->device, device);
        if (is_there && !strcmp(row->op, op->def->name))
            return true;
        const char *const with[] = {row->with_epilogue, row->with_sum, row->with_product};
        bool fuses = false;
        for (size_t k = 0; k < sizeof with / sizeof *with; k++)
            fuses |= with[k] && !strcmp(with[k], op->def->name);
        is_fused |= fuses;
        is_fused_there |= fuses && is_there;
    }
    return is_fused && !is_fused_there;
}

/* Adds arguments that rows name but the op lacks. */
static void find_unknown(const struct op_arg *args, int n, const char *names, struct str *missing)
{
    for (size_t length; names && *names != '*' && *names;
         names += length + (names[length] == ' ')) {
        bool known = false;
        length = strcspn(names, " ");
        for (int i = 0; i < n; i++)
            known |= strlen(args[i].name) == length && !memcmp(args[i].name, names, length);
        if (!known)
            str_printf(missing, " argument:%.*s", (int)length, names);
    }
}

static void find_unknown_arguments(const struct op *op, const struct kernel_table *table,
                                   struct str *missing)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct kernel_row *row = &table->rows[i];
        if (strcmp(row->op, op->def->name) != 0)
            continue;
        find_unknown(op->inputs, op->n_inputs, row->host_inputs, missing);
        find_unknown(op->outputs, op->n_outputs, row->host_outputs, missing);
    }
}

/* Returns whether a node of the op can be of float32, and of a 16-bit float instead. */
static bool can_be_half(const struct op *op)
{
    for (int i = 0; i < op->n_attrs; i++)
        if ((op->attrs[i].kind == ATTR_TYPE || op->attrs[i].kind == ATTR_LIST_TYPE) &&
            op->attrs[i].types & DTYPE_BIT(FLOAT32) && op->attrs[i].types & DTYPE_BIT(BFLOAT16))
            return true;
    return false;
}

static void find_missing(const struct op *op, const struct cases *cases, struct str *missing)
{
    const struct op_def *def = op->def;
    int64_t ignored;
    if (!is_sentence(def->doc))
        str_append(missing, " doc");
    if (op->n_outputs && !def->shape)
        str_append(missing, " shape");
    if (!def->cost && !def->rule)
        str_append(missing, " cost");
    if (!def->gradient && !def->no_gradient)
        str_append(missing, " gradient");
    if (!def->half && can_be_half(op))
        str_append(missing, " half");
    if (!map_get(&cases->ops, def->name, &ignored) && !(def->flags & OP_CONTROL_FLOW))
        str_append(missing, " case");
    find_missing_types(op, ops_kernels(), "CPU", missing);
    if (!has_row(op, ops_kernels(), "CUDA"))
        str_append(missing, " row:CUDA");
    find_unknown_arguments(op, ops_kernels(), missing);
}

static void test_nothing_is_missing(void **state)
{
    (void)state;
    struct str all = STR_INIT;
    struct cases cases;
    read_cases(&cases);
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        const struct op *op = registry_at(ops_registry(), i);
        struct str missing = STR_INIT;
        find_missing(op, &cases, &missing);
        if (missing.n)
            str_printf(&all, "# %s:%s\n", op->def->name, str_text(&missing));
        str_release(&missing);
    }
    fputs(str_text(&all), stdout); /* too long for a message of cmocka */
    if (all.n)
        fail_msg("ops are not complete");
    release_cases(&cases);
}

static void test_what_is_missing_is_named(void **state)
{
    (void)state;
    static const struct op_def bare = {.name = "Bare",
                                       .inputs = "x: T, i: I",
                                       .outputs = "y: T",
                                       .attrs = "T: bool|int8, I: int32|int64"};
    const struct op_def *ops[] = {&bare};
    struct registry *registry = registry_new();
    struct str missing = STR_INIT;
    struct cases none = {.texts.n = 0};
    struct error err = ERROR_INIT;
    assert_int_equal(registry_add(registry, ops, 1, &err), 0);
    find_missing(registry_find(registry, "Bare"), &none, &missing);
    assert_string_equal(str_text(&missing),
                        " doc shape cost gradient case kernel:T=int8:I=int32 kernel:T=bool:I=int32 "
                        "kernel:T=int8:I=int64 kernel:T=bool:I=int64 row:CUDA");
    str_release(&missing);
    registry_free(registry);
}

static void test_unknown_arguments_are_named(void **state)
{
    (void)state;
    const struct kernel_row rows[] = {
        {.op = "Slice", .host_inputs = "begin sizes", .host_outputs = "out"},
        {.op = "Pad", .host_inputs = "unheard"},
        {.op = "Slice", .host_inputs = "*"},
    };
    struct str missing = STR_INIT;
    find_unknown_arguments(registry_find(ops_registry(), "Slice"),
                           &(struct kernel_table){rows, sizeof rows / sizeof *rows}, &missing);
    assert_string_equal(str_text(&missing), " argument:sizes argument:out");
    str_release(&missing);
}

/* Each op in a list of elementwise_ops.h has a kernel for each of its declared types, on each
 * device. */
static void test_lists_are_of_the_declared_types(void **state)
{
#define NAME(op, ...) #op,
    static const char *const names[] = {OPS_OF_ONE(NAME) OPS_OF_TWO(NAME) ORDER_OPS(NAME)
                                            LOGIC_OPS(NAME)};
    struct str all = STR_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int k = 0; k < 2; k++) {
            struct str missing = STR_INIT;
            const char *device = k ? "CUDA" : "CPU";
            find_missing_types(registry_find(ops_registry(), names[i]), ops_kernels(), device,
                               &missing);
            if (missing.n)
                str_printf(&all, "%s on %s:%s\n", names[i], device, str_text(&missing));
            str_release(&missing);
        }
    assert_string_equal(str_text(&all), "");
    str_release(&all);
}

/* Returns how many inputs the op needs for its declarations to make sense. */
static int inputs_named(const struct op_def *def)
{
    static const int of_same[] = {[SAME_ALWAYS] = 1,  [SAME_TYPE] = 1,     [SAME_ALONE] = 1,
                                  [SAME_OPERAND] = 2, [SAME_ARGUMENT] = 2, [SAME_EMPTY] = 2};
    const int wanted[] = {of_same[def->identity.when],
                          def->descent.gradient ? def->descent.gradient + 1 : 0,
                          def->descent.rate ? def->descent.rate + 1 : 0,
                          def->by_reciprocal || def->flags & (OP_COMMUTATIVE | OP_PERMUTES) ? 2 : 0,
                          def->flags & (OP_VIEW | OP_CHECKS | OP_SHAPE_ONLY) ? 1 : 0,
                          def->flags & OP_OVERWRITES ? 2 : 0};
    int most = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        most = wanted[i] > most ? wanted[i] : most;
    return most;
}

/* A gradient and the reason why there is none exclude each other; so do other declarations. */
static void test_declarations_do_not_contradict_themselves(void **state)
{
    (void)state;
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        const struct op *op = registry_at(ops_registry(), i);
        const struct op_def *def = op->def;
        bool has = def->gradient != NULL;
        if (has && (def->no_gradient || def->flags & OP_NO_GRADIENT))
            fail_msg("%s has a gradient and says that it has none", def->name);
        if (def->identity.when && !def->identity.says)
            fail_msg("%s does not say when it is its input", def->name);
        if (def->flags & OP_PASSES && !(def->flags & OP_VIEW))
            fail_msg("%s passes its input on, but is no view", def->name);
        if (inputs_named(def) > op->n_inputs)
            fail_msg("%s speaks of %d inputs, but has %d", def->name, inputs_named(def),
                     op->n_inputs);
        if (def->flags & OP_RANDOM &&
            (op_find_attr(op, "seed") < 0 || op_find_attr(op, "seed2") < 0))
            fail_msg("%s is random, but has no seeds", def->name);
        if (def->by_reciprocal && !registry_find(ops_registry(), def->by_reciprocal))
            fail_msg("%s: there is no op %s", def->name, def->by_reciprocal);
        if (op->n_inputs < 32 && def->keeps >> op->n_inputs)
            fail_msg("%s keeps an argument that it does not have", def->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_missing),
        cmocka_unit_test(test_what_is_missing_is_named),
        cmocka_unit_test(test_unknown_arguments_are_named),
        cmocka_unit_test(test_lists_are_of_the_declared_types),
        cmocka_unit_test(test_declarations_do_not_contradict_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
