/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_BASE_VERSION_H
#define TF_BASE_VERSION_H

/* The version of all programs and of the library; the Makefile reads it here. */
#define TOOL_VERSION "1.0"

#endif
