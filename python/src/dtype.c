/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types in the words of three: struct's formats, DLPack, NumPy.
 */
#include <string.h>

#include "python/src/module.h"

static const struct {
    const char *name, *format, *typestr;
    uint8_t code, bits;
} types[STRATA_DTYPE_COUNT] = {
    [STRATA_FP32] = {"fp32", "f", "<f4", DL_FLOAT, 32},
    [STRATA_FP16] = {"fp16", "e", "<f2", DL_FLOAT, 16},
    [STRATA_INT8] = {"int8", "b", "|i1", DL_INT, 8},
    [STRATA_UINT8] = {"u8", "B", "|u1", DL_UINT, 8},
    [STRATA_INT32] = {"i32", "i", "<i4", DL_INT, 32},
    [STRATA_INT64] = {"i64", "q", "<i8", DL_INT, 64},
    [STRATA_BOOL8] = {"bool", "?", "|b1", DL_BOOL, 8},
    [STRATA_BF16] = {"bf16", NULL, NULL, DL_BFLOAT, 16},
    [STRATA_E4M3] = {"e4m3", NULL, NULL, DL_E4M3FN, 8},
    [STRATA_E5M2] = {"e5m2", NULL, NULL, DL_E5M2, 8},
    [STRATA_FP64] = {"fp64", "d", "<f8", DL_FLOAT, 64},
};

const char *dtype_format(int dtype)
{
    return types[dtype].format;
}

const char *dtype_typestr(int dtype)
{
    return types[dtype].typestr;
}

/* Its size tells what 'l' is on this machine. */
int dtype_of_format(const char *format, Py_ssize_t size)
{
    static const char integers[] = "ilqn";
    if (!format)
        return size == 1 ? STRATA_UINT8 : -1;
    if (*format == '<' || *format == '=' || *format == '@')
        format++;
    if (strlen(format) != 1)
        return -1;
    if (strchr(integers, *format))
        return size == 4 ? STRATA_INT32 : size == 8 ? STRATA_INT64 : -1;
    for (int i = 0; i < STRATA_DTYPE_COUNT; i++)
        if (types[i].format && *types[i].format == *format)
            return i;
    return -1;
}

int dtype_of_dlpack(int code, int bits, int lanes)
{
    for (int i = 0; i < STRATA_DTYPE_COUNT; i++)
        if (types[i].code == code && types[i].bits == bits && lanes == 1)
            return i;
    return -1;
}

void dtype_to_dlpack(int dtype, struct dl_tensor *out)
{
    out->dtype.code = types[dtype].code;
    out->dtype.bits = types[dtype].bits;
    out->dtype.lanes = 1;
}

int dtype_of_name(const char *name)
{
    for (int i = 0; i < STRATA_DTYPE_COUNT; i++)
        if (strcmp(types[i].name, name) == 0)
            return i;
    PyErr_Format(PyExc_ValueError,
                 "no dtype '%s'; there are fp32, fp16, bf16, fp64, e4m3, e5m2, int8, u8, "
                 "i32, i64, bool",
                 name);
    return -1;
}
