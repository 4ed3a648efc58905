/* SPDX-License-Identifier: Apache-2.0
 *
 * The table behind every handle that a custom op's function gets.
 */
#include "ops/user/internal.h"

const struct tf_op_functions user_functions = {
#define X(name) .name = user_##name,
    USER_FUNCTIONS(X)
#undef X
};
