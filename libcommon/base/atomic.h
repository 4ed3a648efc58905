/* SPDX-License-Identifier: Apache-2.0
 *
 * Atomic types, for headers that C++ reads as well; C++ has its own names for them.
 */
#ifndef TF_BASE_ATOMIC_H
#define TF_BASE_ATOMIC_H

#ifdef __cplusplus
#include <atomic>
#define _Atomic(type) std::atomic<type>
using std::atomic_bool;
using std::atomic_int;
using std::atomic_size_t;
using std::memory_order_acquire;
using std::memory_order_relaxed;
#else
#include <stdatomic.h>
#endif

#endif
