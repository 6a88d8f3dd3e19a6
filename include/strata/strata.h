/* SPDX-License-Identifier: Apache-2.0
 *
 * Strata, the application API: tensor descriptors, handles, networks, engines, contexts.
 *
 * Argument order: the object, then outputs, then inputs; a length follows its array; the
 * error comes last. Functions that can fail return a status (STRATA_OK is 0) and write
 * the message into `err`, which may be NULL. A function that makes an object sets *out
 * to NULL when it fails. Every *_destroy accepts NULL. Any other pointer may be NULL
 * where its comment says so; else a call with NULL does nothing and gives STRATA_EINVAL,
 * with the names of the function and the argument, or, where it has no err, NULL, 0 or
 * -1.
 *
 * A struct that begins with struct_size is for applications and libraries of different
 * age: set it to the struct's sizeof. New members come at the end. Of an application that
 * is older than the library, those it does not have are read as 0 and not written; of one
 * that is newer, those that the library does not have are not read and written as 0. A
 * size below that of the struct's first version, or above 4096, is STRATA_EINVAL.
 *
 * Lifetimes: contexts and batchers go before their engine, networks and engines before
 * their registry, all of these, streams, events and host memory before their handle. A
 * network may go before the engines built of it.
 *
 * Threads: a registry, network, engine and descriptor may be read by any number of
 * threads once made. A handle belongs to one thread at a time. A context belongs to one
 * thread and one stream at a time; a call on a busy context returns STRATA_EBUSY.
 */
#ifndef STRATA_H
#define STRATA_H

#include <strata/layers.h>
#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef STRATA_EXPORT_API
#define STRATA_EXPORT_API __attribute__((visibility("default")))
#endif
#define STRATA_API STRATA_EXPORT_API

/* Of these headers; those of the library that runs are in strata_version. The number
 * grows with the version: 1.2.3 is 10203. */
#define STRATA_VERSION_MAJOR 0
#define STRATA_VERSION_MINOR 1
#define STRATA_VERSION_PATCH 0
#define STRATA_VERSION_NUMBER                                                            \
    (STRATA_VERSION_MAJOR * 10000 + STRATA_VERSION_MINOR * 100 + STRATA_VERSION_PATCH)

/* ---- status and messages ------------------------------------------------------- */

/* Say what, where, found, needed, remedy. Owned by the caller, usable on the stack. */
#define STRATA_MESSAGE_SIZE 8192
struct strata_error {
    int32_t status;
    uint32_t length; /* bytes of message, without the NUL */
    char message[STRATA_MESSAGE_SIZE - 8];
};

/* "1.0.0" of the library that runs. */
STRATA_API const char *strata_version(void);
/* The same as a number, to compare with STRATA_VERSION_NUMBER. */
STRATA_API int strata_version_number(void);
/* "out of memory" for STRATA_ENOMEM and so on; never NULL. */
STRATA_API const char *strata_status_text(int status);

typedef void (*strata_log_fn)(void *user, int level, const char *text);
/* Process-wide, called from any thread, one call a line, never concurrently. NULL goes
 * back to stderr. Lines above `level` are dropped before formatting. */
STRATA_API void strata_set_logger(strata_log_fn fn, void *user, int level);

/* ---- memory -------------------------------------------------------------------- */

/* alloc returns `bytes` aligned to `alignment` (a power of two), or NULL. Both functions
 * may be called from any thread. */
typedef struct strata_allocator {
    size_t struct_size;
    void *(*alloc)(void *user, size_t bytes, size_t alignment);
    void (*free)(void *user, void *ptr, size_t bytes);
    void *user;
} strata_allocator;

typedef struct strata_memory_stats {
    size_t struct_size;
    uint64_t current_bytes, peak_bytes, total_bytes;
    uint64_t current_blocks, allocations, failures;
} strata_memory_stats;

/* ---- tensor descriptors ---------------------------------------------------------- */

