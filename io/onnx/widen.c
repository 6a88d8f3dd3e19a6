/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of types that are no dtype of the core, as elements of one that is.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/onnx/model.h"

#include <math.h>
#include <string.h>

#include <strata/plugin.h>

/* Elements of less than a byte lie in a byte from its low bits on. */
static unsigned packed(const unsigned char *data, int64_t i, int bits)
{
    const int64_t at = i * bits;
    return data[at / 8] >> (at % 8) & ((1u << bits) - 1);
}

static int8_t small_integer(unsigned element, int bits, bool is_signed)
{
    const unsigned sign = 1u << (bits - 1);
    return (int8_t)(is_signed ? (int)(element ^ sign) - (int)sign : (int)element);
}

/* Of a float of a sign, `fraction` bits and an exponent between: its value, where no code
 * stands for infinity or NaN. */
static float small_float(unsigned code, int bits, int fraction, int bias)
{
    const unsigned magnitude = code & ((1u << (bits - 1)) - 1);
    const int exponent = (int)(magnitude >> fraction);
    const int whole =
        (int)(magnitude & ((1u << fraction) - 1)) + (exponent ? 1 << fraction : 0);
    const float value = ldexpf((float)whole, (exponent ? exponent : 1) - bias - fraction);
    return code >> (bits - 1) ? -value : value;
}

static float float_of(enum onnx_type type, const unsigned char *data, int64_t i)
{
    switch (type) {
    case ONNX_FLOAT4E2M1:
        return small_float(packed(data, i, 4), 4, 1, 1);
    case ONNX_FLOAT8E8M0:
        return data[i] == 0xff ? NAN : ldexpf(1, data[i] - 127);
    default: /* FNUZ: what would be -0 is NaN */
        return data[i] == 0x80               ? NAN
               : type == ONNX_FLOAT8E4M3FNUZ ? small_float(data[i], 8, 3, 8)
                                             : small_float(data[i], 8, 2, 16);
    }
}

void onnx_widen(void *out, const struct onnx_tensor *t)
{
    const int bits = onnx_type_bits(t->type);
    const bool is_signed = t->type == ONNX_INT4 || t->type == ONNX_INT2;
    const char *from = t->data;
    uint16_t half;
    uint32_t word;
    for (int64_t i = 0; i < t->count; i++)
        switch (t->type) {
        case ONNX_INT4:
        case ONNX_UINT4:
        case ONNX_INT2:
        case ONNX_UINT2:
            ((int8_t *)out)[i] = small_integer(packed(t->data, i, bits), bits, is_signed);
            break;
        case ONNX_INT16:
        case ONNX_UINT16:
            memcpy(&half, from + 2 * i, sizeof half);
            ((int32_t *)out)[i] = t->type == ONNX_INT16 ? (int16_t)half : half;
            break;
        case ONNX_UINT32:
            memcpy(&word, from + 4 * i, sizeof word);
            ((int64_t *)out)[i] = word;
            break;
        case ONNX_UINT64:
            memcpy((int64_t *)out + i, from + 8 * i, sizeof(int64_t));
            break;
        default:
            ((float *)out)[i] = float_of(t->type, t->data, i);
            break;
        }
}
