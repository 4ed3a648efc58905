/* SPDX-License-Identifier: Apache-2.0
 *
 * Fibers: stacks that one thread of the process changes between. AddressSanitizer is told.
 */
#ifndef CUDA_EMULATOR_FIBER_H
#define CUDA_EMULATOR_FIBER_H

#include <cstddef>
#include <ucontext.h>

namespace cuda_emulator
{
struct fiber {
    ucontext_t context; /* where it begins; elsewhere than on x86-64, where it goes on */
    void *jump[5];      /* where it goes on, if it has begun */
    bool begun;
    void *stack; /* nullptr: of the process's own */
    size_t stack_bytes;
    void *fake_stack; /* AddressSanitizer's */
    void (*body)();
};

/* `body` does not return. */
fiber *fiber_new(void (*body)());
void fiber_free(fiber *f); /* it does not run */

/* Until somebody switches back to `from`. */
void fiber_switch(fiber *from, fiber *to);

/* For good: the fiber that runs is not switched to any more. */
[[noreturn]] void fiber_leave(fiber *to);
} // namespace cuda_emulator

#endif