/* cuDNN's semantics: 1 to 8 dims, strides in elements, an optional vectorised dim whose
 * stride is from vector to vector. A plain struct; check with strata_desc_check. */
typedef struct strata_desc {
    int32_t dtype;
    int32_t rank;
    int32_t vector_dim; /* -1: none */
    int32_t vector;     /* 1: none */
    int64_t dims[STRATA_MAX_RANK];
    int64_t strides[STRATA_MAX_RANK];
} strata_desc;

/* Named dense layouts for the constructors below. */
typedef enum strata_layout {
    STRATA_LAYOUT_NCHW,
    STRATA_LAYOUT_NHWC,
    STRATA_LAYOUT_CHWN,
    STRATA_LAYOUT_NCDHW,
    STRATA_LAYOUT_NDHWC,
    STRATA_LAYOUT_CDHWN,
    STRATA_LAYOUT_BMN_ROW,
    STRATA_LAYOUT_BMN_COLUMN,
    STRATA_LAYOUT_COUNT
} strata_layout;

/* Fully-packed descriptor; dims are in N, C, spatial (or B, M, N) order and rank must be
 * the layout's. EINVAL for a rank, dtype or dim out of range, EOVERFLOW for the size. */
STRATA_API int strata_desc_layout(strata_desc *out, strata_layout layout, int dtype,
                                  const int64_t *dims, int rank, strata_error *err);
/* Explicit strides (elements, not negative; overlapping allowed). */
STRATA_API int strata_desc_strided(strata_desc *out, int dtype, const int64_t *dims,
                                   const int64_t *strides, int rank, strata_error *err);
/* NC/xHWx: dims of any rank from 2, dim 1 in vectors of x. x = 1 is NCHW, x = C NHWC. */
STRATA_API int strata_desc_vector(strata_desc *out, int dtype, const int64_t *dims,
                                  int rank, int x, strata_error *err);
/* A descriptor of a named format ("fp16:nc/2hw2", "fp32:nhwc", "int8:nc/5hw5"). */
STRATA_API int strata_desc_format(strata_desc *out, const char *format,
                                  const int64_t *dims, int rank, strata_error *err);

/* Whether a descriptor may be used for reading, or (output) for writing: an output must
 * not overlap. Negative strides are refused for both. */
STRATA_API int strata_desc_check(const strata_desc *d, int output, strata_error *err);
/* Elements from first to last, pads included; -1: overflow, or no rank or vector. */
STRATA_API int64_t strata_desc_size(const strata_desc *d);
STRATA_API int64_t strata_desc_bytes(const strata_desc *d); /* the same in bytes */
/* Logical elements; -1 as above. */
STRATA_API int64_t strata_desc_count(const strata_desc *d);
/* Offset of an element, in elements; index has rank entries in range. */
STRATA_API int64_t strata_desc_offset(const strata_desc *d, const int64_t *index);
/* Predicates of cuDNN's core concepts. */
STRATA_API int strata_desc_overlapping(const strata_desc *d);
STRATA_API int strata_desc_fully_packed(const strata_desc *d);
/* Packed for a set of letters ("CHW", "HW"): dropping the other dims leaves a
 * fully-packed tensor. Letters are of N C D H W for rank 4 and 5, B M N for rank 3. */
STRATA_API int strata_desc_packed(const strata_desc *d, const char *letters);
STRATA_API int strata_desc_spatially_packed(const strata_desc *d);
/* Same elements at the same addresses: a re-label costs nothing. */
STRATA_API int strata_desc_equal(const strata_desc *a, const strata_desc *b);

STRATA_API const char *strata_dtype_name(int dtype); /* "fp16"; NULL if unknown */
STRATA_API size_t strata_dtype_size(int dtype);      /* bytes; 0 if unknown */

/* Convert between descriptors of equal dims on the host, dtype included (floats to
 * integers round to nearest even and saturate). Pad lanes of dst are written as zero. On
 * the calling thread, from 4 MiB on with others that end before it returns. */
