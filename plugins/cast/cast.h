/* SPDX-License-Identifier: Apache-2.0
 *
 * What Cast's impls on all devices share.
 */
#ifndef PLUGINS_CAST_CAST_H
#define PLUGINS_CAST_CAST_H

#include <strata/layers.h>

/* Input and output lie alike in each of these, so that a cast goes over memory. */
#define CAST_LINEAR                                                                      \
    (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_F64_NCHW |            \
     STRATA_I8_NCHW | STRATA_U8_NCHW | STRATA_I32_NCHW | STRATA_I64_NCHW |               \
     STRATA_BOOL_NCHW | STRATA_E4M3_NCHW | STRATA_E5M2_NCHW)
#define CAST_LAST                                                                        \
    (STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NHWC | STRATA_U8_NHWC |             \
     STRATA_I8_NHWC)
#define CAST_LAST8 (STRATA_F16_NHWC8 | STRATA_BF16_NHWC8)
#define CAST_LAST16 (STRATA_I8_NHWC16 | STRATA_E4M3_NHWC16 | STRATA_E5M2_NHWC16)

#define CAST_ROWS                                                                        \
    {{CAST_LINEAR}, {CAST_LINEAR}}, {{CAST_LAST}, {CAST_LAST}},                          \
        {{CAST_LAST8}, {CAST_LAST8}}, {{CAST_LAST16}, {CAST_LAST16}},                    \
        {{STRATA_I8_NC4HW4 | STRATA_U8_NC4HW4}, {STRATA_I8_NC4HW4 | STRATA_U8_NC4HW4}},  \
        {{STRATA_I8_NC32HW32 | STRATA_U8_NC32HW32},                                      \
         {STRATA_I8_NC32HW32 | STRATA_U8_NC32HW32}},                                     \
    {                                                                                    \
        {STRATA_F16_NC2HW2 | STRATA_F32_NC8HW8 | STRATA_F32_NC16HW16},                   \
        {                                                                                \
            STRATA_SAME                                                                  \
        }                                                                                \
    }

#endif /* PLUGINS_CAST_CAST_H */
