/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches, and the fibers of a block's threads. A thread that never waits needs no fiber of its
 * own: what runs it goes on with the next one.
 */
#include "lib/cuda/emulator.h"

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>

#include "lib/cuda/fiber.h"
#include "lib/cuda_emulator.h"
#include "lib/random.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_emulator
{
constexpr int threads_max = 1024;

emulated_block block;
int current;

static struct {
    uint64_t random, launches;
    const configuration *what;
    void (*body)(const void *);
    const void *context;
    char fault[512];
    bool failed;
    int runnable[threads_max], n_runnable; /* threads that wait for nothing */
    int left;
    int arrived, barrier_line, first_at_barrier;
    fiber *of[threads_max]; /* the fiber that a thread waits in */
    /* Never destroyed: a leak checker is to see that it holds the fibers. */
    std::vector<fiber *> &idle = *new std::vector<fiber *>();
    fiber main;
} engine;

static uint64_t random_below(uint64_t n)
{
    return unit_random(&engine.random) % n;
}

static uint3 index_of(unsigned i, const dim3 &of)
{
    return {i % of.x, i / of.x % of.y, i / of.x / of.y};
}

void fail(const char *format, ...)
{
    char what[400];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    uint3 thread = index_of(static_cast<unsigned>(current), blockDim);
    snprintf(engine.fault, sizeof engine.fault, "%s: block (%u,%u,%u): thread (%u,%u,%u) %s",
             engine.what->kernel, blockIdx.x, blockIdx.y, blockIdx.z, thread.x, thread.y, thread.z,
             what);
    engine.failed = true;
    fiber_leave(&engine.main);
}

void wake(int thread)
{
    block.threads[thread].state = THREAD_RUNS;
    engine.runnable[engine.n_runnable++] = thread;
}

static void become(int thread)
{
    current = thread;
    threadIdx = block.threads[thread].index;
}

/* Any that is runnable; -1: none is. */
static int choose()
{
    if (!engine.n_runnable)
        return -1;
    int &slot = engine.runnable[random_below(static_cast<uint64_t>(engine.n_runnable))];
    int thread = slot;
    slot = engine.runnable[--engine.n_runnable];
    return thread;
}

static void run_threads();

/* To a thread that waits in a fiber, or to the main one when there is none. Returns when somebody
 * comes back to this fiber. */
static void go_on(fiber *from)
{
    int thread = choose();
    if (thread < 0) {
        fiber_switch(from, &engine.main);
        return;
    }
    fiber *to = engine.of[thread];
    if (!to) {
        if (engine.idle.empty())
            engine.idle.push_back(fiber_new(run_threads));
        to = engine.idle.back();
        engine.idle.pop_back();
    }
    engine.of[thread] = to;
    become(thread);
    if (to != from)
        fiber_switch(from, to);
}

void wait_as(thread_state state)
{
    int self = current;
    block.threads[self].state = state;
    go_on(engine.of[self]);
    become(self);
}

/* What a fiber does: the thread that it was given, and others that have not begun. */
static void run_threads()
{
    for (;;) {
        int self = current;
        fiber *here = engine.of[self];
        block.threads[self].state = THREAD_RUNS;
        engine.body(engine.context);
        self = current;
        block.threads[self].state = THREAD_LEFT;
        engine.of[self] = nullptr;
        engine.left++;
        /* The next: in this fiber, if it has not begun. */
        engine.idle.push_back(here);
        go_on(here);
    }
}

void barrier(int line)
{
    emulated_thread *self = &block.threads[current];
    self->where = "__syncthreads";
    self->line = line;
    if (!engine.arrived++) {
        engine.barrier_line = line;
        engine.first_at_barrier = current;
    }
    if (line != engine.barrier_line)
        fail("is at the barrier of line %d, thread %d at that of line %d", line,
             engine.first_at_barrier, engine.barrier_line);
    if (engine.arrived < block.n) {
        wait_as(THREAD_AT_BARRIER);
        return;
    }
    engine.arrived = 0;
    block.epoch++;
    for (int i = 0; i < block.n; i++)
        if (i != current)
            wake(i);
    /* The last to come is no more likely to be the first to go. */
    wake(current);
    wait_as(THREAD_RUNS);
}

void check_alignment(const void *pointer, size_t bytes, int line)
{
    size_t off = reinterpret_cast<uintptr_t>(pointer) % bytes;
    if (off)
        fail("uses %zu bytes at once that lie %zu beyond a multiple (line %d)", bytes, off, line);
}

/* Nobody can run and not all have left. */
static void report_stuck()
{
    int waits = -1, other = -1;
    for (int i = 0; i < block.n; i++)
        if (block.threads[i].state == THREAD_AT_BARRIER || block.threads[i].state == THREAD_IN_WARP)
            waits = waits < 0 ? i : waits;
    become(waits);
    const emulated_thread *self = &block.threads[waits];
    for (int i = 0; i < block.n && other < 0; i++) {
        bool asked = self->state == THREAD_AT_BARRIER ||
                     (i / warp_size == waits / warp_size && self->mask >> i % warp_size & 1);
        const emulated_thread *one = &block.threads[i];
        if (asked && (one->state != self->state || one->line != self->line))
            other = i;
    }
    if (other < 0)
        fail("waits at %s of line %d for lanes that do not exist", self->where, self->line);
    const emulated_thread *one = &block.threads[other];
    if (one->state == THREAD_LEFT)
        fail("waits at %s of line %d, and thread %d has left", self->where, self->line, other);
    fail("waits at %s of line %d, and thread %d at %s of line %d", self->where, self->line, other,
         one->where, one->line);
}

/* In the main fiber. Fibers of a block that failed are where they are, and are thrown away. */
static void forget_fibers()
{
    for (int i = 0; i < threads_max; i++) {
        if (engine.of[i])
            fiber_free(engine.of[i]);
        engine.of[i] = nullptr;
    }
}

static void stuck_fiber()
{
    report_stuck();
}

static void run_block(std::vector<emulated_thread> &threads)
{
    block.n = static_cast<int>(threads.size());
    block.threads = threads.data();
    block.epoch = 0;
    block.warps.assign(threads.size() / warp_size + 1, {});
    engine.n_runnable = engine.left = engine.arrived = 0;
    for (int i = 0; i < block.n; i++) {
        threads[static_cast<size_t>(i)] = {};
        threads[static_cast<size_t>(i)].index = index_of(static_cast<unsigned>(i), blockDim);
        engine.runnable[engine.n_runnable++] = i;
    }
    shared_reset();
    go_on(&engine.main);
    if (!engine.failed && engine.left < block.n) {
        fiber *reporter = fiber_new(stuck_fiber);
        fiber_switch(&engine.main, reporter);
        fiber_free(reporter);
    }
    shared_reset();
    if (engine.failed)
        forget_fibers();
}

static bool is_possible(const configuration &what)
{
    uint64_t threads = static_cast<uint64_t>(what.block.x) * what.block.y * what.block.z;
    return threads && threads <= threads_max && what.block.z <= 64 && what.grid.x && what.grid.y &&
           what.grid.z && what.grid.x <= 0x7fffffff && what.grid.y <= 65535 &&
           what.grid.z <= 65535 && what.shared <= shared_bytes_max;
}

/* Memory that is not there: a thread of the launch has touched it. */
static void report_address(int, siginfo_t *info, void *)
{
    fail("touches memory that is not there (%p)", info->si_addr);
}

class address_watch
{
    struct sigaction before[2];

  public:
    address_watch()
    {
        struct sigaction watch = {};
        watch.sa_sigaction = report_address;
        watch.sa_flags = SA_SIGINFO | SA_NODEFER;
        sigaction(SIGSEGV, &watch, &before[0]);
        sigaction(SIGBUS, &watch, &before[1]);
    }
    ~address_watch()
    {
        sigaction(SIGSEGV, &before[0], nullptr);
        sigaction(SIGBUS, &before[1], nullptr);
    }
};

size_t dynamic_bytes()
{
    return engine.what->shared;
}

static pthread_mutex_t one_launch = PTHREAD_MUTEX_INITIALIZER;

static int launch_alone(const configuration &what, void (*body)(const void *), const void *context)
{
    engine.main = {}; /* may be another thread than the one before */
    engine.launches++;
    engine.failed = false;
    engine.fault[0] = 0;
    if (!is_possible(what)) {
        snprintf(engine.fault, sizeof engine.fault,
                 "%s: grid (%u,%u,%u) of blocks (%u,%u,%u) with %zu bytes", what.kernel,
                 what.grid.x, what.grid.y, what.grid.z, what.block.x, what.block.y, what.block.z,
                 what.shared);
        return CUDA_EMULATOR_REFUSED;
    }
    engine.what = &what;
    engine.body = body;
    engine.context = context;
    blockDim = what.block;
    gridDim = what.grid;
    std::vector<emulated_thread> threads(what.block.x * what.block.y * what.block.z);
    std::vector<unsigned> order(static_cast<size_t>(what.grid.x) * what.grid.y * what.grid.z);
    for (size_t i = 0; i < order.size(); i++) {
        size_t j = random_below(i + 1);
        order[i] = order[j];
        order[j] = static_cast<unsigned>(i);
    }
    address_watch watch;
    for (size_t i = 0; i < order.size() && !engine.failed; i++) {
        blockIdx = index_of(order[i], gridDim);
        run_block(threads);
    }
    return engine.failed ? CUDA_EMULATOR_FAILED : 0;
}

int launch(const configuration &what, void (*body)(const void *), const void *context)
{
    pthread_mutex_lock(&one_launch);
    int result = launch_alone(what, body, context);
    pthread_mutex_unlock(&one_launch);
    return result;
}
} // namespace cuda_emulator

void cuda_emulator_seed(uint64_t seed)
{
    cuda_emulator::engine.random = seed;
}

const char *cuda_emulator_fault(void)
{
    return cuda_emulator::engine.fault[0] ? cuda_emulator::engine.fault : nullptr;
}

uint64_t cuda_emulator_launches(void)
{
    return cuda_emulator::engine.launches;
}
