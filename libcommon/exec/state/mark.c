/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/state/mark.h"

#include "base/memory.h"

#define LOOK_SECONDS 0.1

/* With the variable's mutex. Shared memory needs no mark: a writer leaves it as it is. */
static void place(struct variable *v, struct variable_mark *mark)
{
    *mark = (struct variable_mark){.variable = v, .updates = v->updates, .slice = v->slice};
    if (variable_is_shared(v)) {
        variable_get_value(v, &mark->value, &mark->err);
        return;
    }
    BUG_ON(v->mark);
    v->mark = mark;
}

void variable_marks_place(const variable_vec *variables, struct variable_marks *marks)
{
    *marks = (struct variable_marks){.items = mem_array(variables->n + 1, sizeof *marks->items)};
    for (size_t i = 0; i < variables->n; i++) {
        struct variable *v = variables->items[i];
        pthread_mutex_lock(&v->mutex);
        if (v->initialized)
            place(v, &marks->items[marks->n++]);
        pthread_mutex_unlock(&v->mutex);
    }
}

void variable_mark_copy(struct variable_mark *mark)
{
    mark->variable->mark = NULL;
    variable_get_value(mark->variable, &mark->value, &mark->err);
}

/* False when a writer was quicker. */
static bool take_away(struct variable_mark *mark)
{
    struct variable *v = mark->variable;
    pthread_mutex_lock(&v->mutex);
    bool placed = v->mark == mark;
    if (placed)
        v->mark = NULL;
    pthread_mutex_unlock(&v->mutex);
    return placed;
}

static bool is_placed(struct variable_mark *mark)
{
    struct variable *v = mark->variable;
    pthread_mutex_lock(&v->mutex);
    bool placed = v->mark == mark;
    pthread_mutex_unlock(&v->mutex);
    return placed;
}

/* Who has its lock as a writer has copied it, so that nobody waits for a step that does not end. */
static void collect_one(struct variable_mark *mark)
{
    while (is_placed(mark)) {
        if (!variable_lock_until(mark->variable, false, LOOK_SECONDS))
            continue;
        if (take_away(mark)) /* no writer comes before the lock is given back */
            variable_get_value(mark->variable, &mark->value, &mark->err);
        variable_unlock(mark->variable, false);
    }
}

int variable_marks_collect(struct variable_marks *marks, struct error *err)
{
    for (size_t i = 0; i < marks->n; i++) {
        struct variable_mark *mark = &marks->items[i];
        collect_one(mark);
        if (mark->err.code) {
            *err = mark->err;
            return error_prefix(err, "'%s': ", mark->variable->name);
        }
    }
    return 0;
}

void variable_marks_release(struct variable_marks *marks)
{
    for (size_t i = 0; i < marks->n; i++) {
        take_away(&marks->items[i]);
        tensor_release(&marks->items[i].value);
    }
    mem_free(marks->items);
    *marks = (struct variable_marks){0};
}
