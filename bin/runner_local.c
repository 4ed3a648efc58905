/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a session in this process; parts of a partitioned graph run together, each on its device.
 */
#include "base/container_of.h"
#include "base/memory.h"
#include "bin/runner.h"
#include "checkpoint/variables/files.h"
#include "exec/device/device_set.h"
#include "exec/state/saver.h"
#include "ops/ops.h"

struct local_runner {
    struct runner runner;
    struct device_set devices;
};

static struct local_runner *local_of(const struct runner *r)
{
    return CONTAINER_OF(r, struct local_runner, runner);
}

static int local_open(struct runner *r, struct error *err)
{
    struct device_set *devices = &local_of(r)->devices;
    struct driver *driver = r->options.driver;
    struct saving *saving = r->options.saving;
    const struct stream_graph *joined = r->options.joined;
    if (device_set_open(devices, joined->graph, joined->is_cut, &r->options.device, err))
        return joined->is_cut ? error_prefix(err, "%s: ", driver->name) : err->code;
    driver->device = devices->devices.items[0];
    struct session_options session = {.plan = {.kernels = ops_kernels(),
                                               .device = driver->device,
                                               .check_numerics = r->options.check,
                                               .no_layouts = r->options.check,
                                               .without = r->options.without,
                                               .cancelled = &driver->at_hand.cancelled},
                                      .devices = devices->devices.items,
                                      .n_devices = joined->is_cut ? (int)devices->devices.n : 0};
    driver->session = session_new(joined->graph, &session);
    driver->seed = r->options.seed;
    saving->variables = session_variables(driver->session);
    saving->device = driver->device;
    variable_store_set_files(saving->variables, checkpoint_files(saving->producer));
    return 0;
}

static int local_start(struct runner *r, const struct runner_origin *origin, struct error *err)
{
    struct saving *saving = r->options.saving;
    int64_t step = 0;
    if (origin->reader)
        return variables_restore(saving->variables, r->options.joined->graph, &local_of(r)->devices,
                                 origin->reader, &step, err);
    if (!origin->is_restored) {
        /* An entry that only reads variables needs their trained values, which must come from
         * somewhere.
         */
        struct driver *driver = r->options.driver;
        int variable = request_only_reads(&driver->request, driver->feeds.edges.items,
                                          (int)driver->feeds.edges.n);
        if (variable >= 0)
            tool_say(r->options.tool,
                     "%s: %s %s reads '%s' as it is initialized; --restore reads what was trained",
                     driver->name, driver->option, driver->what,
                     graph_node(driver->graph, variable)->name);
        return driver_initialize(driver, err);
    }
    return saving->resumed ? saving_pass_over(saving, saving->resumed, err) : 0;
}

static bool local_is_over(struct runner *r)
{
    return tool_signal() || r->ends;
}

static bool local_begins(struct runner *r)
{
    return !local_is_over(r);
}

static int local_write(struct runner *r, struct stream_writer *writer, struct error *err)
{
    const struct driver *driver = r->options.driver;
    struct variable_store *variables = session_variables(driver->session);
    return variables_check_all(variables, driver->graph, err)
               ? err->code
               : variables_save(variables, driver->step, writer, err);
}

static void local_close(struct runner *r)
{
    struct local_runner *local = local_of(r);
    session_free(r->options.driver->session);
    device_set_release(&local->devices);
    mem_free(local);
}

struct runner *runner_local_new(const struct runner_options *options)
{
    static const struct runner_kind kind = {.open = local_open,
                                            .start = local_start,
                                            .begins = local_begins,
                                            .is_over = local_is_over,
                                            .write = local_write,
                                            .close = local_close};
    struct local_runner *local = mem_alloc(sizeof *local);
    local->runner = (struct runner){.kind = &kind, .options = *options, .first = INT64_MAX};
    return &local->runner;
}
