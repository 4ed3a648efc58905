/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/containers.h"
#include "base/time.h"

#include <string.h>

static int lock(struct variable *variable, bool write, double end, struct error *err)
{
    double left = end - time_now();
    if (variable_lock_until(variable, write, left > 0 ? left : 0))
        return 0;
    return error_set(err, ERR_RETRY, "variable '%s' is in use by steps that do not end",
                     variable->name);
}

/* ---- one variable ---- */

static int find(struct variable_store *store, const char *container, const char *name,
                struct variable **found, struct error *err)
{
    *found = variable_store_find(store, container, name);
    if (*found)
        return 0;
    return error_set(err, ERR_NOINPUT, "no variable '%s' in container '%s'", name, container);
}

int containers_get(struct variable_store *store, const char *container, const char *name,
                   double seconds, struct tensor *value, struct error *err)
{
    struct variable *variable;
    int code = find(store, container, name, &variable, err);
    if (!code)
        code = lock(variable, false, time_now() + seconds, err);
    if (code)
        return code;
    code = variable_get_value(variable, value, err);
    variable_unlock(variable, false);
    return code;
}

int containers_put(struct variable_store *store, const char *container, const char *name,
                   double seconds, const struct tensor *value, struct error *err)
{
    struct variable *variable;
    int code = find(store, container, name, &variable, err);
    if (code)
        return code;
    if (value->type != variable->type)
        return error_set(err, ERR_DATA, "variable '%s' is %s, the new value %s", name,
                         shape_text_typed(variable->type, &variable->shape),
                         shape_text_typed(value->type, &value->shape));
    code = lock(variable, true, time_now() + seconds, err);
    if (code)
        return code;
    code = variable_put_in(variable, value, err);
    variable_unlock(variable, true);
    return code;
}

/* ---- a container ---- */

int containers_lock(struct variable_store *store, const struct variable_place *place, bool write,
                    double seconds, variable_vec *locked, struct error *err)
{
    double end = time_now() + seconds;
    for (struct variable *v = NULL; (v = variable_store_next(store, v));) {
        if (place && ((place->container && strcmp(v->container, place->container) != 0) ||
                      (place->name && strcmp(v->name, place->name) != 0)))
            continue;
        if (lock(v, write, end, err))
            return err->code;
        vec_push(locked, v);
    }
    return 0;
}

void containers_unlock(variable_vec *locked, bool write)
{
    for (size_t i = 0; i < locked->n; i++)
        variable_unlock(locked->items[i], write);
    vec_release(locked);
}

int containers_reset(struct variable_store *store, const char *container, double seconds, int *n,
                     struct error *err)
{
    const struct variable_place all = {container, NULL};
    variable_vec locked = VEC_INIT;
    int code = containers_lock(store, &all, true, seconds, &locked, err);
    if (!code && !locked.n)
        code = error_set(err, ERR_NOINPUT, "no container '%s'", container);
    for (size_t i = 0; !code && i < locked.n; i++)
        variable_withdraw(locked.items[i]);
    *n = code ? 0 : (int)locked.n;
    containers_unlock(&locked, true);
    return code;
}

struct clock *containers_clock(struct variable_store *store)
{
    struct resource *r = NULL;
    while ((r = resource_next(store, r)))
        if (r->kind == &clock_kind)
            return r->object;
    return NULL;
}
