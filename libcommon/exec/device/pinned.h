/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory in which links leave received data: devices that copy faster from registered memory
 * are told of it, those that are open and those that will be. Thread-safe; a device is called with
 * the lock held.
 */
#ifndef TF_EXEC_PINNED_H
#define TF_EXEC_PINNED_H

#include "exec/device/device.h"

void pinned_add(const void *data, size_t bytes);
/* Removes the memory from the list before it is freed. */
void pinned_remove(const void *data);

#endif