STRATA_API int strata_reformat(const strata_desc *dst, void *dst_data,
                               const strata_desc *src, const void *src_data,
                               strata_error *err);

/* ---- handle ------------------------------------------------------------------------ */

typedef struct strata_handle strata_handle;
typedef struct strata_stream strata_stream;
typedef struct strata_event strata_event;

/* One device, one host thread. device is "host", "cuda:0", or NULL for the host; it
 * carries a default stream of its own. */
STRATA_API int strata_create(strata_handle **out, const char *device, strata_error *err);
STRATA_API void strata_destroy(strata_handle *handle);
STRATA_API const char *strata_device_name(const strata_handle *handle);
/* The device's compute capability times ten: 90 for 9.0; 0 for the host. */
STRATA_API int strata_device_capability(const strata_handle *handle);
/* STRATA_OK while the device can be used; STRATA_EDEVICELOST with the reason after a
 * failure that it does not recover from before the process ends. Answers at once. */
STRATA_API int strata_device_ok(const strata_handle *handle, strata_error *err);
/* Host memory that copies to and from the handle's device fastest (pinned on CUDA),
 * aligned to 256 bytes; bytes as asked for go back with free. */
STRATA_API void *strata_host_alloc(strata_handle *handle, size_t bytes,
                                   strata_error *err);
STRATA_API void strata_host_free(strata_handle *handle, void *ptr, size_t bytes);
/* Before anything is allocated through the handle; copied. Both callbacks are needed. */
STRATA_API int strata_set_allocator(strata_handle *handle, const strata_allocator *a,
                                    strata_error *err);
STRATA_API int strata_get_memory_stats(const strata_handle *handle,
                                       strata_memory_stats *out, strata_error *err);
/* One allocation or release through the handle. */
typedef struct strata_memory_event {
    const void *ptr;
    uint64_t bytes;
    const char *what; /* of an allocation: "the context's arena"; NULL for a release */
    uint64_t current_bytes; /* in use after it */
} strata_memory_event;
typedef void (*strata_memory_fn)(void *user, const strata_memory_event *event);
/* Called at every allocation and release from now on, in their order, one call at a time,
 * from any thread that uses the handle's memory; it must not use that. NULL: none. */
STRATA_API void strata_set_memory_observer(strata_handle *handle, strata_memory_fn fn,
                                           void *user);
STRATA_API int strata_set_math_mode(strata_handle *handle, int mode, strata_error *err);
STRATA_API int strata_get_math_mode(const strata_handle *handle);
/* Threads of each run of the engines that are built or loaded with the handle from now
 * on, 1 to 4096; 0 (at first): as the network's [runtime] threads says. The same engine
 * file may be loaded with different numbers; impls and formats stay those of its plan,
 * and outputs may differ in the last bits. On the host; other devices take no notice.
 * EINVAL out of that range. */
STRATA_API int strata_set_threads(strata_handle *handle, int threads, strata_error *err);
STRATA_API int strata_get_threads(const strata_handle *handle);

/* How the threads of a run wait for each other between its parallel regions, a fraction
 * of a millisecond mostly. It is the process's libgomp that waits: while one run sleeps,
 * all do. OMP_WAIT_POLICY or GOMP_SPINCOUNT in the environment win over all of it. */
enum {
    STRATA_WAIT_NETWORK, /* as the network's [runtime] wait says, yield if it is silent */
    STRATA_WAIT_SPIN,    /* actively: fastest where each has a processor of its own */
    STRATA_WAIT_YIELD,   /* actively, but asleep while others want the processors */
    STRATA_WAIT_SLEEP    /* asleep: leaves the processors to others */
};
/* Of engines built or loaded with the handle from now on. EINVAL: no STRATA_WAIT_*. */
STRATA_API int strata_set_wait(strata_handle *handle, int wait, strata_error *err);
STRATA_API int strata_get_wait(const strata_handle *handle);

