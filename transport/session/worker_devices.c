/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the sums of a job are added by its workers' devices (exec/device/communicator.h): if the
 * graph asks for it, and all workers have a device of one kind with one library.
 */
#include <string.h>

#include "base/map.h"
#include "exec/device/communicator.h"
#include "transport/collective/collective.h"
#include "transport/session/worker_private.h"

/* A worker's description of its device before the first step. */
struct worker_device {
    int64_t kind; /* a hash; 0: it has none */
    char id[COMMUNICATOR_ID_BYTES];
};

#define DEVICE_COLUMNS ((int64_t)(sizeof(struct worker_device) / sizeof(int64_t)))

/* `why` says what is missing here. */
static void describe(const struct worker *worker, struct device *device,
                     struct worker_device *facts, struct error *why)
{
    char text[128] = "";
    *facts = (struct worker_device){0};
    if (!device)
        error_set(why, ERR_UNAVAILABLE, "no node is on a GPU");
    else if (!device->communicators->describe(device, text, sizeof text, why) &&
             (worker->collective->rank || !device->communicators->make_id(device, facts->id, why)))
        facts->kind = (int64_t)(hash_bytes(text, strlen(text), 0) | 1);
}

static int compare(const struct worker *worker, const struct worker_device *all,
                   const struct error *own, struct error *err)
{
    const struct collective *collective = worker->collective;
    if (own->code)
        return error_set(err, ERR_UNAVAILABLE, "schedule=nccl: %s", own->text);
    for (int k = 0; k < collective->size; k++)
        if (!all[k].kind)
            return error_set(err, ERR_UNAVAILABLE, "schedule=nccl: worker %d has no NCCL", k);
    for (int k = 1; k < collective->size; k++)
        if (all[k].kind != all[0].kind)
            return error_set(err, ERR_UNAVAILABLE,
                             "schedule=nccl: worker %d has another kind of GPU, or another "
                             "version of CUDA or NCCL, than worker 0",
                             k);
    return 0;
}

int worker_join_devices(struct worker *worker, struct error *err)
{
    enum by_device by = worker_find_exchanges(worker->options.graph).by_device;
    struct device *device = NULL;
    struct error missing = ERROR_INIT, unlike = ERROR_INIT;
    struct worker_device facts;
    struct tensor all = TENSOR_INIT;
    if (by == BY_DEVICE_NEVER)
        return 0;
    for (size_t i = 0; i < worker->devices.devices.n && !device; i++)
        if (worker->devices.devices.items[i]->communicators)
            device = worker->devices.devices.items[i];
    describe(worker, device, &facts, &missing);
    const struct worker_row row = {
        .key = {"=devices", 0, 0}, .items = &facts.kind, .n = DEVICE_COLUMNS};
    int code = worker_gather(worker, &row, NULL, &all, err);
    bool alike = !code && !compare(worker, all.data, &missing, &unlike);
    if (alike) {
        struct communicator_place place = {.n = worker->collective->size,
                                           .rank = worker->collective->rank};
        memcpy(place.id, ((const struct worker_device *)all.data)->id, sizeof place.id);
        code = collective_links_add_on(worker->collective, device, &place, err);
    } else if (!code && by == BY_DEVICE_ALWAYS) {
        code = error_set(err, unlike.code, "%s", unlike.text);
    }
    tensor_release(&all);
    return code;
}
