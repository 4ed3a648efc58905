/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a session in this process; parts of a partitioned graph run together, each on its device.
 */
#include "bin/runner.h"
#include "checkpoint/variables/files.h"
#include "exec/state/saver.h"
#include "ops/ops.h"

int runner_open_session(struct runner *r, struct error *err)
{
    struct device_set *devices = &r->devices;
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
    driver->at_hand.seed = r->options.seed;
    saving->variables = session_variables(driver->session);
    saving->device = driver->device;
    variable_store_set_files(saving->variables, checkpoint_files(saving->producer));
    return 0;
}

int runner_start_session(struct runner *r, const struct runner_origin *origin, struct error *err)
{
    struct saving *saving = r->options.saving;
    int64_t step = 0;
    if (origin->reader)
        return variables_restore(saving->variables, r->options.joined->graph, &r->devices,
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