/* Streams run their work in order, asynchronously to the caller and to each other. */
STRATA_API int strata_stream_create(strata_stream **out, strata_handle *handle,
                                    strata_error *err);
/* A stream of the application's own CUDA code, of the handle's GPU: native is its
 * cudaStream_t, which may be NULL, CUDA's legacy default stream. With strata_set_stream
 * before a context is made, its runs are in order with the application's kernels and need
 * no events. Not owned: native must outlive `out`, whose end neither waits for it nor
 * destroys it. While a context makes a graph (strata_context_prepare, or the second run
 * with new bindings) nobody else may use the stream. EINVAL: it is another GPU's;
 * EUNSUPPORTED: the device (host) has no streams of others. */
STRATA_API int strata_stream_wrap(strata_stream **out, strata_handle *handle,
                                  void *native, strata_error *err);
/* The cudaStream_t of a stream, valid while it is; NULL on the host. */
STRATA_API void *strata_stream_native(strata_stream *stream);
STRATA_API void strata_stream_destroy(strata_stream *stream);
/* Wait for all work; returns the first failure since the last wait. */
STRATA_API int strata_stream_synchronize(strata_stream *stream, strata_error *err);
/* The handle's current stream; set does not take ownership, NULL: its own. */
STRATA_API void strata_set_stream(strata_handle *handle, strata_stream *stream);
STRATA_API strata_stream *strata_get_stream(const strata_handle *handle);

STRATA_API int strata_event_create(strata_event **out, strata_handle *handle,
                                   strata_error *err);
/* An event of the application's own (cudaEvent_t, of the handle's GPU), for
 * strata_stream_wait, or to be recorded: as strata_stream_wrap in all else. */
STRATA_API int strata_event_wrap(strata_event **out, strata_handle *handle, void *native,
                                 strata_error *err);
/* The cudaEvent_t of an event, valid while it is, for cudaStreamWaitEvent on streams of
 * others; NULL on the host. */
STRATA_API void *strata_event_native(strata_event *event);
STRATA_API void strata_event_destroy(strata_event *event);
STRATA_API int strata_event_record(strata_event *event, strata_stream *stream,
                                   strata_error *err);
/* Later work on stream waits until the event's last record has happened. */
STRATA_API int strata_stream_wait(strata_stream *stream, strata_event *event,
                                  strata_error *err);
STRATA_API int strata_event_synchronize(strata_event *event, strata_error *err);
/* Milliseconds from `from` to `to`, both complete. */
STRATA_API int strata_event_elapsed(double *ms, strata_event *from, strata_event *to,
                                    strata_error *err);

/* ---- registry ---------------------------------------------------------------------- */

typedef struct strata_registry strata_registry;

typedef struct strata_registry_options {
    size_t struct_size;
    const char *const *files; /* plugin files, loaded first, in order */
    size_t n_files;
    const char *search_path; /* colon-separated, before the default path; may be NULL */
    int allow_untrusted;     /* accept files and folders others may write */
    int no_default_path;     /* only files and search_path */
} strata_registry_options;

/* Read the notes of every module on the search path; modules are loaded when needed.
 * options may be NULL. A bad file never fails the call: see `strata list --rejected`.
 * A file named in `files` that is refused does. The environment adds folders
 * (STRATA_PLUGIN_PATH) and replaces the installed one (STRATA_PLUGIN_DIR), except in
 * privileged programs. The installed one moves with the tree that this library is in;
 * privileged programs take it from where it was configured for. */
STRATA_API int strata_registry_create(strata_registry **out,
                                      const strata_registry_options *options,
                                      strata_error *err);
STRATA_API void strata_registry_destroy(strata_registry *registry);

/* ---- network ----------------------------------------------------------------------- */

typedef struct strata_network strata_network;

