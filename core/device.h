/* SPDX-License-Identifier: Apache-2.0
 *
 * What the core needs of a device. The host device is built in; others are modules that
 * fill the same table. Work put on a stream runs in order, asynchronously to the caller;
 * a failure is kept by the stream and returned by the next synchronize.
 */
#ifndef CORE_DEVICE_H
#define CORE_DEVICE_H

#include "core/alloc.h"

struct device;

/* Work on a stream. On the host it runs later on the stream's thread, or within
 * a run of several threads on that of a crew (host/crew.h), or on the caller's where it
 * would only wait; a device with queues of its own calls it at once, with its native
 * stream, to enqueue kernels. */
typedef int (*device_work)(void *payload, void *native_stream, strata_error *err);
#define DEVICE_PAYLOAD 448 /* bytes copied with a piece of work */

struct device_properties {
    char name[64];
    char build[64]; /* all of the device that times depend on: name, driver */
    int kind;       /* STRATA_HOST or STRATA_CUDA */
    int index;      /* of several of a kind */
    int sm;         /* compute capability times 10; 0 on the host */
    int threads;    /* that one kernel uses, or multiprocessors */
    /* Ceilings of the analytic cost model. */
    double flops[STRATA_DTYPE_COUNT]; /* multiply-adds count two, per second */
    double bandwidth;                 /* bytes per second */
    double launch_ns;                 /* fixed cost of one kernel */
    int64_t cache_bytes; /* that lies between kernels and memory; 0: not told */
};

/* The ceilings of so many threads of a host, for a plan that has them. */
void host_ceilings(struct device_properties *out, int threads);

enum device_copy { COPY_TO_DEVICE, COPY_FROM_DEVICE, COPY_ON_DEVICE };

/* For checks that layers keep to their stream. */
struct device_checks {
    /* A stream that waits for the device's default stream, which waits for it. */
    int (*blocking_stream)(struct device *d, strata_stream **out, strata_error *err);
    /* Keep a stream busy. */
    int (*delay)(strata_stream *s, double ms, strata_error *err);
    /* capture_begin that refuses what any thread does outside of the capture. */
    int (*capture_begin)(strata_stream *s, strata_error *err);
};

