/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: private devices, of type TEST (lib/device_test.h) or the type in TF_TEST_DEVICE, and
 * sessions on a device.
 */
#ifndef TF_TESTS_LIB_ON_DEVICE_H
#define TF_TESTS_LIB_ON_DEVICE_H

#include "exec/plan/fuse.h"
#include "lib/session.h"

#include <dlfcn.h>
#include <stdio.h>

#include "lib/device_test.h"

/* TF_TEST_DEVICE may be CUDA:0 (lib/fake_cuda.h), which has the same settings. */
static inline const char *own_device_type(void)
{
    const char *text = getenv("TF_TEST_DEVICE");
    return text && !strncmp(text, "CUDA", 4) ? "CUDA" : "TEST";
}

/* Opens a private device with a setting (NULL: none), which stays in the environment. */
static inline struct device *device_open_with(const char *setting, long value)
{
    struct device_options options = {.threads = 1};
    struct error err = ERROR_INIT;
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    if (setting)
        setenv(setting, text, 1);
    struct device *device = device_open(own_device_type(), 0, &options, &err);
    if (setting)
        unsetenv(setting);
    if (!device)
        fail_msg("%s", err.text);
    return device;
}

/* Opens one that captures nothing, so that the work enqueued is counted in each step. */
static inline struct device *device_open_eager(const char *setting, long value)
{
    setenv("TF_TEST_DEVICE_CAPTURE", "0", 1);
    struct device *device = device_open_with(setting, value);
    unsetenv("TF_TEST_DEVICE_CAPTURE");
    return device;
}

static inline struct device_test_counts device_counts(struct device *device)
{
    device_test_counts_function *count;
    void *symbol = dlsym(device->module, "device_test_counts");
    assert_non_null(symbol);
    memcpy(&count, &symbol, sizeof count);
    return count(device);
}

static inline void fixture_open_on(struct fixture *f, const char *text, struct device *device,
                                   bool dynamic)
{
    memset(f, 0, sizeof *f);
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), &f->graph, &f->err))
        fail_msg("%s", f->err.text);
    struct session_options options = {
        .plan = {.kernels = ops_kernels(),
                 .device = device,
                 .cut = dynamic ? CUT_REGIONS : CUT_WHOLE,
                 .without = DEVICE_PASSES_ALL}}; /* each op must be visible */
    f->session = session_new(f->graph, &options);
}

#endif
