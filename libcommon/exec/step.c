/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step.h"

#include <pthread.h>

#include "base/memory.h"
#include "base/vec.h"

struct resource {
    void *object;
    void (*release)(void *object);
};

struct step_resources {
    pthread_mutex_t lock;       /* guards items */
    VEC(struct resource) items; /* by handle - 1 */
};

/* Most steps have no resources: made when the first is added, perhaps by two threads at once. */
static struct step_resources *resources_of(struct step *step)
{
    struct step_resources *present = atomic_load(&step->resources);
    if (present)
        return present;
    struct step_resources *made = mem_alloc(sizeof *made);
    pthread_mutex_init(&made->lock, NULL);
    if (atomic_compare_exchange_strong(&step->resources, &present, made))
        return made;
    pthread_mutex_destroy(&made->lock);
    mem_free(made);
    return present;
}

uint64_t step_resource_add(struct step *step, void *object, void (*release)(void *object))
{
    struct step_resources *resources = resources_of(step);
    pthread_mutex_lock(&resources->lock);
    vec_push(&resources->items, ((struct resource){object, release}));
    uint64_t handle = resources->items.n;
    pthread_mutex_unlock(&resources->lock);
    return handle;
}

void *step_resource_get(struct step *step, uint64_t handle, void (*release)(void *object))
{
    struct step_resources *resources = atomic_load(&step->resources);
    void *object = NULL;
    if (!resources)
        return NULL;
    pthread_mutex_lock(&resources->lock);
    if (handle > 0 && handle <= resources->items.n) {
        const struct resource *found = &resources->items.items[handle - 1];
        object = found->release == release ? found->object : NULL;
    }
    pthread_mutex_unlock(&resources->lock);
    return object;
}

void step_resources_free(struct step *step)
{
    struct step_resources *resources = atomic_exchange(&step->resources, NULL);
    if (!resources)
        return;
    for (size_t i = resources->items.n; i-- > 0;)
        resources->items.items[i].release(resources->items.items[i].object);
    vec_release(&resources->items);
    pthread_mutex_destroy(&resources->lock);
    mem_free(resources);
}