typedef struct strata_network_options {
    size_t struct_size;
    const char *const *set; /* "section.key=value" or "layer conv1.pad=1" overrides */
    size_t n_set;
    const char *const *define; /* "name=value" for [vars] */
    size_t n_define;
} strata_network_options;

/* Parse, check and shape a network; options may be NULL. All errors of the file, up to
 * 20, are in err. The registry must outlive the network. */
STRATA_API int strata_network_load(strata_network **out, const char *path,
                                   strata_registry *registry,
                                   const strata_network_options *options,
                                   strata_error *err);
STRATA_API void strata_network_destroy(strata_network *network);

/* ---- engine and context ------------------------------------------------------------ */

typedef struct strata_engine strata_engine;
typedef struct strata_context strata_context;

/* Choose impls and formats, load weights, set up. Immutable afterwards and shared by
 * threads; keeps what it needs of the network alive by itself, the registry and handle
 * must outlive it. */
STRATA_API int strata_engine_build(strata_engine **out, strata_handle *handle,
                                   const strata_network *network, strata_error *err);
/* Whom this thread's strata_engine_build asks, between what it measures, whether to end:
 * not 0 ends it with STRATA_EBUSY. What was measured is kept. NULL: nobody. */
typedef int (*strata_interrupt_fn)(void *user);
STRATA_API void strata_set_interrupt(strata_interrupt_fn fn, void *user);
STRATA_API void strata_engine_destroy(strata_engine *engine);
/* Write the engine to one file that loads without the network, its weights and any
 * search: docs/files/engine.md. Atomic: who reads `path` finds the old file or the new
 * one, whole. The same network on the same machine gives the same bytes, unless costs
 * are measured anew. EIO for what the system refuses; the old file is then as it was.
 * EINVAL where a file would be replaced that the network was read from. Any thread. */
STRATA_API int strata_engine_save(const strata_engine *engine, const char *path,
                                  strata_error *err);
/* An engine from such a file: outputs are those of the engine that was saved, bit for
 * bit on the same device and plugins. The registry must hold the plugins (by name, never
 * by path), and like the handle outlive the engine. EPARSE: damaged, or not an engine;
 * EUNSUPPORTED: of another format version, device kind or compute capability, or an impl
 * refuses to run here; EMODULE: a plugin is missing or of another major version. A plugin
 * of another build loads with a warning in the log. */
STRATA_API int strata_engine_load(strata_engine **out, strata_handle *handle,
                                  strata_registry *registry, const char *path,
                                  strata_error *err);
/* The same of bytes that hold such a file. They are copied: the caller may free them as
 * soon as it returns. Messages call them "engine in memory". */
STRATA_API int strata_engine_load_memory(strata_engine **out, strata_handle *handle,
                                         strata_registry *registry, const void *bytes,
                                         size_t size, strata_error *err);

/* Inputs first, then outputs, each in the network's order. Texts live with the engine. */
typedef struct strata_binding {
    size_t struct_size;
    const char *name;
    int is_input;
    strata_desc desc;
    const char *format; /* "fp32:nchw" */
    int64_t bytes;
} strata_binding;
STRATA_API int strata_engine_bindings(const strata_engine *engine);
STRATA_API int strata_engine_binding(const strata_engine *engine, int index,
                                     strata_binding *out, strata_error *err);
/* Index of a binding by name, or -1. */
STRATA_API int strata_engine_find(const strata_engine *engine, const char *name);

