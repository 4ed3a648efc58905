/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/claims.h"

#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "checkpoint/variables/slices.h"

struct claims {
    char *folder;
    int64_t step;
    struct store *store; /* NULL, like the checkpoint: closed for now */
    struct checkpoint *checkpoint;
};

struct claims *claims_new(struct store *store, struct checkpoint *checkpoint)
{
    struct claims *claims = mem_alloc(sizeof *claims);
    *claims = (struct claims){mem_strdup(store_name(store)), checkpoint->manifest.step, store,
                              checkpoint};
    return claims;
}

void claims_shut(struct claims *claims)
{
    checkpoint_close(claims->checkpoint);
    store_close(claims->store);
    claims->checkpoint = NULL;
    claims->store = NULL;
}

void claims_free(struct claims *claims)
{
    if (!claims)
        return;
    claims_shut(claims);
    mem_free(claims->folder);
    mem_free(claims);
}

/* Returns false if it cannot be opened; without an error: it was pruned meanwhile. A missing store
 * is an error, as an unmounted disk looks the same. */
static bool open_again(struct claims *claims, struct error *err)
{
    error_clear(err);
    if (claims->checkpoint)
        return true;
    if (store_open(claims->folder, NULL, &claims->store, err))
        return false;
    if (!checkpoint_open(claims->store, claims->step, &claims->checkpoint, NULL, err))
        return true;
    claims_shut(claims);
    if (err->code == ERR_NOINPUT)
        error_clear(err);
    return false;
}

int claims_read(struct checkpoint *c, struct variable *variable, struct tensor *value,
                uint64_t *updates, struct error *err)
{
    const struct variable like = {.container = variable->container,
                                  .name = variable->name,
                                  .type = variable->type,
                                  .shape = variable->shape,
                                  .slice = variable_get_slice(variable)};
    if (checkpoint_read_variable(c, &like, value, updates, err) == ERR_NOINPUT)
        error_clear(err);
    return err->code;
}

int claims_variable(struct claims *claims, struct variable *variable, struct error *err)
{
    struct tensor value;
    uint64_t updates;
    if (!open_again(claims, err) ||
        claims_read(claims->checkpoint, variable, &value, &updates, err) ||
        value.type == DTYPE_INVALID)
        return err->code;
    if (!variable_put_in(variable, &value, err))
        variable->updates = updates;
    tensor_release(&value);
    return err->code;
}

int claims_load(struct checkpoint *c, const struct resource *resource, struct error *err)
{
    struct str name = STR_INIT;
    str_printf(&name, "%s:%s/", resource->kind->name, resource->name);
    for (size_t i = 0; i < c->entries.n && !err->code; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        struct tensor value;
        if (!str_starts(t->name, name.data) || strchr(t->name + name.n, '/') ||
            strcmp(t->container, resource->container) || checkpoint_read(c, (int)i, &value, err))
            continue;
        if (resource->kind->restore(resource->object, t->name + name.n, &value, err))
            error_prefix(err, "%s: '%s': ", c->name, t->name);
        tensor_release(&value);
    }
    str_release(&name);
    return err->code;
}

int claims_resource(struct claims *claims, const struct resource *resource, struct error *err)
{
    return open_again(claims, err) ? claims_load(claims->checkpoint, resource, err) : err->code;
}
