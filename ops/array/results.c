/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/results.h"

#include "exec/device/step_block.h"

int rows_check(struct kernel_call *call, int input, int64_t n)
{
    const struct tensor *indices = call->in[input];
    int64_t count = tensor_count(indices);
    const int32_t *i32 = indices->data;
    const int64_t *i64 = indices->data;
    for (int64_t i = 0; i < count; i++) {
        int64_t index = indices->type == INT64 ? i64[i] : i32[i];
        if (index < 0 || index >= n)
            return kernel_fault(call, &(struct fault){.code = FAULT_INDEX,
                                                      .input = (uint16_t)input,
                                                      .at = i,
                                                      .value = index,
                                                      .limit = n});
    }
    return 0;
}
