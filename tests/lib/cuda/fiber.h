/* SPDX-License-Identifier: Apache-2.0
 *
 * Fibers: stacks between which one thread of the process switches. AddressSanitizer is informed.
 */
#ifndef CUDA_EMULATOR_FIBER_H
#define CUDA_EMULATOR_FIBER_H

#include <cstddef>
#include <ucontext.h>

namespace cuda_emulator
{
struct fiber {
    ucontext_t context; /* its start; except on x86-64, also where it continues */
    void *jump[5];      /* where it continues, once it has begun */
    bool begun;
    void *stack; /* nullptr: the process's own */
    size_t stack_bytes;
    void *fake_stack; /* AddressSanitizer's */
    void (*body)();
};

/* `body` does not return. */
fiber *fiber_new(void (*body)());
void fiber_free(fiber *f); /* it does not run */

/* Returns when another fiber switches back to `from`. */
void fiber_switch(fiber *from, fiber *to);

/* Leaves the running fiber for good: it is never switched to again. */
[[noreturn]] void fiber_leave(fiber *to);
} // namespace cuda_emulator

#endif
