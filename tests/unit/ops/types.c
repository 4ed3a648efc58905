/* SPDX-License-Identifier: Apache-2.0
 *
 * The types that ops compute in, compared with TensorFlow's (tests/data): nearly all real ones, and
 * an op's reference mentions each that is missing.
 */
#include <stdio.h>
#include <string.h>

#include "exec/device/kernel.h"
#include "lib/unit.h"
#include "ops/ops.h"

#define DECLARED "tests/data/tensorflow_types.txt"
#define LEAST_SHARE 0.95 /* of TensorFlow's real types */

struct counts {
    int declared, computed; /* real types */
    int lines;
};

/* The words for a type in a reference, one of which must occur. */
static bool speaks_of(const char *detail, enum dtype type)
{
    static const struct {
        dtype_set types;
        const char *word;
    } words[] = {{DTYPES_INTEGER, "integers"},
                 {DTYPES_FLOATING, "floats"},
                 {DTYPE_BIT(COMPLEX64), "complex numbers"},
                 {DTYPE_BIT(BOOL), "booleans"},
                 {DTYPE_BIT(STRING), "strings"},
                 {DTYPE_BIT(STRING), "Strings"},
                 {DTYPE_BIT(RESOURCE), "resources"}};
    if (strstr(detail, dtype_name(type)))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].types & DTYPE_BIT(type) && strstr(detail, words[i].word))
            return true;
    return false;
}

static void check(const struct op *op, const struct op_attr *attr, dtype_set declared,
                  struct counts *counts)
{
    dtype_set computed = kernel_types(ops_kernels(), op, attr, "CPU");
    const char *detail = op->def->detail ? op->def->detail : "";
    counts->declared += __builtin_popcount(declared & DTYPES_REAL);
    counts->computed += __builtin_popcount(declared & computed & DTYPES_REAL);
    for (int type = 1; type < 32; type++)
        if (declared & ~computed & DTYPE_BIT(type) && !speaks_of(detail, (enum dtype)type))
            fail_msg("%s does not compute in %s=%s, and does not say why", op->def->name,
                     attr->name, dtype_name((enum dtype)type));
}

static dtype_set read_types(char *rest)
{
    dtype_set types = 0;
    for (char *word; (word = strtok_r(rest, " \n", &rest));) {
        dtype_set more = dtype_set_of(word, strlen(word));
        if (!more)
            fail_msg(DECLARED ": no type '%s'", word);
        types |= more;
    }
    return types;
}

/* "Add T float16 ..."; ops and attributes that we lack are skipped. */
static void read_line(char *line, struct counts *counts)
{
    char *rest, *name = strtok_r(line, " \n", &rest), *attr = strtok_r(NULL, " \n", &rest);
    const struct op *op = registry_find(ops_registry(), name);
    int i = op && attr ? op_find_attr(op, attr) : -1;
    dtype_set types = read_types(rest);
    counts->lines++;
    if (i >= 0 && op->attrs[i].kind == ATTR_TYPE)
        check(op, &op->attrs[i], types, counts);
}

static void test_types_are_those_of_tensorflow(void **state)
{
    (void)state;
    struct counts counts = {0};
    char line[1024];
    FILE *file = fopen(DECLARED, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (*line != '#')
            read_line(line, &counts);
    fclose(file);
    assert_true(counts.lines > 150);
    printf("# %d of %d real types that TensorFlow declares\n", counts.computed, counts.declared);
    if (counts.computed < LEAST_SHARE * counts.declared)
        fail_msg("only %d of %d real types that TensorFlow declares are computed", counts.computed,
                 counts.declared);
}

static void test_what_is_not_said_is_found(void **state)
{
    (void)state;
    assert_true(speaks_of("Not of complex numbers.", COMPLEX64));
    assert_true(speaks_of("Indices are not of int16.", INT16));
    assert_false(speaks_of("Indices are not of int16.", INT8));
    assert_false(speaks_of("", STRING));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_are_those_of_tensorflow),
        cmocka_unit_test(test_what_is_not_said_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