/* Pixels of 8 bits, the caller's: rows of `width` times `channels` values, H x W x C. */
typedef struct strata_image {
    size_t struct_size;
    const uint8_t *pixels;
    int32_t width, height; /* 1 to 32768 each */
    int32_t channels;      /* 1: grey; 3: red, green, blue, whatever the network wants */
    int64_t stride;        /* bytes from row to row; 0: width times channels */
} strata_image;
/* An image as one row (the first dim) of an input of 1 or 3 channels: resized, its
 * channels in order, scaled, mean and std applied as the network's [input] section says,
 * the values that `strata run` gives it; nothing else of the API applies that section.
 * `row` is host memory for the binding's bytes divided by its first dim, in the binding's
 * format, pad lanes zero; for strata_copy_in, a batcher's request, or on the host device
 * strata_context_data. From a file: PGM, PPM, IDX (its first), PNG or JPEG where the
 * library was built with them. An engine from a file knows its section. Any thread.
 * EINVAL: no such input, or it cannot be an image; EUNSUPPORTED: the binding's rows are
 * not in one piece each, or such files are not read; EPARSE, ENOTFOUND, EIO of the file.
 */
STRATA_API int strata_engine_convert_image(const strata_engine *engine, int index,
                                           void *row, const strata_image *image,
                                           strata_error *err);
STRATA_API int strata_engine_read_image(const strata_engine *engine, int index, void *row,
                                        const char *path, strata_error *err);
/* Classes, the lines of the network's labels file: how many, and one of them, which lives
 * as long as the engine; NULL past the last. */
STRATA_API int64_t strata_engine_labels(const strata_engine *engine);
STRATA_API const char *strata_engine_label(const strata_engine *engine, int64_t index);

/* Bytes of weights, and of memory per context. */
STRATA_API uint64_t strata_engine_weight_bytes(const strata_engine *engine);
STRATA_API uint64_t strata_engine_arena_bytes(const strata_engine *engine);

/* Rows that a run takes at most: the first dim of the inputs. */
STRATA_API int64_t strata_engine_batch(const strata_engine *engine);
/* The batches that the engine was planned for, ascending: those that the network's
 * [profile] lists for a name, else one. Writes the first n, returns how many it has. */
STRATA_API int strata_engine_batches(const strata_engine *engine, int64_t *out, int n);

/* What a run does, in order. Texts live as long as the engine. Bytes and operations are
 * the least that the step must move and do: each tensor and weight once. */
enum {
    STRATA_STEP_RUN,      /* an impl computes one layer or several */
    STRATA_STEP_REFORMAT, /* a tensor into another format */
    STRATA_STEP_RELABEL   /* the same bytes under another name: nothing is done */
};
typedef struct strata_step {
    size_t struct_size;
    int kind;
    const char *name;   /* the user's: "conv1 + relu1", or the tensor that is converted */
    const char *layer;  /* "core::Convolution@1"; NULL of a conversion */
    const char *impl;   /* "gemm"; NULL of a conversion */
    const char *module; /* file that the impl came in; NULL of a conversion */
    const char *from, *to; /* formats of the first input and output; "-": there is none */
    double bytes, operations; /* a multiply-add counts two */
    double floor_us; /* neither memory nor arithmetic of the device allow less */
    int memory_bound; /* it is memory that does not */
    int64_t live_bytes; /* of the context's memory in use at this step */
    double predicted_us; /* by the costs that the plan was made from */
} strata_step;
STRATA_API int strata_engine_steps(const strata_engine *engine);
STRATA_API int strata_engine_step(const strata_engine *engine, int index,
                                  strata_step *out, strata_error *err);

/* One execution state; its stream is the handle's at creation. The handle is of the
 * engine's device; it and the engine must outlive the context. */
STRATA_API int strata_context_create(strata_context **out, const strata_engine *engine,
                                     strata_handle *handle, strata_error *err);
STRATA_API void strata_context_destroy(strata_context *context);
/* Run once now, so that later runs are not the first: kernels get loaded and, on devices
 * that have graphs, the steps become one. Reads the inputs as they are and writes the
 * outputs. After binding other memory the same happens in the course of two runs. */
STRATA_API int strata_context_prepare(strata_context *context, strata_error *err);
/* Whether runs go by a device graph (the network's [runtime] graph, yes if it says
 * nothing) or kernel by kernel. Waits for the runs under way, and gives their failure. */
STRATA_API int strata_context_use_graph(strata_context *context, int use,
                                        strata_error *err);
