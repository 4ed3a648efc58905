/* SPDX-License-Identifier: Apache-2.0
 *
 * Returns the struct that contains a member, for callbacks that receive the member.
 */
#ifndef TF_BASE_CONTAINER_OF_H
#define TF_BASE_CONTAINER_OF_H

#include <stddef.h>

#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
