/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU device: loading, choices for the machine, memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "exec/device/queue.h"

static struct device *open_cpu(int threads)
{
    struct error err = ERROR_INIT;
    struct device_options options = {.threads = threads};
    struct device *device = device_open("CPU", 0, &options, &err);
    if (!device)
        fail_msg("%s", err.text);
    return device;
}

static void test_choice(void **state)
{
    (void)state;
    char **before = environ; /* other threads may be reading it */
    struct device *device = open_cpu(1);
    assert_ptr_equal(environ, before);
#ifdef __x86_64__
    /* By default OpenBLAS chooses older kernels than the machine can run. */
    __builtin_cpu_init();
    if (getenv("OPENBLAS_CORETYPE") || getenv("TF_CPU_ISA"))
        ;
    else if (__builtin_cpu_supports("avx512vl"))
        assert_non_null(strstr(device->choice, "blas=SkylakeX"));
    else if (__builtin_cpu_supports("avx2"))
        assert_non_null(strstr(device->choice, "blas=Haswell"));
#endif
    assert_non_null(strstr(device->choice, "isa="));
    assert_non_null(strstr(device->choice, " threads=1"));
    assert_null(strstr(device->choice, "exact"));
    device_free(device);
    struct error err = ERROR_INIT;
    device = device_open("CPU", 0, &(struct device_options){.threads = 2, .exact = true}, &err);
    assert_non_null(strstr(device->choice, " threads=2 exact"));
    device_free(device);
}

static void test_environment_is_kept(void **state)
{
    assert_int_equal(getenv("OPENBLAS_CORETYPE") != NULL, *state != NULL);
}

static void test_memory(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct device *device = open_cpu(2);
    assert_int_equal(device->threads, 2);
    assert_true(device->is_host);
    struct buffer *buffer = device->memory->alloc(device, 1000);
    assert_non_null(buffer);
    assert_int_equal((uintptr_t)buffer->data % MEM_ALIGNMENT, 0);
    char text[] = "twelve bytes", back[sizeof text];
    assert_int_equal(device_write(device, buffer->data, text, sizeof text, &err), 0);
    assert_int_equal(device_read(device, back, buffer->data, sizeof text, &err), 0);
    assert_int_equal(device_finish(device, &err), 0);
    assert_string_equal(back, text);
    buffer->free(buffer);
    assert_null(device->memory->alloc(device, (size_t)1 << 62));
    assert_null(device->code(device, "nothing"));
    device_free(device);
}

static void test_errors(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct device_options options = {0};
    assert_null(device_open("TPU", 0, &options, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "'TPU'"));
    struct device *third = device_open("CPU", 3, &options, &err); /* a process may have several */
    assert_non_null(third);
    assert_int_equal(third->index, 3);
    device_free(third);
    const char *before = getenv("TF_CPU_ISA");
    char *kept = before ? strdup(before) : NULL;
    setenv("TF_CPU_ISA", "v9", 1);
    assert_null(device_open("CPU", 0, &options, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "v9"));
    if (kept)
        setenv("TF_CPU_ISA", kept, 1);
    else
        unsetenv("TF_CPU_ISA");
    free(kept);
}

int main(void)
{
    void *core_type = getenv("OPENBLAS_CORETYPE");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test_prestate(test_environment_is_kept, core_type),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
