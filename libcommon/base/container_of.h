/* SPDX-License-Identifier: Apache-2.0
 *
 * The struct that a member lies in, for callbacks that are given the member.
 */
#ifndef TF_BASE_CONTAINER_OF_H
#define TF_BASE_CONTAINER_OF_H

#include <stddef.h>

#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