/* Device memory of a binding, aligned to 256 bytes, at least `bytes` of the binding;
 * stays the caller's, and inputs are not written. An input's pad lanes are zero, unless
 * its [input] section says pads = any: so for what is copied in, and for a batcher's
 * requests; STRATA_CHECK=1 in the environment tells of others. NULL goes back to memory
 * of the context's own. Holds from the next run on, which waits for those under way and
 * gives their failure; the one after makes a new graph. To bind it again costs nothing. */
STRATA_API int strata_context_bind(strata_context *context, int index, void *data,
                                   strata_error *err);
/* Where a binding's data is now: device memory, which the host may touch on the host
 * device alone. strata_copy_in and strata_copy_out work on every device. NULL without
 * memory, and while another thread is in a call of the context. */
STRATA_API void *strata_context_data(const strata_context *context, int index);
/* The next runs are for the first `batch` rows of the inputs and outputs, 1 to
 * strata_engine_batch; at first, all. They go by the smallest of strata_engine_batches
 * that they fit in; the rows of the outputs beyond `batch` are then undefined. Costs
 * nothing while the bindings stay. EUNSUPPORTED, for less than all, says which layer
 * hangs on the batch or mixes its rows. */
STRATA_API int strata_context_set_batch(strata_context *context, int64_t batch,
                                        strata_error *err);
/* Copy a binding, of the shape and rows that the next run has (strata/sizes.h), in
 * its format, from or to host memory of the caller: after what is on the stream of the
 * context, complete on return. EINVAL: no such binding, or `data` is NULL. */
STRATA_API int strata_copy_in(strata_context *context, int index, const void *data,
                              strata_error *err);
STRATA_API int strata_copy_out(strata_context *context, int index, void *data,
                               strata_error *err);
/* The same, put on the context's stream: `data` must stay until the stream is there.
 * Memory of strata_host_alloc lets the copy go on beside the host's work. */
STRATA_API int strata_enqueue_copy_in(strata_context *context, int index,
                                      const void *data, strata_error *err);
STRATA_API int strata_enqueue_copy_out(strata_context *context, int index, void *data,
                                       strata_error *err);
/* Asynchronous, on the context's stream. input_consumed, if not NULL, is recorded once
 * the inputs may be overwritten. Errors of the layers come with strata_context_wait. */
STRATA_API int strata_context_enqueue(strata_context *context,
                                      strata_event *input_consumed, strata_error *err);
STRATA_API int strata_context_wait(strata_context *context, strata_error *err);
/* enqueue and wait. On the host the calling thread computes where the stream has nothing
 * else to do: a run of one thread, and one of several if the thread has made many
 * (docs/serving.md#threads-of-a-run). */
STRATA_API int strata_context_run(strata_context *context, strata_error *err);

/* Watching runs step by step. Such runs go without a graph, with an event between steps,
 * which takes time itself: the sum of the steps is above the time of an unwatched run. */
typedef struct strata_profiler {
    size_t struct_size;
    /* Called for each step that did something, in order, once the run is complete: by
     * the thread that waits for it, or enqueues the next one. `engine` and `step` are for
     * strata_engine_step: the engine of the context, or the part of it that is for the
     * batch. Times are in microseconds, `begin` from the begin of the run. It must not
     * use the context. May be NULL. */
    void (*step)(void *user, const strata_engine *engine, int step, double begin,
                 double took);
    void *user;
    /* Put each step's launches into a range named as the step, for the device's own
     * tools (NVTX on CUDA). EUNSUPPORTED where the device has none. */
    int ranges;
} strata_profiler;
/* Waits for the runs under way, and gives their failure. NULL: watch no longer. */
STRATA_API int strata_context_set_profiler(strata_context *context,
                                           const strata_profiler *profiler,
                                           strata_error *err);

#ifdef __cplusplus
}
#endif

#endif /* STRATA_H */
