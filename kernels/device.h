/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the CUDA device module. Every entry makes its device current and, once
 * the device is lost, returns without calling CUDA.
 */
#ifndef KERNELS_DEVICE_H
#define KERNELS_DEVICE_H

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/device.h"

#define CUDA_DEVICES 64 /* that one process can open */

/* What all handles on a GPU share: a sticky error ends its use for the whole process. */
struct cuda_state {
    atomic_int lost; /* 0; 1 while the reason is written; 2 */
    char reason[512];
};

struct cuda_device {
    struct device base;
    int index;
    struct cuda_state *state;
    cudaMemPool_t pool; /* NULL: plain cudaMalloc */
    cudaStream_t memory_stream;
    struct device_properties properties;
};

/* node.c: what the calling thread allocates from now on is of the GPU's side of the
 * machine, where there is room; until it leaves. False: nothing was changed. */
struct cuda_node {
    int mode;
    unsigned long nodes[16]; /* a bit each */
};
bool cuda_prefer_node(struct cuda_node *before, int index);
void cuda_leave_node(const struct cuda_node *before);

static inline struct cuda_device *cuda_device(struct device *d)
{
    return (struct cuda_device *)d;
}

/* ---- error.c --------------------------------------------------------------------------
 */

struct cuda_state *cuda_state_of(int index);
/* Make the device current. EDEVICELOST, without a CUDA call, once it is lost. */
int cuda_enter(struct cuda_device *d, strata_error *err);
/* The status of a CUDA result, with a message that begins with `what`; takes the error
 * off CUDA's own record. A sticky one loses the device. */
int cuda_status(struct cuda_device *d, cudaError_t result, const char *what,
                strata_error *err);
/* EDEVICE if another part of the process left an error behind; it is taken off. */
int cuda_foreign(struct cuda_device *d, const char *what, strata_error *err);
int cuda_check(struct device *d, strata_error *err);
/* Free memory of the device; 0 if it cannot be told. Asks CUDA even of a lost one. */
uint64_t cuda_unused_bytes(const struct cuda_device *d);

/* ---- memory.c -------------------------------------------------------------------------
 */

int cuda_memory_open(struct cuda_device *d, strata_error *err);
void cuda_memory_close(struct cuda_device *d);
strata_allocator cuda_memory(struct device *d);
strata_allocator cuda_host_memory(struct device *d);
bool cuda_is_pinned(struct device *d, const void *data);
uint64_t cuda_free_bytes(struct device *d);

/* ---- stream.c, event.c, graph.c: rows of the table of operations
 * ------------------------- */

int cuda_stream_create(struct device *d, strata_stream **out, strata_error *err);
int cuda_stream_wrap(struct device *d, void *native, strata_stream **out,
                     strata_error *err);
void cuda_stream_destroy(strata_stream *s);
int cuda_stream_synchronize(strata_stream *s, strata_error *err);
void *cuda_stream_native(strata_stream *s);
int cuda_submit(strata_stream *s, device_work work, const void *payload, size_t bytes,
                strata_error *err);
int cuda_copy(strata_stream *s, void *dst, const void *src, size_t bytes,
              enum device_copy direction, strata_error *err);
int cuda_lead(strata_stream *s, strata_error *err);
int cuda_fill(strata_stream *s, void *dst, int byte, size_t bytes, strata_error *err);
int cuda_reformat(strata_stream *s, const strata_desc *dst, void *dst_data,
                  const strata_desc *src, const void *src_data, strata_error *err);
int cuda_reformat_row(strata_stream *s, size_t row, const strata_desc *dst,
                      void *dst_data, const strata_desc *src, const void *src_data,
                      strata_error *err);

int cuda_event_create(struct device *d, strata_event **out, strata_error *err);
int cuda_event_wrap(struct device *d, void *native, strata_event **out,
                    strata_error *err);
void *cuda_event_native(const strata_event *e);
void cuda_event_destroy(strata_event *e);
int cuda_event_record(strata_event *e, strata_stream *s, strata_error *err);
int cuda_event_synchronize(strata_event *e, strata_error *err);
int cuda_event_elapsed(double *ms, strata_event *from, strata_event *to,
                       strata_error *err);
int cuda_stream_wait(strata_stream *s, strata_event *e, strata_error *err);

int cuda_capture_begin(strata_stream *s, strata_error *err);
int cuda_capture_end(strata_stream *s, void **graph, strata_error *err);
int cuda_graph_launch(strata_stream *s, void *graph, strata_error *err);
void cuda_graph_destroy(struct device *d, void *graph);

/* ---- range.c: where the toolkit came with NVTX --------------------------------------
 */

#if __has_include(<nvtx3/nvToolsExt.h>)
void cuda_range_begin(const char *name);
void cuda_range_end(void);
#else
#define cuda_range_begin NULL
#define cuda_range_end NULL
#endif

/* ---- checks.c -------------------------------------------------------------------------
 */

extern const struct device_checks cuda_checks;

#endif /* KERNELS_DEVICE_H */
