/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of saving while steps run: a few variables, all of whose elements are the number of the
 * last step.
 */
#ifndef TF_TESTS_AUTOSAVES_H
#define TF_TESTS_AUTOSAVES_H

#include "checkpoint/job/autosave.h"
#include "lib/stores.h"

#define VARIABLES 4
#define SIZE 100000 /* int64 */

static char path[STORES_PATH_BYTES + 16];

static inline int setup(void **state)
{
    *state = (void *)(uintptr_t)stores_folder();
    snprintf(path, sizeof path, "%s/store", (char *)*state);
    return 0;
}

static inline int teardown(void **state)
{
    stores_remove(*state);
    return 0;
}

static inline void make_variables(struct variable_store *store,
                                  struct variable *variables[VARIABLES])
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct error err = ERROR_INIT;
    for (int i = 0; i < VARIABLES; i++) {
        struct variable like = {
            .container = "default", .name = names[i], .type = INT64, .shape = shape_vector(SIZE)};
        assert_int_equal(variable_store_get(store, &like, &variables[i], &err), 0);
    }
}

/* Does what a step does: sets every element of every variable to the step's number. */
static inline void write_all(struct variable *variables[VARIABLES], int64_t step)
{
    const struct shape shape = shape_vector(SIZE);
    for (int i = 0; i < VARIABLES; i++) {
        struct error err = ERROR_INIT;
        variable_lock_wait(variables[i], true);
        if (variable_prepare_write(variables[i], &shape, VARIABLE_UPDATE, &err))
            fail_msg("%s", err.text);
        int64_t *data = variables[i]->value.data;
        for (int k = 0; k < SIZE; k++)
            data[k] = step;
        variable_written(variables[i]);
        variable_unlock(variables[i], true);
    }
}

static inline void check_value(const struct tensor *value, int64_t step)
{
    const int64_t *data = value->data;
    for (int k = 0; k < SIZE; k++)
        if (data[k] != step)
            fail_msg("element %d is of step %lld, not %lld", k, (long long)data[k],
                     (long long)step);
}

static int said;

static inline void say(void *context, const char *line)
{
    (void)context;
    print_message("%s\n", line);
    said++;
}

static inline struct autosave *open_autosave(const struct autosave_options *like,
                                             struct variable_store *variables)
{
    struct autosave_options options = *like;
    struct autosave *a;
    struct error err = ERROR_INIT;
    options.path = path;
    options.producer = options.owner = "test";
    options.variables = variables;
    options.say = say;
    said = 0;
    if (autosave_open(&options, &a, &err))
        fail_msg("%s", err.text);
    return a;
}

#endif
