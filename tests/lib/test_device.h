/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: the device that they run on: TF_TEST_DEVICE, of the form TYPE:INDEX, or CPU:0. Modules
 * are also searched in lib/ beside the folder of the test program, where the TEST device's is. With
 * TF_TEST_DEVICE_OPTIONAL, tests of a device that this machine lacks are skipped.
 */
#ifndef TF_TESTS_LIB_TEST_DEVICE_H
#define TF_TESTS_LIB_TEST_DEVICE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/device/device.h"

static inline void test_device_path(void)
{
    char path[4096 + 16];
    ssize_t n = readlink("/proc/self/exe", path, 4096);
    path[n < 0 ? 0 : n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        strcpy(slash, "/../../lib");
    setenv("TF_DEVICE_PATH", path, 0);
}

static inline struct device *test_device_open(int threads, struct error *err)
{
    const char *text = getenv("TF_TEST_DEVICE");
    char type[64] = "CPU";
    int index = 0;
    test_device_path();
    if (text)
        sscanf(text, "%63[^:]:%d", type, &index);
    return device_open(type, index, &(struct device_options){.threads = threads}, err);
}

/* Returns whether to skip a test because its device could not be opened; prints so, and why. */
static inline bool test_device_lacks(const struct error *err)
{
    bool lacks = err->code == ERR_UNAVAILABLE && getenv("TF_TEST_DEVICE_OPTIONAL");
    if (lacks)
        printf("# skipped: %s\n", err->text);
    fflush(stdout);
    return lacks;
}

#endif
