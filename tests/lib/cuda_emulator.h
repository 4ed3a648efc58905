/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator that runs `.cu` files on the host, as tests see it. It runs one launch at a time, in
 * the thread that calls a launcher: blocks one after the other, in an order of the seed; in a block
 * one thread until it waits for others, then another one of the seed's choice. So a wrong index, a
 * missing barrier, or one that some threads do not reach shows under some seed, if not under all.
 *
 * It finds: barriers that not all threads of a block reach, or where threads reach different ones;
 * warp operations with missing lanes; accesses to shared memory beyond an array's end, reads of
 * what nobody has written in this block, and two accesses without a barrier between, one of them a
 * write; packs at addresses that are no multiple of their size; launches that no device accepts.
 * The launch ends there, the launcher returns CUDA_EMULATOR_FAILED, and cuda_emulator_fault
 * describes the error. Accesses beyond the end of global memory are found by the guard pages of
 * lib/cuda_memory.h.
 */
#ifndef TF_TESTS_LIB_CUDA_EMULATOR_H
#define TF_TESTS_LIB_CUDA_EMULATOR_H

#include <stdint.h>

#define CUDA_EMULATOR_FAILED 719 /* cudaErrorLaunchFailure */
#define CUDA_EMULATOR_REFUSED 9  /* cudaErrorInvalidConfiguration */

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the seed for the orders of blocks and threads from now on. */
void cuda_emulator_seed(uint64_t seed);

/* Returns a line that says what the latest launch did wrong; NULL: nothing. */
const char *cuda_emulator_fault(void);

/* Returns the number of launches so far. */
uint64_t cuda_emulator_launches(void);

#ifdef __cplusplus
}
#endif

#endif
