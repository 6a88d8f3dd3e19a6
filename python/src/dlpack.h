/* SPDX-License-Identifier: Apache-2.0
 *
 * What we use of DLPack's structs, versions 0.8 and 1.x, in our words.
 */
#ifndef PYTHON_DLPACK_H
#define PYTHON_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3 };
enum {
    DL_INT = 0,
    DL_UINT = 1,
    DL_FLOAT = 2,
    DL_BFLOAT = 4,
    DL_BOOL = 6,
    DL_E4M3FN = 10,
    DL_E5M2 = 12
};
enum { DL_READ_ONLY = 1, DL_IS_COPIED = 2 };
#define DL_MAJOR 1
#define DL_MINOR 0

struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t rank;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides; /* in elements; strides NULL: C order */
    uint64_t byte_offset;
};

struct dl_managed {
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
};

struct dl_managed_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *context;
    void (*deleter)(struct dl_managed_versioned *self);
    uint64_t flags;
    struct dl_tensor tensor;
};

#endif /* PYTHON_DLPACK_H */
