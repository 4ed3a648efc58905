/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cuda/fiber.h"

#include <cstdlib>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER 1
#endif
#endif

#ifdef HAS_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

namespace cuda_emulator
{
constexpr size_t stack_bytes = 256 << 10;

static fiber *coming_from, *going_to;

static void finish_switch()
{
#ifdef HAS_ADDRESS_SANITIZER
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(going_to->fake_stack, &bottom, &size);
    if (coming_from && !coming_from->stack) { /* the process's own stack, seen for the first time */
        coming_from->stack = const_cast<void *>(bottom);
        coming_from->stack_bytes = size;
    }
#endif
}

static void begin()
{
    finish_switch();
    going_to->body();
    abort();
}

/* Stacks begin at different places of their pages. Otherwise the used parts of a thousand of them
 * would lie in the same few sets of the processor's caches. */
static size_t next_offset()
{
    static size_t n;
    return n++ * 17 * 64 % (64 << 10);
}

fiber *fiber_new(void (*body)())
{
    fiber *f = new fiber();
    f->body = body;
    f->stack_bytes = stack_bytes;
    f->stack = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f->stack == MAP_FAILED || getcontext(&f->context))
        abort();
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = stack_bytes - next_offset();
    makecontext(&f->context, begin, 0);
    return f;
}

void fiber_free(fiber *f)
{
    munmap(f->stack, f->stack_bytes);
    delete f;
}

/* ucontext asks the kernel about signals at every switch. The compiler's own jumps do not: 20 times
 * as fast (measured on a reduction). */
#ifdef __x86_64__
[[noreturn]] static __attribute__((noinline)) void resume(fiber *to)
{
    if (to->begun)
        __builtin_longjmp(to->jump, 1);
    to->begun = true;
    setcontext(&to->context);
    abort();
}

static __attribute__((noinline)) void change(fiber *from, fiber *to)
{
    from->begun = true;
    if (!__builtin_setjmp(from->jump))
        resume(to);
}
#else
[[noreturn]] static void resume(fiber *to)
{
    setcontext(&to->context);
    abort();
}

static void change(fiber *from, fiber *to)
{
    if (swapcontext(&from->context, &to->context))
        abort();
}
#endif

void fiber_switch(fiber *from, fiber *to)
{
    coming_from = from;
    going_to = to;
#ifdef HAS_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#endif
    change(from, to);
    finish_switch();
}

void fiber_leave(fiber *to)
{
    coming_from = nullptr;
    going_to = to;
#ifdef HAS_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(nullptr, to->stack, to->stack_bytes);
#endif
    resume(to);
}
} // namespace cuda_emulator