/* Every function may be called from any thread; objects by one thread at a time. */
struct device_ops {
    void (*close)(struct device *d);
    void (*properties)(struct device *d, struct device_properties *out);
    strata_allocator (*memory)(struct device *d);
    int (*stream_create)(struct device *d, strata_stream **out, strata_error *err);
    void (*stream_destroy)(strata_stream *s);
    int (*stream_synchronize)(strata_stream *s, strata_error *err);
    /* From now on work runs on the thread that puts it on the stream, before it returns:
     * where that thread would only wait for it. The stream must be unused; NULL where the
     * device has queues of its own. */
    void (*stream_run_here)(strata_stream *s);
    /* From here on the calling thread does itself what it puts on the stream, a run of
     * `threads` threads that wait for each other as STRATA_WAIT_* says, and others' work
     * waits; until it calls again with no threads. False: it does not, as something is
     * under way there or the threads are others'. NULL where that of run_here is. */
    bool (*stream_visit)(strata_stream *s, int threads, int wait);
    int (*stream_wait)(strata_stream *s, strata_event *e, strata_error *err);
    int (*submit)(strata_stream *s, device_work work, const void *payload, size_t bytes,
                  strata_error *err);
    /* What is put on the stream between these two computes with `threads` threads, which
     * wait for each other as STRATA_WAIT_* says; it does not wait for other streams.
     * Where a run has begun it must be ended. NULL where processors are not the host's.
     */
    int (*run_begin)(strata_stream *s, int threads, int wait, strata_error *err);
    void (*run_end)(strata_stream *s);
    int (*copy)(strata_stream *s, void *dst, const void *src, size_t bytes,
                enum device_copy direction, strata_error *err);
    int (*fill)(strata_stream *s, void *dst, int byte, size_t bytes, strata_error *err);
    /* A short kernel that lets the next one be launched while it runs, as those of a
     * network do. NULL where none is. */
    int (*lead)(strata_stream *s, strata_error *err);
    /* NULL where kernels read host memory: formats/ submits its own. */
    int (*reformat)(strata_stream *s, const strata_desc *dst, void *dst_data,
                    const strata_desc *src, const void *src_data, strata_error *err);
    int (*event_create)(struct device *d, strata_event **out, strata_error *err);
    void (*event_destroy)(strata_event *e);
    int (*event_record)(strata_event *e, strata_stream *s, strata_error *err);
    int (*event_synchronize)(strata_event *e, strata_error *err);
    int (*event_elapsed)(double *ms, strata_event *from, strata_event *to,
                         strata_error *err);
    /* The device's own stream (cudaStream_t), for kernels; NULL on the host. */
    void *(*stream_native)(strata_stream *s);
    /* A stream or event of the application's own, which stays its own: all NULL where
     * the device has none. event_native is what others may wait for. */
    int (*stream_wrap)(struct device *d, void *native, strata_stream **out,
                       strata_error *err);
    int (*event_wrap)(struct device *d, void *native, strata_event **out,
                      strata_error *err);
    void *(*event_native)(const strata_event *e);
    /* Memory of the host that copies fastest to and from the device. */
    strata_allocator (*host_memory)(struct device *d);
    /* Whether memory of the host is such; NULL where copies are as fast from any. */
    bool (*is_pinned)(struct device *d, const void *data);
    /* Bytes of device memory that are free; 0 if unknown. */
    uint64_t (*free_bytes)(struct device *d);
    /* STRATA_OK, or STRATA_EDEVICELOST with the reason, at once. */
    int (*check)(struct device *d, strata_error *err);
    /* The device's reformat table, for tests and benchmarks: reformat takes the chosen
     * row. NULL where reformat is. */
    size_t (*reformat_rows)(void);
    const char *(*reformat_row_name)(size_t row);
    size_t (*reformat_choose)(const strata_desc *dst, const void *dst_data,
                              const strata_desc *src, const void *src_data);
    int (*reformat_row)(strata_stream *s, size_t row, const strata_desc *dst,
                        void *dst_data, const strata_desc *src, const void *src_data,
                        strata_error *err);
    /* Graphs: all NULL where the device has none. */
    int (*capture_begin)(strata_stream *s, strata_error *err);
    int (*capture_end)(strata_stream *s, void **graph, strata_error *err);
    int (*graph_launch)(strata_stream *s, void *graph, strata_error *err);
    void (*graph_destroy)(struct device *d, void *graph);
    const struct device_checks *checks; /* NULL where streams are the core's own */
    /* Named ranges of the calling thread, for the device's tools: NULL where it has none.
     */
    void (*range_begin)(const char *name);
    void (*range_end)(void);
};

struct device {
    const struct device_ops *ops;
};

/* Every device's streams and events start with these. */
struct strata_stream {
    struct device *device;
};
struct strata_event {
    struct device *device;
};

/*
 * A device kind of its own is a module strata-KIND.so with one entry, looked up in the
 * folders of STRATA_DEVICE_PATH (not in privileged programs), then in the installed one
 * (core/installed.h).
 * Both sides are built from one tree: the entry compares `abi` with its own
 * DEVICE_ABI_HERE and refuses another (STRATA_EMODULE).
 */
struct device_abi {
    uint32_t version;
    uint32_t ops_size, properties_size, desc_size, error_size;
};
#define DEVICE_ABI_VERSION 3
#define DEVICE_ABI_HERE                                                                  \
    ((struct device_abi){DEVICE_ABI_VERSION, sizeof(struct device_ops),                  \
                         sizeof(struct device_properties), sizeof(strata_desc),          \
                         sizeof(strata_error)})
#define DEVICE_ENTRY "strata_device_open_v1"
typedef int device_entry(const struct device_abi *abi, struct device **out, int index,
                         strata_error *err);

/* "host", "cuda:0", or NULL for the host. EUNSUPPORTED says what is missing. */
int device_open(struct device **out, const char *name, strata_error *err);
void device_close(struct device *d);
int host_device_open(struct device **out, int index, strata_error *err);
/* The module of a kind. device_module.c */
int device_module_open(struct device **out, const char *kind, int index,
                       strata_error *err);

#endif /* CORE_DEVICE_H */
