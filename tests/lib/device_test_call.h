/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of a kernel of the TEST device, as seen by the CPU's kernel that it wraps.
 */
#ifndef TF_TESTS_LIB_DEVICE_TEST_CALL_H
#define TF_TESTS_LIB_DEVICE_TEST_CALL_H

#include "exec/run/item.h"
#include "lib/device_test_internal.h"

/* The state of a prepared kernel. */
struct wrapped {
    const struct kernel_code *code;
    void *state;
    bool is_own;     /* the device's, not the CPU's */
    bool enqueued;   /* runs later */
    bool moves_only; /* reads no element of device memory */
    bool *host_in, *host_out;
    int *alias_of;            /* by output: the input whose memory it shares; -1 */
    struct shape *out_shapes; /* of what is enqueued */
};

struct plain {
    struct test_job job; /* first */
    struct kernel_call call;
    struct call_host host;
    struct error err;
    struct step step;         /* of an enqueued kernel: as in the step block */
    struct step_block *block; /* NULL: no step */
    struct device_step on_device;
    struct fault fault; /* that the kernel has found */
    const struct wrapped *wrapped;
    struct test_context *context;
    struct tensor *tensors; /* inputs, outputs */
    struct tensor **pointers;
    temporary_vec temporaries;          /* of what is enqueued, as the next two */
    struct variable *variables, **refs; /* by input */
    VEC(struct test_access) accesses;   /* of the device's memory */
};

/* Makes a call with plain addresses; `enqueued`: with variables as they are now. *result must be
 * freed even after a failure. */
int plain_new(struct kernel_call *call, bool enqueued, struct plain **result);
void plain_free(struct plain *p);
/* Notes that the kernel reads or writes the tensor. */
void test_note(struct plain *p, const struct tensor *t, bool write);
bool test_is_ref_output(const struct kernel_call *call, int i);

#endif
