/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine below the emulated <cuda_runtime.h>: fibers for the threads of a block, their waits,
 * and their shared memory.
 */
#ifndef CUDA_EMULATOR_ENGINE_H
#define CUDA_EMULATOR_ENGINE_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/cuda/vector_types.h"

namespace cuda_emulator
{
constexpr int warp_size = 32;
constexpr size_t shared_bytes_max = 48 << 10;

struct configuration {
    const char *kernel;
    dim3 grid, block;
    size_t shared; /* dynamic, in bytes */
};

/* Runs `body` once for each thread of the grid. */
int launch(const configuration &what, void (*body)(const void *context), const void *context);

/* Ends the launch with a message that begins with kernel, block and thread. */
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- threads, for warp.cc and shared.cc ---- */

enum thread_state { THREAD_READY, THREAD_RUNS, THREAD_AT_BARRIER, THREAD_IN_WARP, THREAD_LEFT };

enum warp_call { WARP_SYNC, WARP_SHUFFLE, WARP_BALLOT };

struct emulated_thread {
    thread_state state;
    uint3 index;
    const char *where; /* what it waits at */
    int line;
    warp_call call; /* in a warp operation: which, with which lanes, and its value */
    unsigned mask;
    int source; /* the lane whose value it receives */
    uint64_t value, result;
};

struct emulated_warp {
    uint32_t epoch;   /* __syncwarp of all lanes so far */
    unsigned waiting; /* lanes that are in a warp operation */
    bool alike;       /* all are in the same one: */
    warp_call call;
    unsigned mask;
    int line;
};

struct emulated_block {
    int n; /* threads */
    emulated_thread *threads;
    uint32_t epoch; /* barriers so far */
    std::vector<emulated_warp> warps;
};

extern emulated_block block;
extern int current; /* thread */

/* Runs other threads until one of them wakes the current thread. */
void wait_as(thread_state state);
void wake(int thread);

void barrier(int line);

/* An operation of the lanes in `mask`, and what the lane receives. */
struct warp_request {
    warp_call call;
    const char *name;
    int line;
    unsigned mask;
    uint64_t value;
    int source;
};
uint64_t warp_operation(const warp_request &request);
int shuffle_source(int lane, int width);

void check_alignment(const void *pointer, size_t bytes, int line);

/* ---- shared memory ---- */

/* The threads that used an element since the block began. */
struct shared_cell {
    int writer, reader; /* threads; -1: none */
    uint32_t write_epoch, write_warp_epoch, read_epoch, read_warp_epoch;
    int readers; /* 1: only `reader`, 2: others of its warp, 3: others of the block */
};

struct shared_block {
    const void *key;
    const char *name;
    size_t n, element_bytes;
    char *data;
    std::vector<shared_cell> cells;
};

/* Returns the array of `key` in this block, which the first thread that gets here makes. */
shared_block *shared_find(const void *key, const char *name, size_t n, size_t element_bytes);
extern const char dynamic_key;
size_t dynamic_bytes();

/* Called at the start and the end of a block. */
void shared_reset();

void *shared_read(shared_block *array, ptrdiff_t index);
void *shared_write(shared_block *array, ptrdiff_t index);

template <typename T> struct shared_element {
    shared_block *array;
    ptrdiff_t index;

    operator T() const
    {
        return *static_cast<T *>(shared_read(array, index));
    }
    shared_element &operator=(const T &value)
    {
        *static_cast<T *>(shared_write(array, index)) = value;
        return *this;
    }
    shared_element &operator=(const shared_element &other)
    {
        return *this = static_cast<T>(other);
    }
    shared_element &operator+=(const T &value)
    {
        return *this = static_cast<T>(*this) + value;
    }
};

template <typename T> struct shared_array {
    shared_block *array;
    ptrdiff_t first;

    shared_element<T> operator[](int64_t i) const
    {
        return {array, first + static_cast<ptrdiff_t>(i)};
    }
    shared_array operator+(int64_t n) const
    {
        return {array, first + static_cast<ptrdiff_t>(n)};
    }
};

template <typename T> shared_array<T> shared(const void *key, const char *name, size_t n)
{
    return {shared_find(key, name, n, sizeof(T)), 0};
}
} // namespace cuda_emulator

#endif
