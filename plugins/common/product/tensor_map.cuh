/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptions of tensors for the copy engine, made on the host.
 */
#ifndef PLUGINS_COMMON_PRODUCT_TENSOR_MAP_CUH
#define PLUGINS_COMMON_PRODUCT_TENSOR_MAP_CUH

#include <cuda.h>
#include <cuda_runtime.h>
#include <pthread.h>

#include <strata/plugin.h>

enum { TENSOR_MAP_RANK = 5 };

typedef decltype(&cuTensorMapEncodeTiled) tensor_map_encode;
typedef decltype(&cuTensorMapEncodeIm2col) tensor_map_encode_windows;

/* The driver's entries, NULL if it has none, and its version. */
static tensor_map_encode tensor_map_entry;
static tensor_map_encode_windows tensor_map_entry_windows;
static int tensor_map_driver;
static pthread_once_t tensor_map_once = PTHREAD_ONCE_INIT;

static void *tensor_map_entry_of(const char *name)
{
    void *entry = NULL;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t e =
        cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &result);
    return e == cudaSuccess && result == cudaDriverEntryPointSuccess ? entry : NULL;
}

static void tensor_map_find(void)
{
    tensor_map_entry = (tensor_map_encode)tensor_map_entry_of("cuTensorMapEncodeTiled");
    tensor_map_entry_windows =
        (tensor_map_encode_windows)tensor_map_entry_of("cuTensorMapEncodeIm2col");
    if (cudaDriverGetVersion(&tensor_map_driver) != cudaSuccess)
        tensor_map_driver = 0;
}

static inline CUtensorMapDataType tensor_map_dtype(int32_t dtype)
{
    return dtype == STRATA_FP16   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
           : dtype == STRATA_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
           : dtype == STRATA_FP32 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                  : CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

/* Bytes of an element. */
static inline int64_t tensor_map_size(int32_t dtype)
{
    return dtype == STRATA_FP32                           ? 4
           : dtype == STRATA_FP16 || dtype == STRATA_BF16 ? 2
                                                          : 1;
}

/* Rows of a box lie swizzled by their length: 128 bytes, 64 or 32. */
static inline CUtensorMapSwizzle tensor_map_swizzle(int64_t bytes)
{
    return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
           : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                         : CU_TENSOR_MAP_SWIZZLE_32B;
}

/* Drivers up to 13.1 want this bit off in maps of small tensors; so does CUTLASS. */
static inline void tensor_map_small(CUtensorMap *map, int64_t bytes)
{
    if (tensor_map_driver <= 13010 && bytes < 131072)
        ((uint64_t *)map)[1] &= ~(UINT64_C(1) << 21);
}

/* Boxes of FP32, FP16, BF16 or bytes, innermost dim first, swizzled. strides: of dims 1
 * on, in elements, multiples of 16 bytes. bytes: from the first element to the last. */
static bool tensor_map_boxes(CUtensorMap *map, const void *data, int32_t dtype, int rank,
                             const uint64_t *dims, const int64_t *strides,
                             const uint32_t *box, int64_t bytes)
{
    cuuint64_t sizes[TENSOR_MAP_RANK], steps[TENSOR_MAP_RANK];
    cuuint32_t boxes[TENSOR_MAP_RANK];
    const cuuint32_t every[TENSOR_MAP_RANK] = {1, 1, 1, 1, 1};
    for (int d = 0; d < rank; d++) {
        sizes[d] = dims[d];
        boxes[d] = box[d];
        steps[d] = d + 1 < rank ? (cuuint64_t)(strides[d] * tensor_map_size(dtype)) : 0;
    }
    if (pthread_once(&tensor_map_once, tensor_map_find) != 0 || !tensor_map_entry ||
        tensor_map_entry(map, tensor_map_dtype(dtype), (cuuint32_t)rank, (void *)data,
                         sizes, steps, boxes, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                         tensor_map_swizzle(box[0] * tensor_map_size(dtype)),
                         CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
        return false;
    tensor_map_small(map, bytes);
    return true;
}

/* Windows of images in channels-last order, dims C, W, H, N: pixels `pitch` elements
 * apart, a multiple of 16 bytes. The first window begins at (-begin_h, -begin_w), there
 * are `across` by `down` of them in an image; a box is one element of `rows` windows,
 * `depth` channels of it, swizzled. Outside the image lies 0; a store has no such
 * windows. line, image: elements from a line of pixels, from an image to the next; 0:
 * they follow.
 */
struct tensor_map_window {
    uint64_t channels, width, height, images;
    int64_t pitch, line, image;
    int across, down, begin_h, begin_w, stride_h, stride_w, depth;
};

static inline bool tensor_map_windows(CUtensorMap *map, const void *data, int32_t dtype,
                                      const tensor_map_window &w, uint32_t rows)
{
    const cuuint64_t sizes[4] = {w.channels, w.width, w.height, w.images};
    const int64_t size = tensor_map_size(dtype);
    const cuuint64_t pixel = (cuuint64_t)(w.pitch * size);
    const cuuint64_t line = w.line ? (cuuint64_t)(w.line * size) : pixel * w.width;
    const cuuint64_t image = w.image ? (cuuint64_t)(w.image * size) : line * w.height;
    const cuuint64_t steps[3] = {pixel, line, image};
    const int low[2] = {-w.begin_w, -w.begin_h};
    /* of the last window's first element, from the last pixel */
    const int high[2] = {(w.across - 1) * w.stride_w - w.begin_w - ((int)w.width - 1),
                         (w.down - 1) * w.stride_h - w.begin_h - ((int)w.height - 1)};
    const cuuint32_t strides[4] = {1, (cuuint32_t)w.stride_w, (cuuint32_t)w.stride_h, 1};
    if (pthread_once(&tensor_map_once, tensor_map_find) != 0 ||
        !tensor_map_entry_windows ||
        tensor_map_entry_windows(
            map, tensor_map_dtype(dtype), 4, (void *)data, sizes, steps, low, high,
            (cuuint32_t)w.depth, rows, strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
            tensor_map_swizzle(w.depth * size), CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
        return false;
    tensor_map_small(map, (int64_t)((w.images - 1) * image + (w.height - 1) * line +
                                    (w.width - 1) * pixel + w.channels * size));
    return true;
}

#endif /* PLUGINS_COMMON_PRODUCT_TENSOR_MAP_CUH */
