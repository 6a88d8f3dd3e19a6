/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of elements.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/onnx/model.h"

#include <strata/plugin.h>
#include <string.h>

static const struct {
    const char *name;
    int bits, core;
    int carrier; /* where there is none */
} types[ONNX_TYPE_COUNT] = {
    [ONNX_UNDEFINED] = {"undefined", 0, -1, -1},
    [ONNX_FLOAT] = {"float", 32, STRATA_FP32},
    [ONNX_UINT8] = {"uint8", 8, STRATA_UINT8},
    [ONNX_INT8] = {"int8", 8, STRATA_INT8},
    [ONNX_UINT16] = {"uint16", 16, -1, STRATA_INT32},
    [ONNX_INT16] = {"int16", 16, -1, STRATA_INT32},
    [ONNX_INT32] = {"int32", 32, STRATA_INT32},
    [ONNX_INT64] = {"int64", 64, STRATA_INT64},
    [ONNX_STRING] = {"string", 0, -1, -1},
    [ONNX_BOOL] = {"bool", 8, STRATA_BOOL8},
    [ONNX_FLOAT16] = {"float16", 16, STRATA_FP16},
    [ONNX_DOUBLE] = {"double", 64, STRATA_FP64},
    [ONNX_UINT32] = {"uint32", 32, -1, STRATA_INT64},
    [ONNX_UINT64] = {"uint64", 64, -1, STRATA_INT64},
    [ONNX_COMPLEX64] = {"complex64", 64, -1, -1},
    [ONNX_COMPLEX128] = {"complex128", 128, -1, -1},
    [ONNX_BFLOAT16] = {"bfloat16", 16, STRATA_BF16},
    [ONNX_FLOAT8E4M3FN] = {"float8e4m3fn", 8, STRATA_E4M3},
    [ONNX_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", 8, -1, STRATA_FP32},
    [ONNX_FLOAT8E5M2] = {"float8e5m2", 8, STRATA_E5M2},
    [ONNX_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", 8, -1, STRATA_FP32},
    [ONNX_UINT4] = {"uint4", 4, -1, STRATA_INT8},
    [ONNX_INT4] = {"int4", 4, -1, STRATA_INT8},
    [ONNX_FLOAT4E2M1] = {"float4e2m1", 4, -1, STRATA_FP32},
    [ONNX_FLOAT8E8M0] = {"float8e8m0", 8, -1, STRATA_FP32},
    [ONNX_UINT2] = {"uint2", 2, -1, STRATA_INT8},
    [ONNX_INT2] = {"int2", 2, -1, STRATA_INT8},
};

static bool is_known(enum onnx_type type)
{
    return (unsigned)type < ONNX_TYPE_COUNT;
}

const char *onnx_type_name(enum onnx_type type)
{
    return is_known(type) ? types[type].name : "?";
}

int onnx_type_bits(enum onnx_type type)
{
    return is_known(type) ? types[type].bits : 0;
}

int onnx_type_core(enum onnx_type type)
{
    return is_known(type) ? types[type].core : -1;
}

int onnx_type_carrier(enum onnx_type type)
{
    const int core = onnx_type_core(type);
    return core >= 0 ? core : is_known(type) ? types[type].carrier : -1;
}
